"""Values that are no objects of the format: what is read as one, and which of them .NET takes."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from chathistory_core.formats.chat_message.json_text import depth
from chathistory_core.formats.chat_message.members import Kind, Member
from chathistory_core.formats.chat_message.places import Object, Place, RefusedError, UnreadableError
from chathistory_core.formats.chat_message.uris import is_uri
from chathistory_core.messages.data_uris import is_data_uri
from chathistory_core.messages.json_members import RESERVED
from chathistory_core.messages.media_types import is_media_type
from chathistory_core.messages.times import read_time
from chathistory_core.messages.white_space import is_blank

Reader = Callable[[Any, Place, Member], Any]
"""The value of a member from JSON; raises `UnreadableError`."""

Writer = Callable[[Any, Place, Member], Any]
"""The JSON of a member's value; raises `RefusedError` where .NET does not take it."""


def _text(value: object, _place: Place, member: Member) -> str:
    if isinstance(value, str):
        return value
    raise UnreadableError(f"`{member.name}` is no text")


def _bool(value: object, _place: Place, member: Member) -> bool:
    if isinstance(value, bool):
        return value
    raise UnreadableError(f"`{member.name}` is neither true nor false")


_DIGITS: Final = re.compile(r"[+-]?\d{1,40}", re.ASCII)


def _integer(value: object, _place: Place, member: Member) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    raise UnreadableError(f"`{member.name}` is no integer")


def _time(value: object, place: Place, member: Member) -> datetime:
    text = _text(value, place, member)
    try:
        return read_time(text)
    except ValueError:
        raise UnreadableError(f"`{member.name}` is no time") from None


def read_array(value: object, _place: Place, member: Member) -> list[Any]:
    """The array."""
    if isinstance(value, list):
        return value
    raise UnreadableError(f"`{member.name}` is no array")


def read_object(value: object, _place: Place, member: Member) -> Object:
    """The object."""
    if isinstance(value, dict):
        return value
    raise UnreadableError(f"`{member.name}` is no object")


def _json(value: Any, _place: Place, _member: Member) -> Any:
    return value


def _counts(value: object, place: Place, member: Member) -> dict[str, int]:
    return {key: _integer(count, place, member) for key, count in read_object(value, place, member).items()}


def _queries(value: object, place: Place, member: Member) -> list[str | None]:
    return [None if query is None else _text(query, place, member) for query in read_array(value, place, member)]


READERS: Final[Mapping[Kind, Reader]] = {
    Kind.TEXT: _text,
    Kind.NOT_BLANK: _text,
    Kind.URI: _text,
    Kind.DATA_URI: _text,
    Kind.MEDIA_TYPE: _text,
    Kind.BOOL: _bool,
    Kind.INT32: _integer,
    Kind.INT64: _integer,
    Kind.TIME: _time,
    Kind.JSON: _json,
    Kind.ARGUMENTS: read_object,
    Kind.PROPERTIES: read_object,
    Kind.COUNTS: _counts,
    Kind.QUERIES: _queries,
}


def _where(is_taken: Callable[[Any], bool]) -> Writer:
    def write(value: Any, _place: Place, _member: Member) -> Any:
        if is_taken(value):
            return value
        raise RefusedError

    return write


def _fits(bits: int) -> Callable[[int], bool]:
    return lambda value: -(1 << bits - 1) <= value < 1 << bits - 1


def _write_time(value: datetime, _place: Place, _member: Member) -> str:
    offset = value.utcoffset() or timedelta()
    try:
        in_utc = value.astimezone(UTC)
    except OverflowError:
        raise RefusedError from None
    if abs(offset) > timedelta(hours=14) or offset % timedelta(minutes=1):
        value = in_utc
    text = value.isoformat()
    return text if not value.microsecond else f"{text[:26].rstrip('0')}{text[26:]}"


def _write_json(value: Any, place: Place, _member: Member) -> Any:
    if depth(value) > place.room:
        raise RefusedError
    return value


def write_properties(value: Mapping[str, Any], place: Place, member: Member) -> Any:
    """The object, where .NET keeps its keys apart and none is ours."""
    if _collide(value) or any(key[: len(RESERVED)].lower() == RESERVED for key in value):
        raise RefusedError
    return _write_json(value, place, member)


def _collide(keys: Mapping[str, Any]) -> bool:
    """Whether .NET may take two of the keys for one, whatever table of cases it goes by."""
    return len(keys) > 1 and any(len(set(map(fold, keys))) < len(keys) for fold in (str.lower, str.upper, str.casefold))


def _write_counts(value: Mapping[str, int], place: Place, member: Member) -> Any:
    if _collide(value) or not all(map(_fits(64), value.values())):
        raise RefusedError
    return _write_json(value, place, member)


def _write_queries(value: tuple[str | None, ...], _place: Place, _member: Member) -> Any:
    return list(value)


WRITERS: Final[Mapping[Kind, Writer | None]] = {
    Kind.TEXT: None,
    Kind.BOOL: None,
    Kind.NOT_BLANK: _where(lambda text: not is_blank(text)),
    Kind.URI: _where(is_uri),
    Kind.DATA_URI: _where(is_data_uri),
    Kind.MEDIA_TYPE: _where(is_media_type),
    Kind.INT32: _where(_fits(32)),
    Kind.INT64: _where(_fits(64)),
    Kind.TIME: _write_time,
    Kind.JSON: _write_json,
    Kind.ARGUMENTS: _write_json,
    Kind.PROPERTIES: write_properties,
    Kind.COUNTS: _write_counts,
    Kind.QUERIES: _write_queries,
}
"""None where every value stands as it is."""
