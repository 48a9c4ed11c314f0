"""The client's side of the format: messages from .NET's JSON, and as it."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from chathistory_core.errors import DecodeError
from chathistory_core.formats.chat_message.json_text import depth, flaw, value_in
from chathistory_core.formats.chat_message.members import NAMES
from chathistory_core.formats.chat_message.places import (
    CONTENT,
    DOTNET_LEVELS,
    EXTRA,
    MESSAGE_LEVEL,
    TOO_DEEP,
    UnstorableError,
)
from chathistory_core.formats.chat_message.records import encode, name, read_value, text_in
from chathistory_core.formats.chat_message.writing import write_message
from chathistory_core.messages import ATTRIBUTION_KEY, ChatMessage, Json, Origin, SourceAttribution, freeze
from chathistory_core.messages.extras import folded


def load(source: str | bytes | Mapping[str, Json] | Sequence[Mapping[str, Json]]) -> list[ChatMessage]:
    """The messages of JSON text or of a JSON value: one message, or a list of them.

    A message has its own text as its origin where .NET takes that as it stands, else none: it is then stored anew.

    Raises:
        DecodeError: there is something else in it.
    """
    if isinstance(source, bytes):
        source = text_in(source)
    elif isinstance(source, str):
        source = source.removeprefix("\ufeff")
    given: object = source
    if not isinstance(given, (str, Mapping, Sequence)):
        raise TypeError(f"JSON text, an object or a list of them is loaded, not {type(given).__name__}")
    try:
        return [_loaded(text) for text in _texts(source)]
    except RecursionError:
        raise DecodeError(name, TOO_DEEP) from None
    except ValueError as error:
        raise DecodeError(name, str(error)) from None


def _texts(source: str | Mapping[str, Json] | Sequence[Mapping[str, Json]]) -> Iterator[str]:
    """The JSON text of each message, as it stands in a text."""
    if not isinstance(source, str):
        for value in [source] if isinstance(source, Mapping) else source:
            yield json.dumps(freeze(value), ensure_ascii=False, separators=(",", ":"))
        return
    if not isinstance(value_in(source), list):
        yield source.strip(_BLANKS)
        return
    at = _past(source, source.index("[") + 1)
    while source[at] != "]":
        _, end = _SCANNER.raw_decode(source, at)
        yield source[at:end]
        at = _past(source, end)


_SCANNER: Final = json.JSONDecoder()
_BLANKS: Final = " \t\r\n"
_BETWEEN: Final = re.compile(r"[ \t\r\n,]*")


def _past(text: str, at: int) -> int:
    """Behind the blanks and commas that stand there."""
    found = _BETWEEN.match(text, at)
    return at if found is None else found.end()


def _loaded(text: str) -> ChatMessage:
    value = value_in(text)
    message = read_value(value)
    if _stands(text, value, message):
        return message.with_origin(Origin(name, text.encode()))
    return message


def _stands(text: str, value: Any, message: ChatMessage) -> bool:
    """Whether .NET takes the text, and as the same message: it differs from ours in nothing that matters there."""
    if depth(value) + MESSAGE_LEVEL - 1 > DOTNET_LEVELS or _repeats(text):
        return False
    try:
        json.dumps(value, ensure_ascii=False).encode()
        return _same(value, write_message(message))
    except (UnicodeEncodeError, UnstorableError):
        return False


def _repeats(text: str) -> bool:
    """Whether an object in it has two members of one name."""
    repeated: list[bool] = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        repeated.append(len({folded(key) for key, _ in pairs}) < len(pairs))

    json.loads(text, object_pairs_hook=note)
    return any(repeated)


_FREE: Final = ("arguments", "result")
"""Members whose values are any JSON."""

_MEMBERS: Final = frozenset(map(folded, NAMES))

_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,16})?)?(?:Z|[+-](?:0\d|1[0-3]):[0-5]\d|[+-]14:00)?)?", re.ASCII
)
"""The times that .NET reads."""


def _same(given: Any, written: Any) -> bool:
    """Whether the JSON given differs from that written by nulls, defaults, order and unknown members alone."""
    if isinstance(given, list) and isinstance(written, list):
        return len(given) == len(written) and all(map(_same, given, written))
    if not isinstance(given, dict) or not isinstance(written, dict):
        return isinstance(given, bool) is isinstance(written, bool) and bool(given == written)
    if "$type" in written and next(iter(given)) != "$type":
        return False
    return all(_same_member(key, value, written) for key, value in given.items())


def _same_member(key: str, value: Any, written: Mapping[str, Any]) -> bool:
    if key == "additionalProperties":
        kept: bool = _without_ours(value) == _without_ours(written.get(key))
        return kept
    if key not in written:
        known = folded(key) in _MEMBERS
        return value is None if key in NAMES else not known and not key.startswith("$")
    if key in _FREE:
        return bool(value == written[key])
    if key == "createdAt":
        return isinstance(value, str) and _TIME.fullmatch(value) is not None
    return _same(value, written[key])


def _without_ours(properties: Any) -> Any:
    """Additional properties without our texts, which .NET takes whatever they say."""
    if not isinstance(properties, dict):
        return properties
    ours = {key for key in (EXTRA, CONTENT) if isinstance(properties.get(key), str)}
    return {key: value for key, value in properties.items() if key not in ours} or None


def dump(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The messages as the JSON objects that .NET takes, a mark of source included.

    Raises:
        EncodeError: as of `encode`; its path begins with the index of the message.
    """
    return [_dumped(message, str(index)) for index, message in enumerate(messages)]


def _dumped(message: ChatMessage, path: str) -> dict[str, Any]:
    origin = message.origin
    mark: object = (message.additional_properties or {}).get(ATTRIBUTION_KEY)
    if origin is not None and origin.format == name and not isinstance(mark, SourceAttribution):
        value = value_in(text_in(origin.payload))
        if isinstance(value, dict) and flaw(value) is None:
            return value
    value = json.loads(encode(message, path=path))
    return {**value}
