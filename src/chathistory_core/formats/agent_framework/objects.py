"""What the framework has in hand, as JSON objects and the texts they are stored as."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats.agent_framework.leftovers import NAME
from chathistory_core.formats.chat_message.json_text import depth, value_in
from chathistory_core.formats.chat_message.places import UnstorableError, unstorable
from chathistory_core.messages import freeze

MAX_DEPTH: Final = 200
"""The levels of a message that records can keep."""

_TOO_DEEP: Final = f"more than {MAX_DEPTH} levels"


@runtime_checkable
class SupportsToDict(Protocol):
    """An object of the framework, such as a `Message`."""

    def to_dict(self) -> Mapping[str, object]:
        """Its JSON."""
        ...


Given: TypeAlias = SupportsToDict | Mapping[str, object] | str | bytes
"""An object of the framework, the dict that its `to_dict` makes, or JSON text."""

Taken: TypeAlias = tuple[Any, bytes]


def take(given: Given | Sequence[Given]) -> Iterator[Taken]:
    """Each message's JSON value, which nobody else changes, and its text: as it was given, or else compact.

    Raises:
        DecodeError: a text is no JSON.
        EncodeError: a value is no JSON, or none that a record can keep.
    """
    index = 0
    for one in given if isinstance(given, (list, tuple)) else (given,):
        is_text = isinstance(one, (str, bytes))
        value = parse(one, index) if isinstance(one, (str, bytes)) else _json_of(one)
        many = _messages(value)
        for message in [value] if many is None else many:
            text = _text(message, index)
            if is_text and many is None:
                yield message, one if isinstance(one, bytes) else str(one).encode()  # a number keeps its spelling
            else:
                yield message if is_text else _reader.decode(text), text.encode()
            index += 1


def parse(text: str | bytes, index: int) -> Any:
    """The JSON value in the text."""
    try:
        text = text if isinstance(text, str) else text.decode()
        text.encode()
        value = value_in(text)
    except UnicodeError:
        raise DecodeError(NAME, f"message {index} is not in UTF-8") from None
    except ValueError as error:
        raise DecodeError(NAME, f"message {index}: {error}") from None
    if _may_be_deep(text) and depth(value) > MAX_DEPTH + 1:
        raise DecodeError(NAME, f"message {index} has {_TOO_DEEP}")
    return value


def _json_of(given: object) -> Any:
    if isinstance(given, Mapping):
        return given
    if isinstance(given, SupportsToDict):
        return given.to_dict()
    raise TypeError(f"a Message, its dict or JSON text is loaded, not {type(given).__name__}")


def _messages(value: Any) -> Sequence[Any] | None:
    """The messages of a list or of a response; None of a message."""
    if isinstance(value, list):
        return value
    if isinstance(value, Mapping) and "role" not in value and isinstance(value.get("messages"), list):
        return list(value["messages"])
    return None


def _text(value: Any, index: int) -> str:
    try:
        text = _encoder.encode(value)
        text.encode()
    except (TypeError, ValueError, RecursionError):
        error = _flaw(value)
    else:
        if not _may_be_deep(text) or depth(_reader.decode(text)) <= MAX_DEPTH:
            return text
        error = UnstorableError(_TOO_DEEP)
    raise EncodeError(f"{index}{error.path}", error.reason)


_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_reader: Final = json.JSONDecoder()


def _may_be_deep(text: str) -> bool:
    return text.count("{") + text.count("[") > MAX_DEPTH


def _flaw(value: Any) -> UnstorableError:
    try:
        return unstorable(freeze(value))
    except ValueError as error:  # it names the type of what is no JSON
        return UnstorableError(str(error))
    except RecursionError:
        return UnstorableError(_TOO_DEEP)
