"""An open database: its file, its two connections, and what is done with each."""

import asyncio
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy.ext.asyncio import AsyncEngine

from chathistory_core import ConfigurationError
from chathistory_sqlite.connection import HeldConnection, transact
from chathistory_sqlite.group import Group, Write
from chathistory_sqlite.pragmas import Synchronous, configure, truncate_wal
from chathistory_sqlite.schema import create_schema, has_schema
from chathistory_sqlite.transaction import Transaction, microseconds

T = TypeVar("T")

_creating = threading.Lock()
"""Closing a file takes the locks from every connection that this process has to it, so none may be made meanwhile."""


def _create_file(path: Path) -> None:
    """Make a file that only its owner may read, where there is none; its log files get its permissions."""
    try:
        with _creating:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        if path.is_dir():
            raise ConfigurationError(f"{str(path)!r} is a folder: give the path of a file in it") from None
    except FileNotFoundError:
        raise ConfigurationError(f"the folder of {str(path)!r} does not exist: make it first") from None
    except OSError as error:
        raise ConfigurationError(f"{str(path)!r} cannot be made ({error.strerror}): give another path") from None


def _tell(writes: Sequence[Write[Any]]) -> None:
    for write in writes:
        write.tell()


class Database:
    """Reads go to one connection and writes to another, so that neither waits for the other."""

    def __init__(self, name: str, *, synchronous: Synchronous, clock: Callable[[], datetime]) -> None:
        self._name = name
        self._synchronous: Synchronous = synchronous
        self._clock = clock
        self._closing = AsyncExitStack()
        self._group = Group(self._transaction)
        self._wal_is_stale = True  # a process that was killed may have left it so

    async def open(self, engine: AsyncEngine, path: str | None, *, dispose: bool) -> None:
        """Take the connections; with `dispose` the engine ends with them. `path` is a file to make if it is missing."""
        async with AsyncExitStack() as closing:
            if dispose:
                closing.push_async_callback(engine.dispose)
            if path is not None:
                await asyncio.to_thread(_create_file, Path(path))
            self._writer = await HeldConnection.take(engine, self._name)
            closing.push_async_callback(self._writer.close)
            await self._writer.run(self._prepare_writer)
            closing.push_async_callback(self._writer.run, self._truncate_wal)
            self._reader = await HeldConnection.take(engine, self._name)
            closing.push_async_callback(self._reader.close)
            await self._reader.run(self._prepare_reader)
            self._closing = closing.pop_all()

    async def close(self) -> None:
        """Let go of the connections, after what waits for them."""
        await self._closing.aclose()

    async def read(self, function: Callable[[Transaction], T]) -> T:
        """What the function returns, of one snapshot that has every committed write."""

        def snapshot(connection: sqlite3.Connection) -> T:
            return transact(connection, "BEGIN", lambda: function(self._transaction(connection)))

        return await self._reader.run(snapshot)

    async def write(self, function: Callable[[Transaction], T]) -> T:
        """What the function returns, once its changes are committed, with those of all writes that wait by then."""
        loop = asyncio.get_running_loop()
        told: asyncio.Future[T] = loop.create_future()
        if self._group.add(Write(function, told)):
            self._writer.send(lambda connection: self._commit(connection, loop))
        return await self._writer.outcome(told)

    def _commit(self, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop) -> None:
        writes = self._group.settle(connection)
        try:
            self._truncate_wal(connection)
        finally:
            loop.call_soon_threadsafe(_tell, writes)

    def _transaction(self, connection: sqlite3.Connection) -> Transaction:
        return Transaction(connection, microseconds(self._clock()))

    def _truncate_wal(self, connection: sqlite3.Connection) -> None:
        self._wal_is_stale |= self._group.removed
        self._group.removed = False
        if self._wal_is_stale:
            self._wal_is_stale = not truncate_wal(connection)  # else the next write tries again

    def _prepare_writer(self, connection: sqlite3.Connection) -> None:
        configure(connection, self._name, synchronous=self._synchronous)
        if not has_schema(connection, self._name):
            transact(connection, "BEGIN IMMEDIATE", lambda: create_schema(connection, self._name))
        transact(connection, "BEGIN IMMEDIATE", lambda: self._transaction(connection).purge())
        self._truncate_wal(connection)

    def _prepare_reader(self, connection: sqlite3.Connection) -> None:
        configure(connection, self._name, synchronous=self._synchronous)
        connection.execute("PRAGMA query_only = ON")
