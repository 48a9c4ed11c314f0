"""The faults of the kit, on our own backends."""

from functools import partial
from pathlib import Path

import pytest

from chathistory_core import ChatHistoryBackend
from chathistory_core.testing import BackendFactory
from chathistory_core.testing.cancellation import CancellationTests
from chathistory_core.testing.crashes import CrashTests
from chathistory_core.testing.network import NetworkStore, NetworkTests
from chathistory_core.testing.proxy import Address
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_redis import RedisOptions
from chathistory_sqlite import SQLiteBackend


class TestMemory(CancellationTests):
    @pytest.fixture
    def make_backend(self) -> BackendFactory:
        return partial(MemoryBackend, MemoryStore())


class TestSQLite(CancellationTests, CrashTests):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> BackendFactory:
        return partial(SQLiteBackend.from_path, tmp_path / "history.db")


class TestValkey(CancellationTests, CrashTests):
    @pytest.fixture
    def make_backend(self, socket_path: str, namespace: str) -> BackendFactory:
        return RedisOptions(url=f"unix://{socket_path}", namespace=namespace).open


class TestValkeyAtASocket(NetworkTests):
    @pytest.fixture
    def network_store(self, socket_path: str, namespace: str) -> NetworkStore:
        return NetworkStore(
            socket_path, lambda address: RedisOptions(url=f"unix://{address}", namespace=namespace).open()
        )


class TestValkeyAtAPort(NetworkTests):
    @pytest.fixture
    def network_store(self, port: int, namespace: str) -> NetworkStore:
        def make_backend(address: Address) -> ChatHistoryBackend:
            return RedisOptions(url=f"redis://{address[0]}:{address[1]}", namespace=namespace).open()

        return NetworkStore(("127.0.0.1", port), make_backend)
