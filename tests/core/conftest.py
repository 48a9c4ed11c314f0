from collections.abc import Callable
from functools import partial

import pytest

from chathistory_core import ChatHistoryError
from chathistory_core.testing import BackendTests
from chathistory_memory import MemoryBackend, MemoryStore


@pytest.fixture
def kit_catches() -> Callable[[type[MemoryBackend], str], None]:
    def check(broken: type[MemoryBackend], test: str) -> None:
        # no TypeError, AttributeError or NameError: those would be mistakes of the broken backend itself
        failures = (AssertionError, pytest.fail.Exception, ChatHistoryError, ValueError, OverflowError, TimeoutError)
        with pytest.raises(failures):
            getattr(BackendTests(), test)(partial(broken, MemoryStore()))

    return check
