"""What a client has in hand, as JSON objects and the texts they are stored as."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn, TypeAlias

from pydantic import BaseModel

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats.openai_chat.leftovers import NAME

Given: TypeAlias = Mapping[str, object] | BaseModel | str | bytes
"""A dict, an object of the SDK, or JSON text."""

MAX_DEPTH = 200
"""The levels of a message that records can keep."""

_SAFE_BITS = 2_048
"""An integer up to here is written whatever Python's limit on digits: that cannot be set below 640."""

_MEMBER = re.compile("[a-z][a-z0-9_]{0,39}")
"""How the API and its vendors name members; any other key is somebody's data, which no error shows."""

Taken: TypeAlias = tuple[Any, bytes]


def compact(value: object) -> str:
    """The JSON text without spaces, other than ASCII as it is; `ValueError` for NaN and infinities."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def take(given: Given | Sequence[Given]) -> list[Taken]:
    """Each message's JSON value, which nobody else holds, and its text: as it was given, or else compact.

    Raises:
        DecodeError: a text is no JSON, or an object holds no message.
        EncodeError: a value is no JSON, or none that a record can keep.
    """
    taken: list[Taken] = []
    for one in given if isinstance(given, (list, tuple)) else (given,):
        index = len(taken)
        if isinstance(one, (str, bytes)):
            taken += [(plain(value, str(index + at)), text) for at, (value, text) in enumerate(_in_text(one, index))]
        else:
            taken += _in_object(plain(one, str(index)), index)
    return taken


def parse(text: str | bytes, index: int) -> tuple[Any, str]:
    """The JSON value, and the text."""
    try:
        text = text if isinstance(text, str) else text.decode()
        text.encode()
        return _reader.decode(text), text
    except UnicodeError:
        reason = "is not in UTF-8"
    except RecursionError:
        reason = "is nested too deep"
    except json.JSONDecodeError:
        reason = "is no JSON"
    except ValueError:
        reason = "holds NaN, an infinity or a number of more than 4,300 digits"
    raise DecodeError(NAME, f"message {index} {reason}")


def _refuse_constant(_: str) -> NoReturn:
    raise ValueError("JSON has neither NaN nor infinities")


_reader = json.JSONDecoder(parse_constant=_refuse_constant)


def _in_text(given: str | bytes, index: int) -> list[Taken]:
    value, text = parse(given, index)
    if isinstance(value, list):
        return list(_elements(text))
    if isinstance(value, dict) and "role" not in value:
        return _in_object(value, index)
    return [(value, given if isinstance(given, bytes) else text.encode())]


def _elements(text: str) -> Iterator[Taken]:
    """The values of the array, each with its own stretch of the text: a number keeps its spelling."""
    at = _behind_space(text, text.index("[") + 1)
    while text[at] != "]":
        value, end = _reader.raw_decode(text, at)
        yield value, text[at:end].encode()
        at = _behind_space(text, end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def _behind_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


def _in_object(value: Any, index: int) -> list[Taken]:
    """The message itself, those of a request's body, or the one of a response."""
    found: list[Any] = [value]
    if isinstance(value, dict) and "role" not in value:
        if isinstance(value.get("messages"), list):
            found = value["messages"]
        elif isinstance(value.get("choices"), list):
            found = [_chosen(value["choices"], index)]
    return [(one, compact(one).encode()) for one in found]


def _chosen(choices: list[Any], index: int) -> Any:
    if len(choices) != 1:
        raise DecodeError(
            NAME, f"message {index} is a response with {len(choices)} choices: give the `message` of one of them"
        )
    choice = choices[0]
    if isinstance(choice, dict) and "message" in choice:
        return choice["message"]
    raise DecodeError(NAME, f"message {index} is a part of a stream: give the whole message")


def plain(value: object, path: str, levels: int = MAX_DEPTH) -> Any:
    """A copy made of nothing but dict, list, str, int, float, bool and None."""
    if value is None or isinstance(value, (str, bool, int, float)):
        return _scalar(value, path)
    if levels == 0:
        raise EncodeError(path, f"it has more than {MAX_DEPTH} levels")
    if isinstance(value, BaseModel):
        return plain(_dumped(value, path), path, levels)
    if isinstance(value, Mapping):
        return {
            (name := _key(key, path)): plain(item, f"{path}/{_step(name)}", levels - 1) for key, item in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [plain(item, f"{path}/{number}", levels - 1) for number, item in enumerate(value)]
    raise EncodeError(path, f"{type(value).__name__} is no JSON value: convert it first")


def _scalar(value: str | float | None, path: str) -> Any:
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value, path)
        return value if type(value) is str else str.__str__(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > _SAFE_BITS:
            _check_digits(value, path)
        return int(value)
    if value != value or value in (float("inf"), float("-inf")):
        raise EncodeError(path, "it is NaN or infinite, which JSON is not")
    return float(value)


def _check_digits(value: int, path: str) -> None:
    try:
        str(value)
    except ValueError:
        raise EncodeError(path, "it is a number of more than 4,300 digits") from None


def _dumped(model: BaseModel, path: str) -> object:
    try:
        return model.model_dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    except (ValueError, RecursionError):  # what they say shows the content
        raise EncodeError(path, f"{type(model).__name__} cannot be written as JSON") from None


def _key(key: object, path: str) -> str:
    if not isinstance(key, str):
        raise EncodeError(path, f"a key of {type(key).__name__} is no JSON: keys are text")
    _check_text(key, path)
    return str.__str__(key)


def _check_text(text: str, path: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise EncodeError(path, "it holds a lone surrogate, which no UTF-8 can carry") from None


def _step(key: str) -> str:
    return key if _MEMBER.fullmatch(key) else "…"
