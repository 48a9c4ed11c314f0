"""What the tests of the SQLite backend have in common."""

import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import aiosqlite
import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chathistory_core import ChatHistoryBackend, Record


class WatchedEngine:
    """An engine, the connections it made, and what they executed."""

    def __init__(self, path: Path) -> None:
        self.engine: AsyncEngine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        self.connections: list[aiosqlite.Connection] = []
        self.statements: list[str] = []
        event.listen(self.engine.sync_engine, "connect", self._watch)

    def _watch(self, adapted: object, _: object) -> None:
        adapted.run_async(self._trace)  # type: ignore[attr-defined] # AdaptedConnection, which the event does not type

    async def _trace(self, connection: aiosqlite.Connection) -> None:
        self.connections.append(connection)
        await connection.set_trace_callback(self.statements.append)

    @property
    def writer(self) -> aiosqlite.Connection:
        """The one that the backend opens first."""
        return self.connections[0]

    @property
    def reader(self) -> aiosqlite.Connection:
        return self.connections[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "history.db"


@pytest.fixture
def watched(path: Path) -> WatchedEngine:
    return WatchedEngine(path)


@pytest.fixture
def outsider(path: Path) -> Iterator[sqlite3.Connection]:
    """Another connection to the same file."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    yield connection
    connection.close()


@pytest.fixture
def fill(path: Path) -> Callable[[ChatHistoryBackend, str, int], Awaitable[None]]:
    """Makes as many conversations under a prefix: copies of one that the backend wrote, three of them at a time."""

    async def fill(backend: ChatHistoryBackend, prefix: str, count: int) -> None:
        await backend.append(f"{prefix}first", [Record(b"x", "chat-message")], turn_id="t")
        connection = sqlite3.connect(path, isolation_level=None)
        connection.create_function("key_of", 1, lambda number: f"{prefix}{number:07}")
        connection.execute(
            "WITH numbers(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers WHERE n < ?) "
            "INSERT INTO chathistory_conversations (key, revision, epoch, record_count, next_position, turn_count, "
            "created_at, updated_at, expires_at) SELECT key_of(n), revision, epoch, record_count, next_position, "
            "turn_count, created_at, updated_at + n / 3, expires_at FROM numbers, chathistory_conversations "
            "WHERE key = ?",
            (count - 1, f"{prefix}first"),
        )
        connection.close()

    return fill
