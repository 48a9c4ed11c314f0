"""The backend over a `ConditionalStore`."""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from chathistory_core.backend import Order
from chathistory_core.checks import check_page, check_read, check_write
from chathistory_core.conditional.clearing import clear
from chathistory_core.conditional.listing import page
from chathistory_core.conditional.reading import read, span
from chathistory_core.conditional.state import decode
from chathistory_core.conditional.store import ConditionalStore
from chathistory_core.conditional.tries import Tries
from chathistory_core.conditional.writing import Write, write
from chathistory_core.errors import ConfigurationError, CorruptRecordError
from chathistory_core.keys import check_key
from chathistory_core.opened import Opened
from chathistory_core.records import Conversation, ConversationSummary, Limits, Operation, Record, Written

_SMALLEST_BLOCK = 1_024


def _now() -> datetime:
    return datetime.now(UTC)


class ConditionalBackend:
    """Keeps conversations in a store with a conditional put: all of `ChatHistoryBackend` but a ttl.

    A write stages its records in blocks that nobody looks at, and one conditional put of the conversation's head makes
    them count. When nothing conflicts, an append is a `load`, a `scan` and a `commit`, the first of a conversation two
    more of `load` and `commit` instead of the `scan`; a read is a `load` and a `scan`, a page that ends inside a long
    turn another `scan`. `summaries` by key costs what its page costs, `order="recent"` a read of every head under the
    prefix.
    """

    limits = Limits()

    def __init__(
        self, store: ConditionalStore, *, max_block: int = 256 * 1_024, clock: Callable[[], datetime] = _now
    ) -> None:
        """`max_block` is how many bytes the store takes in one block, at least 1,024.

        `clock` gives the time with its offset; a conversation's times never go back, even if it does.
        """
        if max_block < _SMALLEST_BLOCK:
            raise ConfigurationError(f"`max_block` is {max_block}: it must be at least {_SMALLEST_BLOCK}")
        self._store = store
        self._max_block = max_block
        self._clock = clock
        self._opened = Opened(f"the backend on {type(store).__name__}")

    async def __aenter__(self) -> Self:
        self._opened.open()
        if isinstance(self._store, AbstractAsyncContextManager):
            try:
                await self._store.__aenter__()
            except BaseException:
                self._opened.close()
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._opened.close()
        if isinstance(self._store, AbstractAsyncContextManager):
            await self._store.__aexit__(kind, error, traceback)

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        """See `ChatHistoryBackend`."""
        check_read(key, limit, before, after)
        self._opened.check()
        tries, lacking = Tries(key), ""
        while True:
            await tries.another()
            head = await self._store.load(key)
            state = None if head is None else decode(head)
            if state is None or not state.epoch:
                return Conversation(key)
            positions = span(state.length, limit, before, after)
            records = await read(self._store, state, positions) if positions else ()
            if records is not None:
                return state.with_records(records)
            if state.revision == lacking:
                raise CorruptRecordError(key, positions.start, "the store has lost it or one of those behind it")
            lacking = state.revision

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        """See `ChatHistoryBackend`."""
        return await self._write("append", key, records, turn_id, expected_revision, expected_epoch)

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        """See `ChatHistoryBackend`."""
        return await self._write("replace", key, records, turn_id, expected_revision, None)

    async def _write(
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
        call = Write(operation, key, batch, turn_id, expected_revision, expected_epoch)
        return await write(self._store, call, max_block=self._max_block, clock=self._clock)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        """See `ChatHistoryBackend`."""
        check_key(key)
        self._opened.check()
        return await clear(self._store, key, expected_revision, clock=self._clock)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        """See `ChatHistoryBackend`."""
        check_page(prefix, limit, order)
        self._opened.check()
        return await page(self._store, prefix, after, limit, order)
