"""The tests every backend has to pass.

Subclass `BackendTests` and give it one fixture::

    class TestMyBackend(BackendTests):
        @pytest.fixture
        def make_backend(self, tmp_path):
            return functools.partial(MyBackend, tmp_path / "history.db")

`make_backend` makes, at each call, another unopened backend over one store that is empty at first. The tests are plain
functions that run an event loop of their own; pytest needs no plugin and no setting. A backend whose store several
processes can share adds `ProcessTests` (`make_backend` must then be picklable), and `CrashTests` where a write outlives
its process; one with a `ttl` adds `ExpiryTests`, and one behind a network `NetworkTests`. One of the tests looks what a
backend can and says which of these are missing.

Some tests draw their calls by chance, the same ones each time. `BACKEND_TESTS_EXAMPLES=1000` in the environment makes
each of them draw that many cases, others each time.
"""

import pytest

pytest.register_assert_rewrite(
    *(
        f"{__name__}.{module}"
        for module in (
            "abilities",
            "atomicity",
            "awkward",
            "cancellation",
            "checked",
            "clearing",
            "concurrency",
            "crashes",
            "encryption",
            "epochs",
            "expiry",
            "failures",
            "histories",
            "lifecycle",
            "listing",
            "machine",
            "model",
            "network",
            "order",
            "processes",
            "reads",
            "revisions",
            "sizes",
            "suite",
            "turns",
        )
    )
)

from chathistory_core.testing.cancellation import CancellationTests  # noqa: E402 - after assertions are registered
from chathistory_core.testing.crashes import CrashTests  # noqa: E402
from chathistory_core.testing.expiry import ExpiringStore, ExpiryTests  # noqa: E402
from chathistory_core.testing.network import NetworkStore, NetworkTests  # noqa: E402
from chathistory_core.testing.processes import ProcessTests  # noqa: E402
from chathistory_core.testing.proxy import Proxy  # noqa: E402
from chathistory_core.testing.scenario import BackendFactory  # noqa: E402
from chathistory_core.testing.suite import BackendTests  # noqa: E402

__all__ = [
    "BackendFactory",
    "BackendTests",
    "CancellationTests",
    "CrashTests",
    "ExpiringStore",
    "ExpiryTests",
    "NetworkStore",
    "NetworkTests",
    "ProcessTests",
    "Proxy",
]
