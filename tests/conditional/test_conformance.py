"""What every backend must do, on a good store and on one that is as bad as it may be."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import pytest

from chathistory_core.conditional import ConditionalBackend
from chathistory_core.testing import BackendFactory, BackendTests

if TYPE_CHECKING:
    from tests.conditional.conftest import Table


class TestGoodStore(BackendTests):
    @pytest.fixture
    def make_backend(self, make_table: "Callable[..., Table]") -> BackendFactory:
        return partial(ConditionalBackend, make_table(slow=False))


class TestStoreOfSmallBlocksAndVersionsWhoseDriverRepeatsLostRequests(BackendTests):
    @pytest.fixture
    def make_backend(self, make_table: "Callable[..., Table]") -> BackendFactory:
        table = make_table(max_block=5_000, versions=True, lost=0.02, repeats=8, certain={"put"})
        return partial(ConditionalBackend, table, max_block=5_000)
