"""What the fixtures of the kit give, made of a package of ours that may be a changed one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeAlias

from redis import Redis

from chathistory_core import new_turn_id
from chathistory_core.testing import BackendFactory, ExpiringStore, NetworkStore

from .changed import Change, changed
from .mutant import Backend

Fixture: TypeAlias = BackendFactory | ExpiringStore | NetworkStore
Fixtures: TypeAlias = Mapping[str, Callable[[], Fixture]]
"""By name; each call gives a fixture over a new and empty store."""

TTL = timedelta(hours=1)

_MOVABLE = Change(
    "lua/common.lua",
    "return time[1] .. string.format('%06d', time[2])",
    "return number(time[1] * 1000000 + time[2] + (redis.call('GET', 'moved') or 0))",
)
"""Lets a test move the clock of a Redis server."""


class Place(NamedTuple):
    """Where stores may be made."""

    folder: Path
    socket: str
    """Of a Redis or Valkey server."""


@contextmanager
def fixtures(backend: Backend, place: Place, changes: Sequence[Change] = ()) -> Iterator[Fixtures]:
    """The fixtures of the backend with these changes in its code."""
    match backend:
        case "memory":
            with changed("chathistory_memory", changes) as package:
                yield of_memory(package)
        case "SQLite":
            with changed("chathistory_sqlite", changes) as package:
                yield _of_sqlite(package, place.folder)
        case "Redis":
            with changed("chathistory_redis", [_MOVABLE, *changes]) as package:
                yield _of_redis(package, place.socket)


class _Clock:
    """One that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, duration: timedelta) -> None:
        self.now += duration


def of_memory(package: ModuleType) -> Fixtures:
    """Of a memory backend."""

    def expiring() -> ExpiringStore:
        clock = _Clock()
        make_backend = partial(package.MemoryBackend, package.MemoryStore(), ttl=TTL, clock=clock)
        return ExpiringStore(make_backend, TTL, clock.wait)

    return {
        "make_backend": lambda: partial(package.MemoryBackend, package.MemoryStore()),
        "expiring_store": expiring,
    }


def _of_sqlite(package: ModuleType, folder: Path) -> Fixtures:
    def new() -> Path:
        return folder / f"{new_turn_id()}.db"

    def expiring() -> ExpiringStore:
        clock = _Clock()
        return ExpiringStore(partial(package.SQLiteBackend.from_path, new(), ttl=TTL, clock=clock), TTL, clock.wait)

    return {
        "make_backend": lambda: partial(package.SQLiteBackend.from_path, new()),
        "expiring_store": expiring,
    }


def _of_redis(package: ModuleType, socket: str) -> Fixtures:
    url = f"unix://{socket}"

    def wait(duration: timedelta) -> None:
        with Redis.from_url(url) as client:
            client.incrby("moved", duration // timedelta(microseconds=1))

    def network() -> NetworkStore:
        namespace = new_turn_id()
        return NetworkStore(
            socket, lambda address: package.RedisOptions(url=f"unix://{address}", namespace=namespace).open()
        )

    return {
        "make_backend": lambda: package.RedisOptions(url=url, namespace=new_turn_id()).open,
        "expiring_store": lambda: ExpiringStore(
            package.RedisOptions(url=url, namespace=new_turn_id(), ttl=TTL).open, TTL, wait
        ),
        "network_store": network,
    }
