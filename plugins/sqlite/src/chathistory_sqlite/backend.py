"""The backend: options, checks, and the protocol."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from sqlalchemy import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chathistory_core import (
    BackendStateError,
    ConfigurationError,
    Conversation,
    ConversationSummary,
    Limits,
    Opened,
    Operation,
    Order,
    Record,
    Written,
    check_key,
    check_page,
    check_read,
    check_write,
)
from chathistory_sqlite.database import Database
from chathistory_sqlite.pragmas import IN_MEMORY, Synchronous

_inherited: list[Database] = []
"""Of a parent process: a forked child must not close its connections, not even as garbage."""


def _now() -> datetime:
    return datetime.now(UTC)


class SQLiteBackend:
    """Keeps conversations in one SQLite file, which any number of processes may use at once.

    While it is open it holds two connections: one for writes, and one for reads, so that a long read delays no write.
    """

    limits = Limits()

    def __init__(
        self,
        engine: AsyncEngine,
        *,
        ttl: timedelta | None = None,
        synchronous: Synchronous = "FULL",
        clock: Callable[[], datetime] = _now,
    ) -> None:
        """The engine is for `sqlite+aiosqlite` and stays the caller's.

        `ttl` is how long a conversation stays after its last write. With `synchronous="FULL"` an acknowledged write
        survives a power cut, with `"NORMAL"` the death of the process alone. `clock` gives the time, with its offset;
        it is asked in another thread.

        Raises:
            ConfigurationError: another engine, a database in memory, an option out of range.
        """
        dialect, path = engine.dialect, engine.url.database
        if (dialect.name, dialect.driver) != ("sqlite", "aiosqlite"):
            raise ConfigurationError(
                f"the engine is for {dialect.name}+{dialect.driver}: make it for sqlite+aiosqlite:///file.db"
            )
        self._name = f"the SQLite database {path or ':memory:'!r}"
        if not path or path == ":memory:" or engine.url.query.get("mode") == "memory":
            raise ConfigurationError(f"{self._name} {IN_MEMORY}")
        if ttl is not None and ttl <= timedelta(0):
            raise ConfigurationError(f"`ttl` is {ttl}: it must be positive, or None for ever")
        if synchronous not in ("FULL", "NORMAL"):
            raise ConfigurationError(f"`synchronous` is {synchronous!r}: it must be 'FULL' or 'NORMAL'")
        self._path = None if "uri" in engine.url.query else path
        self._engine = engine
        self._owns_engine = False
        self._ttl = ttl
        self._synchronous: Synchronous = synchronous
        self._clock = clock
        self._opened = Opened(self._name)
        self._database: Database | None = None

    @classmethod
    def from_path(
        cls,
        path: str | os.PathLike[str],
        *,
        ttl: timedelta | None = None,
        synchronous: Synchronous = "FULL",
        busy_timeout: timedelta = timedelta(seconds=30),
        clock: Callable[[], datetime] = _now,
    ) -> Self:
        """A backend on the file, with an engine of its own; opening it makes the file where there is none.

        `busy_timeout` is how long a call waits while another process writes.
        """
        if busy_timeout < timedelta(0):
            raise ConfigurationError(f"`busy_timeout` is {busy_timeout}: it must not be negative")
        url = URL.create("sqlite+aiosqlite", database=os.fspath(path))
        engine = create_async_engine(url, connect_args={"timeout": busy_timeout.total_seconds()})
        backend = cls(engine, ttl=ttl, synchronous=synchronous, clock=clock)
        backend._owns_engine = True
        return backend

    def __repr__(self) -> str:
        return f"<SQLiteBackend on {self._engine.url.database!r}>"

    async def __aenter__(self) -> Self:
        self._opened.open()
        if self._database is not None:
            _inherited.append(self._database)
            self._database = None
        database = Database(self._name, synchronous=self._synchronous, clock=self._clock)
        try:
            await database.open(self._engine, self._path, dispose=self._owns_engine)
        except BaseException:
            self._opened.close()
            raise
        self._database = database
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        database = self._open_database()
        self._opened.close()
        self._database = None
        await database.close()

    def _open_database(self) -> Database:
        self._opened.check()
        if self._database is None:
            raise BackendStateError(f"{self._name} is being opened by another task: wait until it is open")
        return self._database

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        check_read(key, limit, before, after)
        return await self._open_database().read(lambda transaction: transaction.get(key, limit, before, after))

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self._put("append", key, records, turn_id, expected_revision, expected_epoch)

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self._put("replace", key, records, turn_id, expected_revision, None)

    async def _put(
        self,
        operation: Operation,
        key: str,
        records: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        batch = check_write(operation, key, records, turn_id, self.limits)
        return await self._open_database().write(
            lambda transaction: transaction.put(
                operation,
                key,
                batch,
                turn_id=turn_id,
                expected_revision=expected_revision,
                expected_epoch=expected_epoch,
                ttl=self._ttl,
                turns_kept=self.limits.turns_kept,
            )
        )

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        check_key(key)
        return await self._open_database().write(lambda transaction: transaction.clear(key, expected_revision))

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        check_page(prefix, limit, order)
        return await self._open_database().read(lambda transaction: transaction.summaries(prefix, after, limit, order))
