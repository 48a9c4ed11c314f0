"""What every backend must do, on SQLite."""

from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from chathistory_core.testing import BackendFactory, BackendTests, CrashTests, ExpiringStore, ExpiryTests, ProcessTests
from chathistory_sqlite import SQLiteBackend


class TestFile(BackendTests, ProcessTests, CrashTests, ExpiryTests):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> BackendFactory:
        return partial(SQLiteBackend.from_path, tmp_path / "history.db")

    @pytest.fixture
    def expiring_store(self, tmp_path: Path) -> ExpiringStore:
        now = datetime(2026, 1, 1, tzinfo=UTC)

        def wait(duration: timedelta) -> None:
            nonlocal now
            now += duration

        ttl = timedelta(hours=1)
        path = tmp_path / "history.db"
        return ExpiringStore(partial(SQLiteBackend.from_path, path, ttl=ttl, clock=lambda: now), ttl, wait)
