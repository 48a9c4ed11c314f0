"""What the floors are measured on: open backends, and conversations that were filled once for all who read them."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeVar

from benchmarks.ours import messages_of
from benchmarks.servers import started
from benchmarks.turns import make_turn, make_turns
from chathistory_core import ChatHistoryBackend, ChatMessage, MessageCodec, Record, new_turn_id, open_backend

T = TypeVar("T")

Store = Literal["memory", "SQLite FULL", "SQLite NORMAL", "Redis"]

STORES: Final[Sequence[Store]] = ("memory", "SQLite FULL", "Redis")
"""One of each backend, as most rows have them."""

_AT_ONCE = 10_000
"""Records that filling gives to one append."""


class Sizes(NamedTuple):
    """How much is stored and how often it is done."""

    longest: int = 1_000_000
    long: int = 10_000
    first: int = 1_000
    conversations: int = 1_000_000
    times: int = 30
    """Appends in a sample of one task."""


QUICK = Sizes(longest=2_000, long=400, first=100, conversations=300, times=3)


class Bench:
    """Opens and fills what is asked for, once."""

    def __init__(self, folder: Path, sizes: Sizes, stack: AsyncExitStack) -> None:
        self.folder = folder
        self.sizes = sizes
        self.codec = MessageCodec()
        self._stack = stack
        self._open: dict[tuple[str, str], ChatHistoryBackend] = {}
        self._done: set[tuple[int, str]] = set()
        self._url = ""
        self._made = 0

    def path(self, store: Store, name: str = "") -> Path:
        """The file of a SQLite store."""
        return self.folder / f"{store}{name}.db"

    def redis_url(self) -> str:
        """Of the server, which is started when it is first asked for."""
        if not self._url:
            self._url = self._stack.enter_context(started(self.folder / "server"))
        return self._url

    async def backend(self, store: Store, name: str = "") -> ChatHistoryBackend:
        """The open store of this kind and name."""
        found = self._open.get((store, name))
        if found is None:
            found = self._open[store, name] = await self._stack.enter_async_context(self._made_backend(store, name))
        return found

    def _made_backend(self, store: Store, name: str) -> ChatHistoryBackend:
        if store == "memory":
            return open_backend("memory://")
        if store == "Redis":
            return open_backend("redis", options={"url": self.redis_url(), "namespace": f"bench{name}"})
        path = self.path(store, name)
        return open_backend(
            "sqlite", options={"url": f"sqlite:///{path}", "synchronous": store.removeprefix("SQLite ")}
        )

    async def filled(self, backend: ChatHistoryBackend, length: int) -> str:
        """The key of a conversation that had this many messages when it was made."""
        key = f"of {length}"

        async def fill() -> None:
            records = await self.records(min(_AT_ONCE, length))
            for start in range(0, length, _AT_ONCE):
                await backend.append(key, records[: length - start], turn_id=new_turn_id())

        await self.once(backend, key, fill)
        return key

    async def once(self, backend: ChatHistoryBackend, name: str, prepare: Callable[[], Awaitable[None]]) -> None:
        """What is to be done once to a backend, under this name, for all rows."""
        if (id(backend), name) not in self._done:
            await prepare()
            self._done.add((id(backend), name))

    async def enter(self, context: AbstractAsyncContextManager[T]) -> T:
        """What is left at the end of all rows."""
        return await self._stack.enter_async_context(context)

    async def records(self, count: int) -> Sequence[Record]:
        """As many records, of turns."""
        messages = [message for turn in make_turns("filled", count // 4) for message in messages_of(turn)]
        return await self.codec.encode("", messages)

    def turn(self) -> list[ChatMessage]:
        """The messages of a new turn."""
        self._made += 1
        return messages_of(make_turn(f"t-{self._made}"))

    async def encoded(self) -> Sequence[Record]:
        """The records of a new turn."""
        return await self.codec.encode("", self.turn())


async def timed(calls: Sequence[Callable[[], Awaitable[object]]]) -> float:
    """The seconds of each call, when one is made after the other."""
    begun = time.perf_counter()
    for call in calls:
        await call()
    return (time.perf_counter() - begun) / len(calls)
