"""The backend to read first: the whole protocol on a dict."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from chathistory_core import (
    NO_REVISION,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    Limits,
    Opened,
    Operation,
    Order,
    Record,
    RevisionConflictError,
    TurnConflictError,
    Written,
    check_key,
    check_page,
    check_read,
    check_write,
    turn_digest,
)
from chathistory_memory.store import MemoryStore

_LONGEST = timedelta(days=1_000_000)
"""More is for ever too, and beyond the last date that there is."""


def _now() -> datetime:
    return datetime.now(UTC)


class MemoryBackend:
    """Keeps conversations in a `MemoryStore`: nothing is shared with callers, and nothing outlives the process."""

    limits = Limits()

    def __init__(
        self,
        store: MemoryStore | None = None,
        *,
        ttl: timedelta | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """`ttl` is how long a conversation stays after its last write; `clock` gives the time with its offset.

        Without a `store` the backend has one of its own, which stays with the object when it is closed.
        """
        if ttl is not None and ttl <= timedelta(0):
            raise ConfigurationError(f"`ttl` is {ttl}: it must be more than nothing")
        self._store = MemoryStore() if store is None else store
        self._ttl = None if ttl is None else min(ttl, _LONGEST)
        self._clock = clock
        self._opened = Opened("the memory backend")

    async def __aenter__(self) -> Self:
        self._opened.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._opened.close()

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        check_read(key, limit, before, after)
        self._opened.check()
        with self._store.lock:
            log = self._store.find(key, self._clock())
            if log is None:
                return Conversation(key)
            return Conversation(*log.summary, records=log.read(limit, before, after))

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return self._write("append", key, records, turn_id, expected_revision, expected_epoch)

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return self._write("replace", key, records, turn_id, expected_revision, None)

    def _write(
        self,
        operation: Operation,
        key: str,
        records: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        batch = check_write(operation, key, records, turn_id, self.limits)
        self._opened.check()
        digest = turn_digest(operation, batch)
        with self._store.lock:
            now = self._clock()
            log = self._store.find(key, now)
            if log is not None and (stored := log.turns.get(turn_id)) is not None:
                if stored.digest != digest:
                    raise TurnConflictError(key, turn_id, stored.written)
                return stored.written._replace(replayed=True)
            if expected_revision is not None and expected_revision != (log.revision if log else NO_REVISION):
                raise RevisionConflictError(key)
            if expected_epoch is not None and expected_epoch != (log.epoch if log else ""):
                raise EpochChangedError(key)
            self._store.purge(now)
            if log is None:
                log = self._store.start(key, now)
            elif operation == "replace":
                log.take_away()
            written = log.put(batch, turn_id, digest, now, turns_kept=self.limits.turns_kept)
            log.expires_at = None if self._ttl is None else now + self._ttl
            return written

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        check_key(key)
        self._opened.check()
        with self._store.lock:
            log = self._store.find(key, self._clock())
            if log is None:
                return False
            if expected_revision is not None and expected_revision != log.revision:
                raise RevisionConflictError(key)
            self._store.drop(key)
            return True

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        check_page(prefix, limit, order)
        self._opened.check()
        with self._store.lock:
            return self._store.page(prefix, after, limit, order, self._clock())
