"""The format's side of the codec: a message as the payload of a record, and back."""

from functools import partial
from typing import Final

from pydantic import ValidationError

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats.chat_message.json_text import depth, value_in
from chathistory_core.formats.chat_message.places import (
    OUR_LEVELS,
    TOO_DEEP,
    UnreadableError,
    UnstorableError,
    text_aside,
)
from chathistory_core.formats.chat_message.reading import read_message
from chathistory_core.formats.chat_message.writing import write_message
from chathistory_core.messages import ChatMessage, Origin
from chathistory_core.messages.json_members import Made
from chathistory_core.messages.late import NO_STACK, PutOff
from chathistory_core.messages.message import made_of
from chathistory_core.messages.white_space import is_blank

name: Final = "chat-message"


def _read(payload: bytes, *, context: Made | None = None, late: bool = False) -> ChatMessage:
    """The message of what we and .NET write; refuses what `read_message` would read otherwise.

    `late` puts off what `PutOff` says.
    """
    message: ChatMessage = ChatMessage.__pydantic_validator__.validate_json(
        payload, context=context, strict=late or None, by_alias=True, by_name=False
    )
    return message


def decode(payload: bytes) -> tuple[ChatMessage, ...]:
    """The message of a payload, with the payload as its origin.

    Raises:
        DecodeError: there is no message in it.
    """
    return (made_of(read_payload(payload), Origin(name, payload)),)


def read_payload(payload: bytes) -> ChatMessage:
    """The message of a payload, without an origin; as of `decode`."""
    message = _read_canonical(payload)
    return read_text(text_in(payload)) if message is None or is_blank(message.role) else message


def _read_canonical(payload: bytes) -> ChatMessage | None:
    values = PutOff()
    try:
        message = _read(payload, context=values, late=True)
        if values:
            if b"NaN" in payload or b"Infinity" in payload:  # the parser takes them for numbers, but JSON has none such
                message = _read(payload)
            else:
                values.make_all = partial(_values_in, payload)
    except ValidationError:  # raise nothing in here: its text names members
        return None
    return message


def _values_in(payload: bytes) -> Made:
    values = Made()
    try:
        _read(payload, context=values)
    except ValidationError:  # it was read before, nearer to the top of the stack
        raise RecursionError(NO_STACK) from None
    return values


def text_in(payload: bytes) -> str:
    """The text of UTF-8 bytes, without a byte order mark."""
    try:
        return payload.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DecodeError(name, f"no UTF-8 at byte {error.start}") from None


def read_text(text: str) -> ChatMessage:
    """The message of a JSON text, read the exact way; as of `decode`."""
    try:
        return read_value(value_in(text))
    except ValueError as error:
        raise DecodeError(name, str(error)) from None


def read_value(value: object) -> ChatMessage:
    """The message of a JSON value; as of `decode`."""
    try:
        if depth(value) >= OUR_LEVELS:
            raise DecodeError(name, TOO_DEEP)
        return read_message(value)
    except RecursionError:
        raise DecodeError(name, TOO_DEEP) from None
    except UnreadableError as error:
        raise DecodeError(name, str(error)) from None
    except ValueError:
        raise DecodeError(name, "a member has a value that no message has there") from None


def encode(message: ChatMessage, *, path: str = "0") -> bytes:
    """The message as JSON that .NET takes, built anew whatever its origin; `path` is what an error calls the message.

    Raises:
        EncodeError: it holds what no JSON of ours holds: a blank role, NaN, an infinity, a lone surrogate, an integer
            of more than 4,300 digits, more than 200 levels.
    """
    try:
        return text_aside(write_message(message)).encode()
    except UnstorableError as error:
        raise EncodeError(path + error.path, error.reason) from None
    except RecursionError:
        raise EncodeError(path, TOO_DEEP) from None
