"""Writes that wait at the same time, committed together."""

import asyncio
import sqlite3
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from chathistory_core import ChatHistoryError
from chathistory_sqlite.connection import transact
from chathistory_sqlite.transaction import Transaction

T = TypeVar("T")


class Write(Generic[T]):
    """A write that waits for its commit, then what became of it."""

    def __init__(self, function: Callable[[Transaction], T], told: asyncio.Future[T]) -> None:
        """`told` is what the caller awaits."""
        self._function = function
        self._told = told
        self._result: T
        self._error: BaseException | None = None

    def apply(self, transaction: Transaction) -> None:
        """Do it in the transaction; a conflict, which leaves nothing behind there, becomes its outcome."""
        self._error = None
        try:
            self._result = self._function(transaction)
        except ChatHistoryError as error:
            self._error = error

    def fail(self, error: BaseException) -> None:
        """Make the error its outcome, for nothing of it is stored."""
        self._error = error

    def tell(self) -> None:
        """Give the caller what its function returned, or the error that it met: on the loop."""
        if self._told.done():  # the caller was cancelled
            return
        if self._error is None:
            self._told.set_result(self._result)
        else:
            self._told.set_exception(self._error)


class Group:
    """The writes that wait for one connection.

    The first to wait calls for the connection's thread, which commits all that wait by the time it gets to them: a lone
    write waits for no other, and any number share one hop there and one back. No task stands for another, so one that
    is cancelled takes nobody's write along.
    """

    def __init__(self, transaction: Callable[[sqlite3.Connection], Transaction]) -> None:
        """`transaction` wraps one that was just begun."""
        self._transaction = transaction
        self._waiting = deque[Write[Any]]()
        self._called = False
        self.removed = False
        """Whether a commit deleted rows with content; for its reader to reset."""

    def add(self, write: Write[Any]) -> bool:
        """Let the write wait; whether the thread is to be called for, because nobody has."""
        self._waiting.append(write)
        if self._called:  # it looks after it has said that nobody has, so it finds the write
            return False
        self._called = True
        return True

    def settle(self, connection: sqlite3.Connection) -> Sequence[Write[Any]]:
        """The writes that waited, each committed or failed, and to be told so: on the connection's thread."""
        self._called = False  # before it looks, for who comes after that must call again
        writes = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if writes:
            self._commit(connection, writes)
        return writes

    def _commit(self, connection: sqlite3.Connection, writes: Sequence[Write[Any]]) -> None:
        begun = False

        def apply() -> bool:
            nonlocal begun
            begun = True
            transaction = self._transaction(connection)
            for write in writes:
                write.apply(transaction)
            transaction.purge(len(writes))
            return transaction.removed

        try:
            self.removed |= transact(connection, "BEGIN IMMEDIATE", apply)
        except BaseException as error:  # noqa: BLE001 - each is raised where its write is awaited
            if begun and len(writes) > 1:
                # One of them cannot be stored, and nothing says which. No savepoints: a full disk ends the whole
                # transaction from inside of one.
                for write in writes:
                    self._commit(connection, [write])
            else:
                for write in writes:
                    write.fail(error)
