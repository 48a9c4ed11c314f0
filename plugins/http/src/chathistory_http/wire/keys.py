"""Where a conversation stands in the service: its key as a path, or, where no path can carry it, as a query.

In a path a raw `/` and `%2F` are the same part of a key. What proxies and clients resolve on their way (`.` and `..`),
merge (`//`) or drop (a last `/`) travels as `?key=`.
"""

from typing import Final

from chathistory_http.wire import percent
from chathistory_http.wire.problems import ProblemError

MESSAGES: Final = "/chat-history"
"""Where conversations are messages, as in the article."""

RECORDS: Final = "/records"
"""Where conversations are records."""

ABOUT: Final = "/about"

_IN_PATHS: Final = "/:@!$&'()*+,;="
"""What stands in a path as it is (RFC 3986)."""


def messages_path(key: str) -> str:
    """The path, or path and query, of a conversation's messages."""
    segments = key.split("/")
    if "" in segments or "." in segments or ".." in segments:
        return f"{MESSAGES}?key={percent.encode(key)}"
    return f"{MESSAGES}/{percent.encode(key, safe=_IN_PATHS)}"


def key_in_path(raw: bytes) -> str:
    """The key in what stands behind `/chat-history/`, as it was sent; one trailing `/` is not part of it.

    Raises:
        ProblemError: bad-request, a segment is `.` or `..`, or it is no percent-encoded UTF-8.
    """
    try:
        key = percent.decode(raw.removesuffix(b"/"))
    except ValueError as error:
        raise ProblemError("bad-request", f"the path holds no key: {error}") from None
    if "." in key and not {".", ".."}.isdisjoint(key.split("/")):
        raise ProblemError(
            "bad-request", f"a path with a segment `.` or `..` is ambiguous: send the key as {MESSAGES}?key=…"
        )
    return key
