"""The listing of a store: a page of each shard, merged."""

from asyncio import gather
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from chathistory_core import ConversationSummary, Order
from chathistory_redis import scripts
from chathistory_redis.layout import Shard, microseconds, summary
from chathistory_redis.store import Store

Answer = TypeVar("Answer")

_MOST = 10_000
"""The most entries that one call looks at: the server serves nobody else meanwhile."""


async def list_page(
    store: Store, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
) -> Sequence[ConversationSummary]:
    """The summaries that a backend answers."""
    if order == "key":
        found = await _by_key(store, prefix, "" if after is None else after.key, limit)
        return sorted(found, key=_key)[:limit]
    newest = None
    if not prefix and limit is not None and limit <= _MOST:
        newest = await _newest(store, after, limit)
    if newest is None:  # the set by recency knows no prefixes, and moves under a walk of several calls
        newest = await _by_key(store, prefix, "", None)
        if after is not None:
            newest = [each for each in newest if _recency(each) > _recency(after)]
    return sorted(newest, key=_recency)[:limit]


async def _by_key(store: Store, prefix: str, after: str, limit: int | None) -> list[ConversationSummary]:
    """The first conversations of every shard."""
    return [
        each for page in await _all(store, lambda shard: _walk(store, shard, prefix, after, limit)) for each in page
    ]


async def _walk(store: Store, shard: Shard, prefix: str, after: str, limit: int | None) -> list[ConversationSummary]:
    start = b"(" + after.encode() if after and after >= prefix else b"[" + prefix.encode() if prefix else b"-"
    stop = b"(%b\xff" % prefix.encode() if prefix else b"+"  # no UTF-8 holds that byte
    found: list[ConversationSummary] = []
    more = True
    while more and (limit is None or len(found) < limit):
        most = _MOST if limit is None else min(limit - len(found), _MOST)
        left, last, *entries = await _page(store, shard, "names", start, stop, b"", most)
        found += _summaries(entries)
        more, start = left == b"1", b"(" + last
    return found


async def _newest(store: Store, after: ConversationSummary | None, limit: int) -> list[ConversationSummary] | None:
    """The newest conversations of every shard, or None where so many have expired that one call does not reach them."""
    start = b"-inf" if after is None else b"%d" % -microseconds(after.updated_at)
    behind = b"" if after is None else after.key.encode()
    found: list[ConversationSummary] = []
    for left, _, *entries in await _all(
        store, lambda shard: _page(store, shard, "recent", start, b"+inf", behind, limit)
    ):
        if left == b"1" and len(entries) < 2 * limit:
            return None
        found += _summaries(entries)
    return found


async def _page(
    store: Store, shard: Shard, index: str, start: bytes, stop: bytes, behind: bytes, limit: int
) -> list[bytes]:
    """Whether more may come (b"1"), the last key looked at, then key and head of each conversation."""
    return await store.server.run(
        scripts.PAGE,
        (shard.index("heads"), shard.index(index)),
        (index, start, stop, behind, limit, _MOST),
        action="list conversations",
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


def _key(summary: ConversationSummary) -> str:
    return summary.key


def _recency(summary: ConversationSummary) -> tuple[int, str]:
    return -microseconds(summary.updated_at), summary.key
