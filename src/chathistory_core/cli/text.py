"""Text on a terminal, which it must not steer, and JSON on any stream, which must not lose a character."""

import codecs
import json
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

_STEERING = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Characters that move a cursor, change a terminal's state, break a line or turn the direction of writing."""

_UNPRINTABLE = re.compile(rf"[{_STEERING}\ud800-\udfff]")
_UNPRINTABLE_IN_LINES = re.compile(rf"(?!\t)[{_STEERING}\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile(r"[\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_LINE_BREAK = re.compile(r"[\r\n]+[ \t]*")


def printable(text: str) -> str:
    """The text in one line, what would steer a terminal as an escape of Python."""
    return _UNPRINTABLE.sub(_escape, text)


def printable_lines(text: str) -> Iterator[str]:
    """The lines of the text, each printable; tabs stay."""
    for line in re.split(r"\r?\n", text):
        yield _UNPRINTABLE_IN_LINES.sub(_escape, line)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


def time(moment: datetime) -> str:
    """The moment to the second, in UTC."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def put_line(text: str = "") -> None:
    """Write a line to stdout as it is: what it was made of is printable already."""
    sys.stdout.write(f"{text}\n")


def put_heading(text: str) -> None:
    """Write the line so that it stands out where stdout is a terminal."""
    if not sys.stdout.isatty():
        put_line(text)
        return
    from rich.console import Console

    Console(highlight=False, markup=False, emoji=False, soft_wrap=True).print(text, style="bold")


def json_line(value: object) -> None:
    """Write the value to stdout as one line of JSON."""
    put_json(f"{json.dumps(value, ensure_ascii=False)}\n")


def put_json(text: str) -> None:
    """Write JSON text to stdout, with JSON's own escapes for what the stream or a terminal cannot take."""
    unsafe = _UNSAFE_IN_JSON if codecs.lookup(sys.stdout.encoding).name == "utf-8" else _NOT_ASCII
    sys.stdout.write(unsafe.sub(_json_escape, text))


def _json_escape(found: re.Match[str]) -> str:
    return "".join(f"\\u{int.from_bytes(unit, 'big'):04x}" for unit in _units(found[0]))


def _units(character: str) -> Iterator[bytes]:
    encoded = character.encode("utf-16-be")
    return (encoded[at : at + 2] for at in range(0, len(encoded), 2))


def in_one_line(text: str) -> str:
    """The JSON text without line breaks: no string in it holds one as it is."""
    return _LINE_BREAK.sub("", text)
