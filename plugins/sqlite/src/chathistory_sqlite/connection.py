"""A connection of an engine, kept for good, and its thread."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Literal, TypeVar

import aiosqlite
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from chathistory_core import BackendError, BackendUnavailableError, ConfigurationError

T = TypeVar("T")


def translated(error: sqlite3.Error, name: str) -> BackendError | ConfigurationError:
    """What the caller is told; SQLite's own texts are left out, for some of them quote a value."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)  # the binding's own errors have none
    match code & 0xFF:  # the rest says more about the same failure
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BackendUnavailableError(
                f"{name} was locked by another connection for longer than the busy timeout: "
                "try again, or give a longer busy timeout"
            )
        case sqlite3.SQLITE_FULL:
            return BackendUnavailableError(
                f"{name} cannot grow: free space on its disk, or raise its max_page_count, and try again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return BackendUnavailableError(
                f"{name} cannot be opened or written: let this process write the file and its folder, and try again"
            )
        case sqlite3.SQLITE_IOERR:
            return BackendUnavailableError(f"{name} cannot be read or written: check its disk, and try again")
        case sqlite3.SQLITE_NOTADB:
            return ConfigurationError(f"{name} is no SQLite database, or an encrypted one: give another file")
        case sqlite3.SQLITE_CORRUPT:
            return BackendError(
                f"{name} is damaged: restore it from a backup, or save what is left with `.recover` of the sqlite3 tool"
            )
    return BackendError(f"{name} failed with {getattr(error, 'sqlite_errorname', type(error).__name__)}")


def transact(
    connection: sqlite3.Connection, begin: Literal["BEGIN", "BEGIN IMMEDIATE"], function: Callable[[], T]
) -> T:
    """What the function returns, its changes committed; where it raises, none are."""
    connection.execute(begin)
    try:
        result = function()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # some failures, such as a full disk, have ended it already
            connection.execute("ROLLBACK")
        raise
    return result


def _wait_for_daemons(before: Collection[threading.Thread]) -> None:
    """Wait for the thread of a driver that failed to connect: it tells its end to the loop, which must be there yet."""
    for thread in threading.enumerate():
        if thread.daemon and thread not in before:
            thread.join(1)


class HeldConnection:
    """One connection taken from an engine for good; its functions run on its thread, one after the other."""

    def __init__(self, driver: aiosqlite.Connection, name: str) -> None:
        self._driver = driver
        self._name = name

    @classmethod
    async def take(cls, engine: AsyncEngine, name: str) -> "HeldConnection":
        """A connection that the engine made and no longer counts, so that its pool stays whole and never resets it."""
        before = threading.enumerate()
        try:
            proxy = await engine.raw_connection()
        except (sqlite3.Error, DBAPIError) as error:
            await asyncio.to_thread(_wait_for_daemons, before)
            cause = error.orig if isinstance(error, DBAPIError) else error
            if isinstance(cause, sqlite3.Error):
                raise translated(cause, name) from None
            raise
        driver = proxy.driver_connection
        if not isinstance(driver, aiosqlite.Connection):
            raise ConfigurationError(f"the engine of {name} has a driver of its own: make it for sqlite+aiosqlite://…")
        proxy.detach()
        return cls(driver, name)

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """What the function returns, in one hop to the thread; once queued it runs, also when the task is cancelled.

        The driver's public way to its thread is one statement a hop. These names are what each of its public methods is
        made of, and what SQLAlchemy's dialect uses too.
        """
        driver = self._driver
        return await self.outcome(driver._execute(function, driver._conn))  # type: ignore[no-untyped-call]  # noqa: SLF001 - see above

    def send(self, function: Callable[[sqlite3.Connection], None]) -> None:
        """Run the function in a hop that nobody awaits: it must tell by itself what came of it, and raise nothing."""
        driver = self._driver
        driver._tx.put_nowait((None, partial(function, driver._conn)))  # noqa: SLF001 - as above

    async def outcome(self, awaited: Awaitable[T]) -> T:
        """What it gives, with SQLite's errors translated."""
        try:
            return await awaited
        except sqlite3.Error as error:
            raise translated(error, self._name) from None

    async def close(self) -> None:
        """End the thread, after what waits for it."""
        await self._driver.close()
