"""Backends to run on, and one that stands before another and goes wrong as it is told."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.passing import Call, Passing, T

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
)
from chathistory_core.opening import open_backend
from chathistory_memory import MemoryBackend


class Between(Passing):
    """Passes calls on and counts them; loses replies, fails, waits or runs something before a call, when told."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        super().__init__(backend)
        self.calls: list[str] = []
        self.steps = 0
        """How many times an append gives way before it writes, and again after it."""
        self.lost_replies = 0
        self.failures = 0
        self.hangs = False
        self.before_append: Callable[[], Awaitable[object]] | None = None

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        self.calls.append(call.operation)
        if call.operation != "append":
            return await go_on()
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
        result = await go_on()
        for _ in range(self.steps):
            await asyncio.sleep(0)
        if self.lost_replies:
            self.lost_replies -= 1
            raise BackendUnavailableError("the reply was lost")
        return result


@pytest.fixture
def between() -> Callable[[], Between]:
    """A memory backend with something between it and its user."""
    return lambda: Between(MemoryBackend())


@pytest.fixture(params=["memory", "sqlite"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Between:
    """Each of the two kinds of backend, with something between it and its user."""
    return Between(MemoryBackend() if request.param == "memory" else open_backend(f"sqlite:///{tmp_path}/history.db"))
