"""Backends to run on, and one that stands before another and goes wrong as it is told."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    Conversation,
    ConversationSummary,
    Limits,
    Order,
    Record,
    Written,
)
from chathistory_core.opening import open_backend
from chathistory_memory import MemoryBackend


class Between:
    """Passes calls on and counts them; loses replies, fails, waits or runs something before a call, when told."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        self.backend = backend
        self.limits: Limits = backend.limits
        self.calls: list[str] = []
        self.steps = 0
        """How many times an append gives way before it writes, and again after it."""
        self.lost_replies = 0
        self.failures = 0
        self.hangs = False
        self.before_append: Callable[[], Awaitable[object]] | None = None

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        self.calls.append("get")
        return await self.backend.get(key, limit=limit, before=before, after=after)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        self.calls.append("append")
        if self.hangs:
            await asyncio.Event().wait()
        for _ in range(self.steps):
            await asyncio.sleep(0)
        if self.before_append is not None:
            action, self.before_append = self.before_append, None
            await action()
        if self.failures:
            self.failures -= 1
            raise BackendUnavailableError("the store is down")
        written = await self.backend.append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )
        for _ in range(self.steps):
            await asyncio.sleep(0)
        if self.lost_replies:
            self.lost_replies -= 1
            raise BackendUnavailableError("the reply was lost")
        return written

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        self.calls.append("replace")
        return await self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        self.calls.append("clear")
        return await self.backend.clear(key, expected_revision=expected_revision)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        self.calls.append("summaries")
        return await self.backend.summaries(prefix=prefix, after=after, limit=limit, order=order)

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.backend.__aexit__(kind, error, traceback)


@pytest.fixture
def between() -> Callable[[], Between]:
    """A memory backend with something between it and its user."""
    return lambda: Between(MemoryBackend())


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Between:
    """Each of the two kinds of backend, with something between it and its user."""
    return Between(MemoryBackend() if request.param == "memory" else open_backend(f"sqlite:///{tmp_path}/history.db"))
