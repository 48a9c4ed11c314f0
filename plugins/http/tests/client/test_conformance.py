"""What every backend must do, kept by the client and the service together, over each kind of store."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Protocol

import pytest

from chathistory_core import ChatHistoryBackend, erase
from chathistory_core.testing import BackendFactory, BackendTests, CrashTests, NetworkStore, NetworkTests, ProcessTests
from chathistory_core.testing.proxy import Address
from chathistory_http import HTTPOptions

LONG = pytest.mark.skipif(
    "LONG" not in os.environ, reason="takes a minute or more; LONG in the environment asks for it"
)


class Running(Protocol):
    url: str
    address: tuple[str, int]


def at(address: Address) -> ChatHistoryBackend:
    return HTTPOptions(url=f"http://{address[0]}:{address[1]}").open()


async def empty(url: str) -> None:
    async with HTTPOptions(url=url).open() as backend:
        await erase(backend, "", everything=True)


class TestOverSQLite(BackendTests, ProcessTests, CrashTests, NetworkTests):
    @pytest.fixture
    def make_backend(self, sqlite_service: Running) -> Iterator[BackendFactory]:
        yield HTTPOptions(url=sqlite_service.url).open
        asyncio.run(empty(sqlite_service.url))

    @pytest.fixture
    def network_store(self, sqlite_service: Running) -> Iterator[NetworkStore]:
        yield NetworkStore(sqlite_service.address, at)
        asyncio.run(empty(sqlite_service.url))


class TestOverValkey(BackendTests, NetworkTests):
    left_out: ClassVar[Mapping[type, str]] = dict.fromkeys(
        (ProcessTests, CrashTests), "client and service are the same as over SQLite; LONG asks for the class below"
    )

    @pytest.fixture
    def make_backend(self, valkey_service: Running) -> Iterator[BackendFactory]:
        yield HTTPOptions(url=valkey_service.url).open
        asyncio.run(empty(valkey_service.url))

    @pytest.fixture
    def network_store(self, valkey_service: Running) -> Iterator[NetworkStore]:
        yield NetworkStore(valkey_service.address, at)
        asyncio.run(empty(valkey_service.url))


@LONG
class TestProcessesOverValkey(ProcessTests, CrashTests):
    @pytest.fixture
    def make_backend(self, valkey_service: Running) -> Iterator[BackendFactory]:
        yield HTTPOptions(url=valkey_service.url).open
        asyncio.run(empty(valkey_service.url))


@LONG
def test_the_command_that_checks_stores_finds_every_promise_kept(sqlite_service: Running, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chathistory_core.cli", "check", sqlite_service.url]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The store keeps 14 of 14 obligations, passes 6 of 6 trials." in done.stdout
    costs = [
        line.split() for line in done.stdout.splitlines() if line.startswith(("get all", "append 1 ", "append 100"))
    ]
    assert [each[3] for each in costs] == ["1"] * 9, "more than one round trip, or no table of costs"
