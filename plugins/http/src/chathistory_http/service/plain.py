"""Messages as most are: texts, calls and their results, of nothing but what .NET takes.

Their canonical form is made here without the model of messages, in a third of the time; it is the one that core makes.
"""

import json
import re
from datetime import datetime
from json.encoder import encode_basestring  # the one in C, where there is one
from typing import Final

_MOST: Final = 64 * 1024
"""Characters of a body that are read at once, without a chance for other requests."""

_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_MESSAGE: Final = frozenset({"authorName", "createdAt", "role", "contents", "messageId", "additionalProperties"})
_BASE: Final = ("$type", "annotations", "additionalProperties")
_TEXT: Final = frozenset({*_BASE, "text"})
_CALL: Final = frozenset({*_BASE, "name", "arguments", "informationalOnly", "callId"})
_RESULT: Final = frozenset({*_BASE, "result", "callId"})

_ZERO: Final = re.compile(r"-0(?![.0-9eE])")
_COMMON: Final = re.compile(r"[\x20-\x7e\xa1-\u167f\u3001-\ud7ff\uff01-\uffef]*")
"""Characters that stand in canonical JSON as they are; there are more."""

_encode: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


class _OddError(Exception):
    """Something here is not as most are."""


def plain_payloads(text: str) -> list[bytes] | None:
    """The canonical form of each message in a body, where all of it is plain, else None."""
    if len(text) > _MOST or text.count('"messages"') != 1 or _ZERO.search(text):
        return None
    try:
        body = _decode(text)
        if not isinstance(body, dict) or body.keys() != {"messages"} or not isinstance(body["messages"], list):
            return None
        return [_payload(message) for message in body["messages"]]
    except (_OddError, ValueError, RecursionError):
        return None


def _float(literal: str) -> float:
    number = float(literal)
    if repr(number) != literal:
        raise _OddError
    return number


def _constant(_: str) -> float:
    raise _OddError


_decode: Final = json.JSONDecoder(parse_float=_float, parse_constant=_constant).decode


def _payload(message: object) -> bytes:
    if not isinstance(message, dict) or not message.keys() <= _MESSAGE:
        raise _OddError
    get = message.get
    role, contents = get("role"), get("contents")
    if not isinstance(role, str) or role not in _ROLES or not isinstance(contents, list):
        raise _OddError
    if get("additionalProperties") is not None:
        raise _OddError
    author, created, name = get("authorName"), get("createdAt"), get("messageId")
    written = "".join(
        (
            "{",
            "" if author is None else f'"authorName":{_word(author)},',
            "" if created is None else f'"createdAt":{_time(created)},',
            f'"role":"{role}","contents":[{",".join(map(_content, contents))}]',
            "}" if name is None else f',"messageId":{_text(name)}}}',
        )
    )
    if written.isascii():
        if "\\u00" not in written and "\x7f" not in written:
            return written.encode()
    elif _COMMON.fullmatch(written) and "\\u00" not in written:
        return written.encode()
    raise _OddError


def _content(content: object) -> str:
    if not isinstance(content, dict):
        raise _OddError
    get = content.get
    if get("annotations") is not None or get("additionalProperties") is not None:
        raise _OddError
    kind = get("$type")
    if kind == "text" and content.keys() <= _TEXT:
        return f'{{"$type":"text","text":{_text(get("text"))}}}'
    if kind == "functionCall" and content.keys() <= _CALL:
        arguments = get("arguments")
        told = "" if arguments is None else f'"arguments":{_flat(arguments)},'
        known = _bool(content.get("informationalOnly", False))
        name, call = _text(get("name")), _text(get("callId"))
        return f'{{"$type":"functionCall","name":{name},{told}"informationalOnly":{known},"callId":{call}}}'
    if kind == "functionResult" and content.keys() <= _RESULT:
        return f'{{"$type":"functionResult","result":{_text(get("result"))},"callId":{_text(get("callId"))}}}'
    raise _OddError


def _text(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    raise _OddError


def _word(value: object) -> str:
    if isinstance(value, str) and value.strip():
        return encode_basestring(value)
    raise _OddError


def _bool(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    raise _OddError


def _flat(value: object) -> str:
    if isinstance(value, dict) and not any(isinstance(member, dict | list) for member in value.values()):
        return _encode(value)
    raise _OddError


def _time(value: object) -> str:
    if not isinstance(value, str) or len(value) != len("2026-11-30T18:39:22+00:00"):
        raise _OddError
    if not value.endswith("+00:00") or datetime.fromisoformat(value).isoformat() != value:
        raise _OddError
    return f'"{value}"'
