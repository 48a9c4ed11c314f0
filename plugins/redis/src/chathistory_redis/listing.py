"""The listing of a store: a page of each shard, merged."""

from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from math import ceil, sqrt
from typing import TypeVar

from chathistory_core import ConversationSummary, Order
from chathistory_redis import scripts
from chathistory_redis.layout import Shard, microseconds, summary
from chathistory_redis.store import Store

Answer = TypeVar("Answer")

_MOST = 1_000
"""Entries that one call of a walk looks at: the server serves nobody else meanwhile, as long as 4 MiB take to read."""

_MOST_NEWEST = 10_000
"""The same where a walk would miss what moves to the front between two calls."""

_ALL = 2**53
"""More conversations than there are."""

_FEW = 100
"""Conversations of a page that delays nobody who shares its round trip."""


async def list_page(
    store: Store, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
) -> Sequence[ConversationSummary]:
    """The summaries that a backend answers."""
    count = _ALL if limit is None else limit
    if order == "key":
        return await _by_key(store, prefix, "" if after is None else after.key, count)
    if not prefix and count <= _MOST_NEWEST:
        found = await _first(store, partial(_newest, store, after), count, _recency)
        if found is not None:
            return found
    # the set by recency knows no prefixes, and moves under a walk of several calls
    newest = sorted(await _by_key(store, prefix, "", _ALL), key=_recency)
    if after is not None:
        newest = [each for each in newest if _recency(each) > _recency(after)]
    return newest[:count]


async def _by_key(store: Store, prefix: str, after: str, limit: int) -> list[ConversationSummary]:
    return await _first(store, partial(_walk, store, prefix, after), limit, lambda each: (0, each.key)) or []


async def _first(
    store: Store,
    ask: Callable[[int, Shard], Awaitable[list[ConversationSummary] | None]],
    limit: int,
    place: Callable[[ConversationSummary], tuple[int, str]],
) -> list[ConversationSummary] | None:
    """The first conversations of all shards, each of which is asked for its own; None where one does not tell them.

    Keys are spread evenly, so a shard seldom has much more than its share of them: it is asked for that first.
    """
    even = limit / len(store.layout.shards)
    most = min(limit, ceil(even + 3 * sqrt(even)))
    while True:
        pages = [page for page in await _all(store, partial(ask, most)) if page is not None]
        if len(pages) < len(store.layout.shards):
            return None
        found = sorted(chain.from_iterable(pages), key=place)[:limit]
        if most == limit or all(len(page) < most or place(page[-1]) > place(found[-1]) for page in pages):
            return found
        most = limit


async def _walk(store: Store, prefix: str, after: str, limit: int, shard: Shard) -> list[ConversationSummary]:
    """The first of a shard's conversations by key."""
    start = b"(" + after.encode() if after and after >= prefix else b"[" + prefix.encode() if prefix else b"-"
    stop = b"(%b\xff" % prefix.encode() if prefix else b"+"  # no UTF-8 holds that byte
    found: list[ConversationSummary] = []
    more = True
    while more and len(found) < limit:
        most = min(limit - len(found), _MOST)
        left, last, *entries = await _page(store, shard, "names", start, stop, b"", most, _MOST)
        found += _summaries(entries)
        more, start = left == b"1", b"(" + last
    return found


async def _newest(
    store: Store, after: ConversationSummary | None, limit: int, shard: Shard
) -> list[ConversationSummary] | None:
    """A shard's newest conversations, or None where so many have expired that one call does not reach them."""
    start = b"-inf" if after is None else b"%d" % -microseconds(after.updated_at)
    behind = b"" if after is None else after.key.encode()
    left, _, *entries = await _page(store, shard, "recent", start, b"+inf", behind, limit, _MOST_NEWEST)
    return None if left == b"1" and len(entries) < 2 * limit else list(_summaries(entries))


async def _page(
    store: Store, shard: Shard, index: str, start: bytes, stop: bytes, behind: bytes, limit: int, most: int
) -> list[bytes]:
    """Whether more may come (b"1"), the last key looked at, then key and head of each conversation."""
    return await store.server.run(
        scripts.PAGE,
        (shard.index("heads"), shard.index(index)),
        (index, start, stop, behind, limit, most),
        action="list conversations",
        together=limit <= _FEW,
    )


async def _all(store: Store, ask: Callable[[Shard], Awaitable[Answer]]) -> list[Answer]:
    """What each shard answers."""
    answers = await gather(*map(ask, store.layout.shards), return_exceptions=True)
    found: list[Answer] = []
    for answer in answers:  # all are there, so no call goes on behind an error
        if isinstance(answer, BaseException):
            raise answer
        found.append(answer)
    return found


def _summaries(entries: Sequence[bytes]) -> Iterator[ConversationSummary]:
    return (summary(key.decode(), head) for key, head in zip(entries[::2], entries[1::2], strict=True))


def _recency(summary: ConversationSummary) -> tuple[int, str]:
    return -microseconds(summary.updated_at), summary.key
