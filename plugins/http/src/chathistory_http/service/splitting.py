"""The parts of a request's body, each read once and known by its own text."""

import json
import re
from collections.abc import Generator, Iterator
from typing import Final, NamedTuple, NoReturn

from chathistory_http.service.call import Call
from chathistory_http.wire.problems import ProblemError

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_ZERO: Final = re.compile(r"-0(?![.0-9eE])")
_FINE_TIME: Final = re.compile(r"\.\d{7}")
_BOMS: Final = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_CHARSETS: Final = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "utf-16": "utf-16-le",
    "utf-16le": "utf-16-le",
    "utf-16be": "utf-16-be",
    "unicode": "utf-16-le",
}
"""By the names that .NET takes; of UTF-16 without a byte order mark it takes the first byte for the lower one."""


class Part(NamedTuple):
    """An element of the array."""

    text: str
    value: object
    exact: bool
    """Every number in it is spelled as Python writes it."""


def charset_of(call: Call) -> str:
    """The charset of the call's body, where it is JSON.

    Raises:
        ProblemError: unsupported-media-type, where it is not.
    """
    content_type, encoding = call.single("content-type") or "", call.header("content-encoding")
    if content_type == "application/json" and encoding is None:
        return "utf-8"
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise ProblemError("unsupported-media-type", "the body is JSON: send `Content-Type: application/json`")
    if encoding is not None and encoding.strip().lower() != "identity":
        raise ProblemError("unsupported-media-type", "the body is sent as it is: without `Content-Encoding`")
    charset = "utf-8"
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip('"').lower()
    if charset not in _CHARSETS:
        raise ProblemError("unsupported-media-type", "the body is UTF-8 or UTF-16: say which in `charset`")
    return _CHARSETS[charset]


def text_in(body: bytes, charset: str) -> str:
    """The text of a body, without its byte order mark, which has the last word on the charset.

    Raises:
        ProblemError: bad-request, where the body is in another charset.
    """
    for mark, named in _BOMS:
        if body.startswith(mark):
            body, charset = body[len(mark) :], named
            break
    try:
        return body.decode(charset)
    except UnicodeDecodeError as error:
        raise ProblemError("bad-request", f"the body is no {charset.upper()} at byte {error.start}") from None


class Parts:
    """Reads the array that a member of a JSON object holds, element by element; other members are not looked at."""

    def __init__(self, text: str, member: str) -> None:
        self._text = text
        self._member = member
        self._exact = True
        self._scan = json.JSONDecoder(parse_float=self._float, parse_constant=_refuse).raw_decode

    def __iter__(self) -> Iterator[Part]:
        """Each element.

        Raises:
            ProblemError: bad-request, where the text is no JSON object with such a member.
        """
        try:
            yield from self._parts()
        except json.JSONDecodeError as error:
            raise ProblemError("bad-request", f"the body is no JSON at character {error.pos}") from None
        except RecursionError:
            raise ProblemError("bad-request", "the body is nested too deep") from None
        except (ValueError, IndexError):
            raise ProblemError(
                "bad-request", "the body is no JSON: it breaks off, or has a number that none is"
            ) from None

    def _parts(self) -> Iterator[Part]:
        text, at = self._text, self._skip(0)
        if text[at : at + 1] != "{":
            self._scan(text, at)
            raise ProblemError("bad-request", f"the body must be an object with the array `{self._member}`")
        at = self._skip(at + 1)
        found = False
        while text[at] != "}":
            name, at = self._scan(text, at)
            at = self._expect(at, ":")
            if not isinstance(name, str):
                raise ValueError("no name")  # noqa: TRY004
            if name.lower() != self._member:
                _, at = self._scan(text, at)
            elif found:
                raise ProblemError("bad-request", f"the body has `{self._member}` twice")
            elif text[at] != "[":
                raise ProblemError("bad-request", f"`{self._member}` must be an array")
            else:
                found = True
                at = yield from self._elements(at)
            at = self._between(at, "}")
        if self._skip(at + 1) != len(text):
            raise ValueError("more behind it")
        if not found:
            raise ProblemError("bad-request", f"the body must be an object with the array `{self._member}`")

    def _elements(self, at: int) -> Generator[Part, None, int]:
        text, at = self._text, self._skip(at + 1)
        while text[at] != "]":
            start, self._exact = at, True
            value, at = self._scan(text, at)
            own = text[start:at]
            yield Part(own, value, self._exact and not _ZERO.search(own) and not _FINE_TIME.search(own))
            at = self._between(at, "]")
        return at + 1

    def _between(self, at: int, end: str) -> int:
        """Behind a comma, at what follows; or at the end."""
        at = self._skip(at)
        if self._text[at] == end:
            return at
        at = self._expect(at, ",")
        if self._text[at] == end:
            raise ValueError("a comma before the end")
        return at

    def _expect(self, at: int, sign: str) -> int:
        at = self._skip(at)
        if self._text[at] != sign:
            raise ValueError("another sign")
        return self._skip(at + 1)

    def _skip(self, at: int) -> int:
        found = _BLANKS.match(self._text, at)
        return at if found is None else found.end()

    def _float(self, literal: str) -> float:
        number = float(literal)
        if repr(number) != literal:
            self._exact = False
        return number


def _refuse(_: str) -> NoReturn:
    raise ValueError("no number")
