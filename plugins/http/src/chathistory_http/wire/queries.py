"""The parameters of a request."""

from collections.abc import Mapping
from typing import Final

from chathistory_core import ConversationSummary, Order
from chathistory_http.wire import percent
from chathistory_http.wire.problems import ProblemError
from chathistory_http.wire.times import read_time, write_time

_MOST: Final = 2**53
"""Beyond every position and count."""


def write_query(**parameters: str | int | None) -> str:
    """`?name=value&…` of those that are not None; empty where none is."""
    given = [f"{name}={percent.encode(str(value))}" for name, value in parameters.items() if value is not None]
    return f"?{'&'.join(given)}" if given else ""


def write_page_query(prefix: str, after: ConversationSummary | None, limit: int | None, order: Order) -> str:
    """The query of a page of summaries; what is as it is by default is left out."""
    recent = order == "recent"
    return write_query(
        prefix=prefix or None,
        after=None if after is None else after.key,
        after_updated_at=None if after is None or not recent else write_time(after.updated_at),
        limit=limit,
        order=order if recent else None,
    )


def read_query(raw: bytes) -> Mapping[str, str]:
    """The parameters of a query string; `+` is a blank.

    Raises:
        ProblemError: bad-request, where it is no percent-encoded UTF-8 or gives a parameter twice.
    """
    parameters: dict[str, str] = {}
    for part in raw.split(b"&"):
        if not part:
            continue
        name, _, value = part.replace(b"+", b" ").partition(b"=")
        try:
            decoded = percent.decode(name)
            if decoded in parameters:
                raise ProblemError("bad-request", f"the query gives {decoded[:100]!r} twice")
            parameters[decoded] = percent.decode(value)
        except ValueError as error:
            raise ProblemError("bad-request", f"the query cannot be read: {error}") from None
    return parameters


def read_count(parameters: Mapping[str, str], name: str) -> int | None:
    """The parameter as a number from 0, or None where it is not given.

    Raises:
        ProblemError: bad-request, where it is something else.
    """
    text = parameters.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST)) and int(text) <= _MOST):
        raise ProblemError("bad-request", f"`{name}` is an integer from 0 to {_MOST} without a sign")
    return int(text)


def read_cursors(parameters: Mapping[str, str]) -> tuple[int | None, int | None, int | None]:
    """`limit`, `before` and `after` of a conversation's page.

    Raises:
        ProblemError: bad-request, where one is no number, or both cursors are given.
    """
    limit, before, after = (read_count(parameters, name) for name in ("limit", "before", "after"))
    if before is not None and after is not None:
        raise ProblemError("bad-request", "`before` and `after` exclude each other: give one")
    return limit, before, after


def read_page_query(parameters: Mapping[str, str]) -> tuple[str, ConversationSummary | None, int | None, Order]:
    """`prefix`, `after`, `limit` and `order` of a page of summaries; of `after` key and time alone are true.

    Raises:
        ProblemError: bad-request, where one is something else.
    """
    limit = read_count(parameters, "limit")
    given = parameters.get("order", "key")
    if given not in ("key", "recent"):
        raise ProblemError("bad-request", "`order` is `key` or `recent`")
    order: Order = "recent" if given == "recent" else "key"
    key, time = parameters.get("after"), parameters.get("after_updated_at")
    if key is None:
        if time is not None:
            raise ProblemError("bad-request", "`after_updated_at` goes with `after`")
        return parameters.get("prefix", ""), None, limit, order
    if order == "recent" and time is None:
        raise ProblemError(
            "bad-request", "with `order=recent`, `after` needs the `after_updated_at` of the same summary"
        )
    try:
        at = read_time(time or "1970-01-01T00:00:00Z")
    except ValueError:
        raise ProblemError("bad-request", "`after_updated_at` is a time such as 2026-11-30T18:39:22.123456Z") from None
    return parameters.get("prefix", ""), ConversationSummary(key, "", "", 0, at, at), limit, order
