"""What only some backends can has tests of its own: which a backend has to pass, what it does says."""

import asyncio
import inspect
import multiprocessing
import pickle
import socket
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, ClassVar, NamedTuple

from chathistory_core.errors import ChatHistoryError
from chathistory_core.testing.crashes import CrashTests
from chathistory_core.testing.expiry import ExpiryTests
from chathistory_core.testing.network import NetworkTests
from chathistory_core.testing.processes import ProcessTests
from chathistory_core.testing.scenario import BackendFactory, say

_SECONDS = 60
"""How long another process may take to say what it sees."""

_SIGNS: Mapping[type, str] = {
    ProcessTests: "another process sees what this one writes",
    CrashTests: "what another process has written is there when it has ended",
    ExpiryTests: "its constructor takes `ttl`",
    NetworkTests: "it connects to a server",
}
"""The tests of each ability, and what tells that a backend has it."""


class AbilityTests:
    """An ability is declared by the class of its tests among the bases, and proved by them.

    One that is not declared is a failure too, unless `left_out` names its tests.
    """

    left_out: ClassVar[Mapping[type, str]] = {}
    """Tests of what the backend can that are not among the bases, each with the reason: where else they are run."""

    def test_what_it_can_has_its_tests(self, make_backend: BackendFactory) -> None:
        found = abilities(make_backend)
        missing = [
            f"{sign}: add {tests.__name__} to the bases of {type(self).__name__}, or to its `left_out` with a reason"
            for tests, sign in _SIGNS.items()
            if tests in found and not isinstance(self, tests) and not self.left_out.get(tests)
        ]
        assert missing == []
        too_many = [tests.__name__ for tests in self.left_out if tests not in found]
        assert too_many == [], "`left_out` names what the backend cannot"


class Sharing(NamedTuple):
    """Whether processes share a store."""

    reason: str
    """Why another process does not see what this one writes; "" where it does."""
    outlives: bool
    """What another process wrote is there when it has ended."""


def abilities(make_backend: BackendFactory) -> set[type]:
    """The tests of every ability that the backends show."""
    shared = sharing(make_backend)
    signs = {
        ProcessTests: not shared.reason,
        CrashTests: shared.outlives,
        ExpiryTests: "ttl" in inspect.signature(type(make_backend())).parameters,
        NetworkTests: _connects(make_backend),
    }
    return {tests for tests, is_there in signs.items() if is_there}


def sharing(make_backend: BackendFactory) -> Sharing:
    """Whether another process, in which backends are made in the same way, shares the store."""
    try:
        factory = pickle.dumps(make_backend)  # before anything is written, for of a store in memory this is a copy
        asyncio.run(_write(make_backend, "shared: this process"))
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            seen = pool.submit(_read_and_write, factory).result(_SECONDS)
    except ChatHistoryError as error:
        return Sharing(f"another process cannot be tried: {error}", outlives=False)
    except Exception as error:  # noqa: BLE001 - whatever keeps another process away, it shares nothing
        return Sharing(f"another process cannot make or open its backends ({type(error).__name__})", outlives=False)
    if not seen:
        return Sharing("another process does not see what is written", outlives=False)
    return Sharing("", outlives=asyncio.run(_count(make_backend, "shared: another process")) == 1)


def _connects(make_backend: BackendFactory) -> bool:
    """Whether a socket is connected when a backend is opened and called."""

    async def call() -> bool:
        with _connections() as made:  # inside, for on some systems a loop begins with a connection of its own
            async with make_backend() as backend:
                await backend.get("k")
            return bool(made)

    return asyncio.run(call())


@contextmanager
def _connections() -> Iterator[list[object]]:
    """The addresses to which sockets are connected while the block lasts."""
    made: list[object] = []
    connect = socket.socket.connect

    def counted(self: socket.socket, address: Any) -> None:
        made.append(address)
        connect(self, address)

    socket.socket.connect = counted  # type: ignore[method-assign,assignment]  # there is no other way to see it, and it is undone
    try:
        yield made
    finally:
        del socket.socket.connect


async def _write(make_backend: BackendFactory, key: str) -> None:
    async with make_backend() as backend:
        await say(backend, key, "a")


async def _count(make_backend: BackendFactory, key: str) -> int:
    async with make_backend() as backend:
        return (await backend.get(key, limit=0)).record_count


def _read_and_write(factory: bytes) -> int:
    """In another process: how many records of this one it sees."""
    make_backend: BackendFactory = pickle.loads(factory)  # noqa: S301 - of the tests' own
    asyncio.run(_write(make_backend, "shared: another process"))
    return asyncio.run(_count(make_backend, "shared: this process"))
