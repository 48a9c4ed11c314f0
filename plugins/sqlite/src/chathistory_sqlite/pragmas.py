"""What a connection is told before its first use, and after content was deleted."""

import sqlite3
import sys
import time
from typing import Any, Literal

from chathistory_core import ConfigurationError

Synchronous = Literal["FULL", "NORMAL"]

IN_MEMORY = "is in memory, where two connections do not meet: use the memory backend (memory://), or give a file"


def configure(connection: sqlite3.Connection, name: str, *, synchronous: Synchronous) -> None:
    """Make the connection one that this backend can use, whatever its engine has made of it."""
    if sys.version_info >= (3, 12):
        connection.autocommit = True  # the transactions are ours
    connection.isolation_level = None
    connection.row_factory = None
    connection.text_factory = str
    if not _value(connection, "SELECT file FROM pragma_database_list WHERE name = 'main'"):
        raise ConfigurationError(f"{name} {IN_MEMORY}")
    connection.execute("PRAGMA page_size = 4096")  # of a new file: what a small write costs grows with the page
    _use_wal(connection, name)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA secure_delete = ON")
    if synchronous == "NORMAL":
        # A log of 16 MiB: what is written often is copied back seldom. With FULL it would not pay, for a commit that
        # makes the log longer takes twice as long to reach the disk as one that goes over it again.
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    connection.execute("PRAGMA temp_store = MEMORY")  # no content in files that nobody erases
    if _value(connection, "PRAGMA encoding") != "UTF-8":
        raise ConfigurationError(f"{name} keeps text in UTF-16, whose order is another: use a database in UTF-8")


def _use_wal(connection: sqlite3.Connection, name: str) -> None:
    until = time.monotonic() + _value(connection, "PRAGMA busy_timeout") / 1_000
    while True:
        try:
            mode = _value(connection, "PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            # The pragma ignores the busy timeout while another connection makes the same new file, so the wait is here.
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() >= until:
                raise
            time.sleep(0.01)
        else:
            if mode != "wal":
                raise ConfigurationError(f"{name} cannot have a write-ahead log there: use a file on a local disk")
            return


def truncate_wal(connection: sqlite3.Connection) -> bool:
    """Whether the write-ahead log, which keeps copies of what was deleted, is empty now; any reader prevents it."""
    timeout = _value(connection, "PRAGMA busy_timeout")
    connection.execute("PRAGMA busy_timeout = 0")  # no write waits for a reader
    try:
        return not _value(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        return False  # the write itself is committed
    finally:
        connection.execute(f"PRAGMA busy_timeout = {timeout}")


def _value(connection: sqlite3.Connection, statement: str) -> Any:
    return connection.execute(statement).fetchone()[0]
