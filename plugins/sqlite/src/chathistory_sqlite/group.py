"""Writes that wait at the same time, committed together."""

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

    def __init__(self, function: Callable[[Transaction], T]) -> None:
        self._function = function
        self._result: T
        self._error: BaseException | None = None
        self.settled = False

    def apply(self, transaction: Transaction) -> None:
        """Do it in the transaction; a conflict, which leaves nothing behind there, becomes its outcome."""
        self._error = None
        try:
            self._result = self._function(transaction)
        except ChatHistoryError as error:
            self._error = error

    def settle(self, error: BaseException | None = None) -> None:
        """Say that it is committed, or that it failed with the error and nothing of it is stored."""
        self._error = self._error if error is None else error
        self.settled = True

    def outcome(self) -> T:
        """What its function returned, or the error that it met."""
        if self._error is not None:
            raise self._error
        return self._result


class Group:
    """The writes that wait for one connection.

    Each write goes to the connection's thread by itself. The first to arrive there commits all that wait by then, and
    those behind it find theirs settled: a lone write waits for no other, and a task that is cancelled takes nobody's
    write along.
    """

    def __init__(self, transaction: Callable[[sqlite3.Connection], Transaction]) -> None:
        """`transaction` wraps one that was just begun."""
        self._transaction = transaction
        self._waiting = deque[Write[Any]]()
        self.removed = False
        """Whether a commit deleted rows with content; for its reader to reset."""

    def add(self, function: Callable[[Transaction], T]) -> Write[T]:
        """A write that waits from now on."""
        write = Write(function)
        self._waiting.append(write)
        return write

    def settle(self, connection: sqlite3.Connection, write: Write[Any]) -> None:
        """Commit the write with all that wait, unless an earlier call has: on the connection's thread."""
        if not write.settled:
            self._commit(connection, [self._waiting.popleft() for _ in range(len(self._waiting))])

    def _commit(self, connection: sqlite3.Connection, writes: Sequence[Write[Any]]) -> None:
        begun = False

        def apply() -> bool:
            nonlocal begun
            begun = True
            transaction = self._transaction(connection)
            for write in writes:
                write.apply(transaction)
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
                    write.settle(error)
        else:
            for write in writes:
                write.settle()
