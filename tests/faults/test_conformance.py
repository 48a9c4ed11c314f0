"""The faults of the kit, on a server of ours at a port; those at a socket are with the other tests of the backend."""

import pytest

from chathistory_core import ChatHistoryBackend
from chathistory_core.testing.network import NetworkStore, NetworkTests
from chathistory_core.testing.proxy import Address
from chathistory_redis import RedisOptions


class TestValkeyAtAPort(NetworkTests):
    @pytest.fixture
    def network_store(self, port: int, namespace: str) -> NetworkStore:
        def make_backend(address: Address) -> ChatHistoryBackend:
            return RedisOptions(url=f"redis://{address[0]}:{address[1]}", namespace=namespace).open()

        return NetworkStore(("127.0.0.1", port), make_backend)
