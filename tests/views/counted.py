"""A backend in front of another that counts what is read, and does as it is told before a read."""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Self

from chathistory_core import ChatHistoryBackend, Conversation, ConversationSummary, Order, Record, Written


class Counted:
    """Passes every call on."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        self.backend = backend
        self.limits = backend.limits
        self.reads: list[int] = []
        """How many records each read returned."""
        self.before_read: Callable[[int], Awaitable[object]] | None = None
        """Called before each read, with how many there were; it may raise."""

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        if self.before_read is not None:
            await self.before_read(len(self.reads))
        found = await self.backend.get(key, limit=limit, before=before, after=after)
        self.reads.append(len(found.records))
        return found

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self.backend.append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        return await self.backend.clear(key, expected_revision=expected_revision)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        return await self.backend.summaries(prefix=prefix, after=after, limit=limit, order=order)

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.backend.__aexit__(kind, error, traceback)
