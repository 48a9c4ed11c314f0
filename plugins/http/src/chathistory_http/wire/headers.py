"""The headers that carry what a backend's methods take and give."""

import re
from typing import Final, NamedTuple

from chathistory_http.wire import percent
from chathistory_http.wire.problems import ProblemError

TURN_ID: Final = "Idempotency-Key"
EPOCH: Final = "Chat-History-Epoch"
RECORD_COUNT: Final = "Chat-History-Record-Count"
FIRST_POSITION: Final = "Chat-History-First-Position"
REPLAYED: Final = "Chat-History-Replayed"

ANY: Final = "*"

_ETAG: Final = re.compile(r'[ \t]*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"[ \t]*(?:,|$)')


class Tags(NamedTuple):
    """What `If-Match` or `If-None-Match` names."""

    any: bool
    """`*`: whatever exists."""
    strong: tuple[str, ...] = ()
    """Revisions."""
    weak: tuple[str, ...] = ()


def write_etag(revision: str) -> str:
    """The entity tag of a conversation at this revision."""
    return f'"{percent.encode(revision)}"'


def read_etag(etag: str) -> str:
    """The revision in an entity tag that the service made.

    Raises:
        ValueError: it is not one.
    """
    found = _ETAG.fullmatch(etag)
    if found is None:
        raise ValueError("no entity tag")
    return percent.decode(found[2])


def read_tags(name: str, value: str) -> Tags:
    """The tags in the value of `If-Match` or `If-None-Match`; those that no revision could have match none.

    Raises:
        ProblemError: bad-request, where it is no list of entity tags.
    """
    if value.strip(" \t") == ANY:
        return Tags(any=True)
    strong: list[str] = []
    weak: list[str] = []
    at = 0
    while at < len(value):
        found = _ETAG.match(value, at)
        if found is None:
            raise ProblemError(
                "bad-request", f'`{name}` is `*` or entity tags such as "0123": in quotes, between commas'
            )
        at = found.end()
        try:
            revision = percent.decode(found[2])
        except ValueError:
            continue
        if revision:
            (weak if found[1] else strong).append(revision)
    return Tags(any=False, strong=tuple(strong), weak=tuple(weak))


def read_text(name: str, value: str) -> str:
    """The percent-encoded text in a header's value.

    Raises:
        ProblemError: bad-request, where there is none.
    """
    if value.isascii() and value.isprintable():
        try:
            return percent.decode(value.strip(" \t"))
        except ValueError as error:
            raise ProblemError("bad-request", f"`{name}` cannot be read: {error}") from None
    raise ProblemError("bad-request", f"`{name}` is the percent-encoded UTF-8 of a text")
