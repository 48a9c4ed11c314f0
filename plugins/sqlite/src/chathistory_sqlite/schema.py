"""The tables, for `create_all` and Alembic, and their version."""

import sqlite3

from sqlalchemy import Column, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.schema import CreateIndex, CreateTable, DDLElement

from chathistory_core import ConfigurationError

VERSION = 1
"""Of the schema below."""

metadata = MetaData()
"""Every table of this backend. Times are microseconds since 1970, UTC."""

schema = Table("chathistory_schema", metadata, Column("version", Integer, nullable=False))

conversations = Table(
    "chathistory_conversations",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("key", Text, unique=True, comment="null once it has expired and is being purged: the key is free again"),
    Column("revision", Text, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("record_count", Integer, nullable=False),
    Column("next_position", Integer, nullable=False),
    Column("turn_count", Integer, nullable=False, comment="of all turns ever, also of those no longer remembered"),
    Column("created_at", Integer, nullable=False),
    Column("updated_at", Integer, nullable=False),
    Column("expires_at", Integer),
    sqlite_autoincrement=True,  # an id that came back would find what another process still reads under it
)
Index("chathistory_recent", conversations.c.updated_at.desc(), conversations.c.key)
Index("chathistory_expiry", conversations.c.expires_at, sqlite_where=conversations.c.expires_at.is_not(None))

records = Table(
    "chathistory_records",
    metadata,
    Column("conversation", ForeignKey(conversations.c.id), primary_key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
    Column("format", Text, nullable=False),
    Column("turn_id", Text, nullable=False),
    Column("stored_at", Integer, nullable=False),
)

turns = Table(
    "chathistory_turns",
    metadata,
    Column("conversation", ForeignKey(conversations.c.id), primary_key=True),
    Column("turn_id", Text, primary_key=True),
    Column("number", Integer, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("revision", Text, nullable=False),
    Column("epoch", Text, nullable=False),
    Column("first_position", Integer, nullable=False),
    sqlite_with_rowid=False,  # one tree to write; its rows are small, and those of a conversation stand together
)


def _statements() -> list[str]:
    tables = metadata.sorted_tables
    made: list[DDLElement] = [CreateTable(table, if_not_exists=True) for table in tables]
    indexed: list[DDLElement] = [
        CreateIndex(index, if_not_exists=True) for table in tables for index in sorted(table.indexes, key=str)
    ]
    return [str(statement.compile(dialect=dialect())) for statement in (*made, *indexed)]


_CREATE = _statements()


def has_schema(connection: sqlite3.Connection, name: str) -> bool:
    """Whether the tables are there; `ConfigurationError` where a newer version made them."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (schema.name,)).fetchone():
        return False
    row = connection.execute(f"SELECT max(version) FROM {schema.name}").fetchone()  # noqa: S608 - our own table's name
    version = row[0] or 0
    if version > VERSION:
        raise ConfigurationError(
            f"{name} has schema version {version}, this chathistory-sqlite knows {VERSION}: "
            "upgrade chathistory-sqlite, or use another file"
        )
    return version == VERSION


def create_schema(connection: sqlite3.Connection, name: str) -> None:
    """Make what is missing of the tables, in the caller's transaction, where no other process just did."""
    if not has_schema(connection, name):
        for statement in _CREATE:
            connection.execute(statement)
        connection.execute(f"INSERT INTO {schema.name} (version) VALUES (?)", (VERSION,))  # noqa: S608 - as above
