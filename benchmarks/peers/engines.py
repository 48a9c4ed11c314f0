"""SQLite behind SQLAlchemy, set as ours is, through the event that SQLAlchemy's documentation names for it.

https://docs.sqlalchemy.org/en/21/dialects/sqlite.html#foreign-key-support
"""

from sqlalchemy import Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry


def set_durability(engine: Engine, durability: str) -> None:
    """Every connection of the engine writes ahead and has this `synchronous`: `FULL` or `NORMAL`.

    Without it these libraries have SQLite's defaults, a rollback journal and `FULL`, and are slower.
    """

    @event.listens_for(engine, "connect")
    def set_pragmas(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA synchronous = {durability}")
        cursor.close()
