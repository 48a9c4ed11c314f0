"""Opening: files, pragmas, schema, engines, and what cannot be opened."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import aiosqlite
import pytest
from sqlalchemy import MetaData
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine
from sqlalchemy.pool import StaticPool

import chathistory_sqlite
from chathistory_core import (
    BackendError,
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryBackend,
    ConfigurationError,
    Record,
)
from chathistory_sqlite import SQLiteBackend

SHORT = Record('{"text": "schön"}'.encode(), "chat-message")


class Watched(Protocol):
    engine: AsyncEngine
    connections: list[aiosqlite.Connection]
    statements: list[str]


def use(backend: ChatHistoryBackend) -> None:
    async def scenario() -> None:
        async with backend:
            await backend.append("k", [SHORT], turn_id="t")
            assert (await backend.get("k")).record_count == 1

    asyncio.run(scenario())


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("borrowed", [False, True])
def test_new_files_are_their_owners_alone(path: Path, open_umask: None, *, borrowed: bool) -> None:
    async def scenario() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with SQLiteBackend(engine) if borrowed else SQLiteBackend.from_path(path) as backend:
            await backend.append("k", [SHORT], turn_id="t")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
            assert modes == {path.name: 0o600, f"{path.name}-wal": 0o600, f"{path.name}-shm": 0o600}

    asyncio.run(scenario())


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
def test_a_file_that_is_there_keeps_its_permissions(path: Path) -> None:
    path.touch(mode=0o640)
    path.chmod(0o640)
    use(SQLiteBackend.from_path(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize(("synchronous", "level", "log"), [("FULL", 2, 1_000), ("NORMAL", 1, 4_000)])
def test_the_connections_are_set_as_promised(watched: Watched, synchronous: "str", level: int, log: int) -> None:
    async def pragma(connection: aiosqlite.Connection, name: str) -> object:
        return next(iter(await connection.execute_fetchall(f"PRAGMA {name}")))[0]

    async def scenario() -> None:
        async with SQLiteBackend(watched.engine, synchronous="FULL" if synchronous == "FULL" else "NORMAL"):
            assert len(watched.connections) == 2
            for connection in watched.connections:
                assert await pragma(connection, "synchronous") == level
                assert await pragma(connection, "journal_mode") == "wal"
                assert await pragma(connection, "secure_delete") == 1
                assert await pragma(connection, "page_size") == 4096
                assert await pragma(connection, "temp_store") == 2
                assert await pragma(connection, "wal_autocheckpoint") == log
            assert [await pragma(each, "query_only") for each in watched.connections] == [0, 1]

    asyncio.run(scenario())


def test_full_is_the_default(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine):
            assert list(await watched.connections[0].execute_fetchall("PRAGMA synchronous")) == [(2,)]

    asyncio.run(scenario())


def test_a_borrowed_engine_stays_usable_and_its_pool_whole(path: Path) -> None:
    async def scenario() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}", pool_size=1, max_overflow=0, pool_timeout=1)
        async with SQLiteBackend(engine) as backend:
            await backend.append("k", [SHORT], turn_id="t")
            async with engine.connect() as connection:
                found = await connection.exec_driver_sql("SELECT count(*) FROM chathistory_records")
                assert found.scalar() == 1
                secure = await connection.exec_driver_sql("PRAGMA query_only")
                assert secure.scalar() == 0
        async with engine.connect() as connection:
            await connection.exec_driver_sql("SELECT 1")
        async with backend:
            assert (await backend.get("k")).record_count == 1
        await engine.dispose()

    asyncio.run(scenario())


def test_disposing_of_a_borrowed_engine_takes_nothing_from_an_open_backend(path: Path) -> None:
    async def scenario() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{path}")
        async with SQLiteBackend(engine) as backend:
            await engine.dispose()
            await backend.append("k", [SHORT], turn_id="t")
            assert (await backend.get("k")).record_count == 1

    asyncio.run(scenario())


def test_a_failed_opening_leaves_no_thread_and_can_be_repeated(path: Path) -> None:
    path.write_bytes(b"no database " * 1_000)
    backend = SQLiteBackend.from_path(path)
    for _ in range(2):
        with pytest.raises(ConfigurationError):
            use(backend)
    path.unlink()
    use(backend)


def test_the_schema_is_that_of_the_metadata(path: Path, tmp_path: Path) -> None:
    """So that migrations made from the metadata find nothing to do."""
    other = tmp_path / "other.db"

    async def create() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{other}")
        async with engine.begin() as connection:
            await connection.run_sync(chathistory_sqlite.metadata.create_all)
        await engine.dispose()

    def made(path: Path) -> list[tuple[str, str]]:
        connection = sqlite3.connect(path)
        try:
            rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
            return [(name, sql.replace("IF NOT EXISTS ", "")) for name, sql in rows]
        finally:
            connection.close()

    asyncio.run(create())
    use(SQLiteBackend.from_path(path))
    assert isinstance(chathistory_sqlite.metadata, MetaData)
    assert made(path) == made(other)
    use(SQLiteBackend.from_path(other))


def test_tables_of_others_in_the_same_file_are_left_alone(path: Path, outsider: sqlite3.Connection) -> None:
    outsider.execute("CREATE TABLE conversations (id INTEGER)")
    outsider.execute("INSERT INTO conversations VALUES (7)")
    outsider.execute("PRAGMA user_version = 12")
    use(SQLiteBackend.from_path(path))
    assert outsider.execute("SELECT id FROM conversations").fetchall() == [(7,)]
    assert outsider.execute("PRAGMA user_version").fetchone() == (12,)


def test_a_newer_schema_is_refused_and_untouched(path: Path, outsider: sqlite3.Connection) -> None:
    use(SQLiteBackend.from_path(path))
    outsider.execute("UPDATE chathistory_schema SET version = 2")
    with pytest.raises(ConfigurationError, match=r"history\.db' has schema version 2, .* knows 1: upgrade"):
        use(SQLiteBackend.from_path(path))
    assert outsider.execute("SELECT version FROM chathistory_schema").fetchall() == [(2,)]


def test_stored_histories_are_readable_as_text_with_sql(path: Path, outsider: sqlite3.Connection) -> None:
    use(SQLiteBackend.from_path(path))
    (found,) = outsider.execute(
        "SELECT position, CAST(payload AS TEXT), json_extract(CAST(payload AS TEXT), '$.text') "
        "FROM chathistory_records JOIN chathistory_conversations ON id = conversation WHERE key = 'k'"
    )
    assert found == (1, SHORT.payload.decode(), "schön")


@pytest.mark.parametrize(
    "url",
    ["sqlite+aiosqlite://", "sqlite+aiosqlite:///:memory:", "sqlite+aiosqlite:///file:x?mode=memory&uri=true"],
)
def test_a_database_in_memory_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"in memory, .*: use the memory backend \(memory://\)"):
        SQLiteBackend(create_async_engine(url, poolclass=StaticPool))


def test_a_database_in_memory_that_only_sqlite_recognises_is_refused_when_it_is_opened() -> None:
    engine = create_async_engine("sqlite+aiosqlite:///file::memory:?cache=shared&uri=true")
    with pytest.raises(ConfigurationError, match="use the memory backend"):
        use(SQLiteBackend(engine))


@pytest.mark.parametrize("path", [":memory:", ""])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match="use the memory backend"):
        SQLiteBackend.from_path(path)


def test_an_engine_of_another_database_is_refused() -> None:
    engine = create_async_engine("postgresql+asyncpg://u:canary@host/db", module=SimpleNamespace(paramstyle="numeric"))
    with pytest.raises(ConfigurationError, match=r"for postgresql\+asyncpg: make it for sqlite\+aiosqlite") as caught:
        SQLiteBackend(engine)
    assert "canary" not in str(caught.value)


def test_options_out_of_range_are_refused(path: Path) -> None:
    with pytest.raises(ConfigurationError, match="`ttl` is 0:00:00"):
        SQLiteBackend.from_path(path, ttl=timedelta(0))
    with pytest.raises(ConfigurationError, match="`busy_timeout` is -1 day"):
        SQLiteBackend.from_path(path, busy_timeout=timedelta(days=-1))
    with pytest.raises(ConfigurationError, match="`synchronous` is 'OFF': it must be 'FULL' or 'NORMAL'"):
        SQLiteBackend.from_path(path, synchronous="OFF")  # type: ignore[arg-type] # what is tested


def test_the_longest_ttl_is_no_overflow(path: Path) -> None:
    use(SQLiteBackend.from_path(path, ttl=timedelta.max))


def test_making_one_touches_no_file(path: Path) -> None:
    SQLiteBackend.from_path(path)
    assert list(path.parent.iterdir()) == []


def test_opening_waits_for_another_that_makes_the_same_new_file(watched: Watched, outsider: sqlite3.Connection) -> None:
    def tried() -> int:
        return sum("journal_mode = WAL" in statement for statement in watched.statements)

    async def scenario() -> None:
        outsider.execute("BEGIN IMMEDIATE")
        outsider.execute("CREATE TABLE other (id INTEGER)")
        backend = SQLiteBackend(watched.engine)
        opening = asyncio.create_task(backend.__aenter__())
        async with asyncio.timeout(30):
            while tried() < 2:
                await asyncio.wait([opening], timeout=0.01)
                assert not opening.done()
        outsider.execute("PRAGMA busy_timeout = 10000")  # each try of the other looks at the file for a moment
        outsider.execute("COMMIT")
        await opening
        await backend.append("k", [SHORT], turn_id="t")
        await backend.__aexit__(None, None, None)

    asyncio.run(scenario())


def test_opening_waits_no_longer_than_the_busy_timeout(path: Path, outsider: sqlite3.Connection) -> None:
    outsider.execute("BEGIN IMMEDIATE")
    outsider.execute("CREATE TABLE other (id INTEGER)")
    backend = SQLiteBackend.from_path(path, busy_timeout=timedelta(milliseconds=50))
    with pytest.raises(BackendUnavailableError, match=r"history\.db' was locked by another connection"):
        use(backend)
    outsider.execute("ROLLBACK")
    use(backend)


def test_a_file_that_is_no_database_is_refused_and_untouched(path: Path) -> None:
    path.write_bytes(b"a letter " * 1_000)
    with pytest.raises(ConfigurationError, match=r"history\.db' is no SQLite database.*: give another file"):
        use(SQLiteBackend.from_path(path))
    assert path.read_bytes() == b"a letter " * 1_000


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is a folder: give the path of a file in it"):
        use(SQLiteBackend.from_path(tmp_path))


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"the folder of .* does not exist: make it first"):
        use(SQLiteBackend.from_path(tmp_path / "missing" / "history.db"))


def test_a_place_where_no_file_can_be_is_refused(path: Path) -> None:
    path.touch()
    with pytest.raises(ConfigurationError, match=r"cannot be made \(.+\): give another path"):
        use(SQLiteBackend.from_path(path / "history.db"))


def test_a_database_that_may_only_be_read_is_read_and_not_written(path: Path) -> None:
    use(SQLiteBackend.from_path(path))

    async def scenario() -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///file:{path}?mode=ro&uri=true")
        async with SQLiteBackend(engine) as backend:
            with pytest.raises(BackendUnavailableError, match="let this process write the file and its folder"):
                await backend.append("k", [SHORT], turn_id="another")
            assert (await backend.get("k")).record_count == 1

    asyncio.run(scenario())


def test_a_file_that_cannot_be_found_by_an_engine_is_refused_and_leaves_no_thread_behind(tmp_path: Path) -> None:
    engine = create_async_engine(f"sqlite+aiosqlite:///file:{tmp_path}/missing.db?mode=rw&uri=true")
    for _ in range(20):
        with pytest.raises(BackendUnavailableError, match="cannot be opened or written"):
            use(SQLiteBackend(engine))


def test_a_database_in_utf_16_is_refused(path: Path, outsider: sqlite3.Connection) -> None:
    outsider.execute("PRAGMA encoding = 'UTF-16le'")
    outsider.execute("CREATE TABLE other (id INTEGER)")
    with pytest.raises(ConfigurationError, match="UTF-16, whose order is another: use a database in UTF-8"):
        use(SQLiteBackend.from_path(path))


def test_a_damaged_database_is_a_clear_error(path: Path) -> None:
    use(SQLiteBackend.from_path(path))
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xaa" * (len(whole) - 4096))
    with pytest.raises(BackendError, match=r"is damaged: restore it from a backup, or save what is left") as caught:
        use(SQLiteBackend.from_path(path))
    assert not caught.value.retryable


def test_used_while_another_task_opens_it_is_a_state_error(path: Path) -> None:
    async def scenario() -> None:
        backend = SQLiteBackend.from_path(path)
        opening = asyncio.create_task(backend.__aenter__())
        await asyncio.sleep(0)
        with pytest.raises(BackendStateError, match="is being opened by another task"):
            await backend.get("k")
        await opening
        await backend.get("k")
        await backend.__aexit__(None, None, None)

    asyncio.run(scenario())


def test_a_cancelled_opening_leaves_it_closed(path: Path) -> None:
    async def scenario() -> None:
        backend = SQLiteBackend.from_path(path)
        for rounds in range(40):
            opening = asyncio.create_task(backend.__aenter__())
            for _ in range(rounds):
                await asyncio.sleep(0)
            opening.cancel()
            try:
                await opening
            except asyncio.CancelledError:
                with pytest.raises(BackendStateError, match="is closed"):
                    await backend.get("k")
            else:
                await backend.__aexit__(None, None, None)
        async with backend:
            await backend.get("k")

    asyncio.run(scenario())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_child_opens_its_own_with_the_same_object(path: Path) -> None:
    script = f"""
import asyncio, os
from chathistory_core import BackendStateError, Record
from chathistory_sqlite import SQLiteBackend

backend = SQLiteBackend.from_path({str(path)!r})

async def use(turn_id):
    async with backend:
        await backend.append("k", [Record(b"x", "chat-message")], turn_id=turn_id)

async def scenario():
    async with backend:
        child = os.fork()
        if child == 0:
            return
        assert os.waitpid(child, 0)[1] == 0
        assert (await backend.get("k")).record_count == 1
        await backend.append("k", [Record(b"y", "chat-message")], turn_id="parent")

loop = asyncio.new_event_loop()
parent = os.getpid()
try:
    loop.run_until_complete(scenario())
except BackendStateError:
    assert os.getpid() != parent
if os.getpid() != parent:
    asyncio.run(use("child"))
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
    use_again = SQLiteBackend.from_path(path)

    async def scenario() -> None:
        async with use_again:
            assert [each.turn_id for each in (await use_again.get("k")).records] == ["child", "parent"]

    asyncio.run(scenario())
