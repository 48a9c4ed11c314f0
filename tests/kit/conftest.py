"""Stores to run on, which are closed and opened again as a process that restarts does."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from chathistory_core import ChatHistoryBackend
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_sqlite import SQLiteBackend


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock() -> Clock:
    """The stores' clock; it stands still unless it is moved."""
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def make_backend(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Callable[[], ChatHistoryBackend]:
    """Another unopened backend at each call, over one store."""
    if request.param == "memory":
        return partial(MemoryBackend, MemoryStore(), clock=clock)
    return partial(SQLiteBackend.from_path, tmp_path / "history.db", clock=clock)
