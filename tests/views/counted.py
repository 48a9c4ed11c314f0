"""A backend in front of another that counts what is read, and does as it is told before a read."""

from collections.abc import Awaitable, Callable

from tests.passing import Passing

from chathistory_core import ChatHistoryBackend, Conversation


class Counted(Passing):
    """Passes every call on."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        super().__init__(backend)
        self.reads: list[int] = []
        """How many records each read returned."""
        self.before_read: Callable[[int], Awaitable[object]] | None = None
        """Called before each read, with how many there were; it may raise."""

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        if self.before_read is not None:
            await self.before_read(len(self.reads))
        found = await super().get(key, limit=limit, before=before, after=after)
        self.reads.append(len(found.records))
        return found
