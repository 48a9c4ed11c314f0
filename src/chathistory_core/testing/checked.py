"""The kit as `chathistory check` runs it: on a store that a URL names, with what each test speaks for.

pytest collects the classes of this module; the plugin that runs it gives the fixtures.
"""

import pytest

from chathistory_core.testing.crashes import CrashTests
from chathistory_core.testing.network import NetworkStore, NetworkTests
from chathistory_core.testing.processes import ProcessTests
from chathistory_core.testing.scenario import BackendFactory
from chathistory_core.testing.suite import BackendTests


class CheckedBackend(BackendTests):
    """What every store must do."""

    @pytest.fixture
    def make_backend(self, checked_backend: BackendFactory) -> BackendFactory:
        return checked_backend


class CheckedProcesses(ProcessTests, CrashTests):
    """What a store that several processes share must do."""

    @pytest.fixture
    def make_backend(self, checked_backend: BackendFactory) -> BackendFactory:
        return checked_backend


class CheckedNetwork(NetworkTests):
    """What a store that is a server must do."""

    @pytest.fixture
    def network_store(self, checked_network: NetworkStore) -> NetworkStore:
        return checked_network
