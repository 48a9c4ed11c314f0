"""Reading what is longer than a page, or what has changed since: written once, over any backend."""

from collections.abc import AsyncIterator

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import BackendError, EpochChangedError
from chathistory_core.records import Conversation, StoredRecord


async def read_on(
    backend: ChatHistoryBackend, key: str, held: Conversation, *, limit: int | None = None
) -> Conversation | None:
    """What came behind the records that the caller holds, or None for "start over".

    `held` is what the caller read before, with at least the last record of it; who holds no record gets the first ones.
    The answer's records are the new ones alone, at most `limit`. It is None where a held record may be gone: the epoch
    is another, or the record at the last held position is not the one that is held (same position, turn and time:
    after a failover a turn can land on its old position behind other records).
    """
    if not held.records:
        return await backend.get(key, after=0, limit=limit)
    last = held.records[-1]
    found = await backend.get(key, after=last.position - 1, limit=None if limit is None else limit + 1)
    if found.epoch != held.epoch or not found.records or not _same(found.records[0], last):
        return None
    return found._replace(records=found.records[1:])


def _same(one: StoredRecord, other: StoredRecord) -> bool:
    return (one.position, one.turn_id, one.stored_at) == (other.position, other.turn_id, other.stored_at)


async def iter_records(backend: ChatHistoryBackend, key: str, *, page: int = 1_000) -> AsyncIterator[StoredRecord]:
    """Every record of the conversation up to the head that was first seen, in the memory of one page.

    Raises:
        EpochChangedError: records were taken away on the way.
    """
    if page < 1:
        raise ValueError(f"`page` is {page}: a page has at least one record")
    found: Conversation | None = await backend.get(key, after=0, limit=page)
    left = found.record_count if found is not None else 0
    while found is not None:
        for record in found.records[:left]:
            yield record
        left -= len(found.records)
        if left <= 0:
            return
        found = await read_on(backend, key, found, limit=page) if found.records else None
    raise EpochChangedError(key)


async def erase(backend: ChatHistoryBackend, prefix: str, *, everything: bool = False) -> int:
    """Clear every conversation whose key begins with `prefix`, until a pass finds none; how many were cleared.

    `everything=True` stands for the empty prefix, which is not taken by itself.

    Raises:
        BackendError: a conversation is there again however often it is cleared.
    """
    if not prefix and not everything:
        raise ValueError("an empty prefix would clear every conversation: say `everything=True` where that is meant")
    if prefix and everything:
        raise ValueError(f"`everything=True` goes with an empty prefix, not with {prefix!r}")
    cleared = 0
    times: dict[str, int] = {}
    while page := await backend.summaries(prefix=prefix, limit=1_000):
        times = {summary.key: times.get(summary.key, 0) + 1 for summary in page}
        for summary in page:
            if times[summary.key] > _TIMES:
                raise BackendError(
                    f"conversation {summary.key!r} is there again after it was cleared {_TIMES} times: stop whoever "
                    "writes to it, or check that the backend's `clear` removes it"
                )
            cleared += await backend.clear(summary.key)
    return cleared


_TIMES = 100
"""How often `erase` clears a conversation that comes back."""
