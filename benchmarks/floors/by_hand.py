"""The rows of our SQLite backend, written by hand: what nobody who keeps the same can do without."""

import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path

from chathistory_core import Record, new_turn_id

_UPDATE_HEAD = """
    UPDATE chathistory_conversations
    SET revision = ?, record_count = record_count + ?, next_position = next_position + ?, turn_count = turn_count + 1,
        updated_at = ?
    WHERE key = ? RETURNING id, epoch, next_position, turn_count
"""
_INSERT_HEAD = """
    INSERT INTO chathistory_conversations
        (key, revision, epoch, record_count, next_position, turn_count, created_at, updated_at)
    VALUES (?, ?, ?, 0, 1, 0, ?, ?)
"""
_INSERT_RECORD = """
    INSERT INTO chathistory_records (conversation, position, payload, format, turn_id, stored_at)
    VALUES (?, ?, ?, ?, ?, ?)
"""
_INSERT_TURN = """
    INSERT INTO chathistory_turns (conversation, turn_id, number, digest, revision, epoch, first_position)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""


@asynccontextmanager
async def connected(path: Path, durability: str) -> AsyncIterator[sqlite3.Connection]:
    """A connection to a file in which our backend has made its tables, with the settings that it uses."""
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    for pragma in ("journal_mode = WAL", f"synchronous = {durability}", "secure_delete = ON", "temp_store = MEMORY"):
        connection.execute(f"PRAGMA {pragma}")
    with closing(connection):
        yield connection


def append(connection: sqlite3.Connection, key: str, records: Sequence[Record]) -> None:
    """A turn in one transaction: its head, its records, its own row. It knows no retry, no conflict and no expiry."""
    revision, turn_id, now, count = secrets.token_hex(16), new_turn_id(), time.time_ns() // 1_000, len(records)
    connection.execute("BEGIN IMMEDIATE")
    update = (revision, count, count, now, key)
    head = connection.execute(_UPDATE_HEAD, update).fetchone()
    if head is None:
        connection.execute(_INSERT_HEAD, (key, revision, secrets.token_hex(16), now, now))
        head = connection.execute(_UPDATE_HEAD, update).fetchone()
    conversation, epoch, following, number = head
    first = following - count
    connection.executemany(
        _INSERT_RECORD,
        [
            (conversation, position, record.payload, record.format, turn_id, now)
            for position, record in enumerate(records, first)
        ],
    )
    digest = secrets.token_bytes(16)
    connection.execute(_INSERT_TURN, (conversation, turn_id, number, digest, revision, epoch, first))
    connection.execute("COMMIT")
