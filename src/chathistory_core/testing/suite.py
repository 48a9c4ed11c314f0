"""All tests of a backend in one class."""

import pytest

from chathistory_core.testing.abilities import AbilityTests
from chathistory_core.testing.atomicity import AtomicityTests, SnapshotTests
from chathistory_core.testing.awkward import KeyTests
from chathistory_core.testing.cancellation import CancellationTests
from chathistory_core.testing.clearing import ClearTests, ReplaceTests
from chathistory_core.testing.concurrency import HistoryTests
from chathistory_core.testing.encryption import EncryptionTests
from chathistory_core.testing.epochs import EpochTests
from chathistory_core.testing.failures import FailureTests
from chathistory_core.testing.lifecycle import LifecycleTests
from chathistory_core.testing.listing import PageTests, PrefixTests, SummaryTests
from chathistory_core.testing.model import ModelTests
from chathistory_core.testing.order import OrderTests
from chathistory_core.testing.reads import ReadTests, WalkTests
from chathistory_core.testing.revisions import ExpectedEpochTests, RevisionRaceTests, RevisionTests, TimeTests
from chathistory_core.testing.scenario import BackendFactory
from chathistory_core.testing.sizes import FidelityTests, SizeTests
from chathistory_core.testing.turns import ReplayTests, TurnConflictTests, TurnRaceTests


class BackendTests(
    HistoryTests,  # pytest runs the last one first: those that name the broken promise come before random calls
    ModelTests,
    CancellationTests,
    AbilityTests,
    OrderTests,
    EpochTests,
    SnapshotTests,
    AtomicityTests,
    ReplayTests,
    TurnConflictTests,
    TurnRaceTests,
    RevisionTests,
    ExpectedEpochTests,
    RevisionRaceTests,
    TimeTests,
    ReadTests,
    WalkTests,
    ReplaceTests,
    ClearTests,
    SummaryTests,
    PageTests,
    PrefixTests,
    KeyTests,
    FidelityTests,
    EncryptionTests,
    SizeTests,
    FailureTests,
    LifecycleTests,
):
    """What every backend must do: the 14 obligations of `ChatHistoryBackend`, and its `limits`."""

    @pytest.fixture
    def make_backend(self) -> BackendFactory:
        """Another unopened backend at each call, over one store that is empty at first: the subclass's to give."""
        raise NotImplementedError("give the class a fixture `make_backend` that returns a factory of unopened backends")
