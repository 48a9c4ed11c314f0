"""What fails in the middle: a full disk, a lock, a cancelled task. And what no error or log tells."""

import asyncio
import inspect
import logging
import pickle
import re
import sqlite3
import threading
import traceback
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Protocol

import aiosqlite
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryError,
    Record,
    RevisionConflictError,
    TurnConflictError,
    new_turn_id,
)
from chathistory_sqlite import SQLiteBackend

SHORT = Record(b"x", "chat-message")
CANARY = "canary-5d1e"


class Watched(Protocol):
    engine: AsyncEngine
    connections: list[aiosqlite.Connection]
    statements: list[str]

    @property
    def writer(self) -> aiosqlite.Connection: ...
    @property
    def reader(self) -> aiosqlite.Connection: ...


async def append(backend: SQLiteBackend, key: str = "k") -> None:
    await backend.append(key, [SHORT], turn_id=new_turn_id())


def test_the_driver_still_runs_a_function_on_its_thread() -> None:
    """The names of aiosqlite that are not public: where this fails, see `HeldConnection`."""
    assert list(inspect.signature(aiosqlite.Connection._execute).parameters)[:2] == ["self", "fn"]
    assert isinstance(inspect.getattr_static(aiosqlite.Connection, "_conn"), property)

    async def scenario() -> None:
        async with aiosqlite.connect(":memory:") as connection:
            thread = await connection._execute(threading.get_ident)  # type: ignore[no-untyped-call] # what is tested
            assert thread != threading.get_ident()
            assert isinstance(connection._conn, sqlite3.Connection)
            found: list[int] = []
            connection._tx.put_nowait((None, lambda: found.append(threading.get_ident())))
            assert await connection._execute(threading.get_ident) == thread  # type: ignore[no-untyped-call] # as above
            assert found == [thread]

    asyncio.run(scenario())


@pytest.mark.parametrize("operation", ["append", "replace"])
def test_a_full_disk_stores_nothing_of_the_write_and_the_next_call_works(watched: Watched, operation: str) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await append(backend)
            before = await backend.get("k")
            ((pages,),) = await watched.writer.execute_fetchall("PRAGMA page_count")
            await watched.writer.execute_fetchall(f"PRAGMA max_page_count = {pages + 20}")
            large = [Record(b"x" * 10_000, "chat-message")] * 100
            write = backend.append if operation == "append" else backend.replace
            with pytest.raises(BackendUnavailableError, match=r"history\.db' cannot grow: free space") as caught:
                await write("k", large, turn_id="t")
            assert caught.value.retryable
            assert await backend.get("k") == before
            await append(backend)
            assert (await backend.get("k")).record_count == 2
            await watched.writer.execute_fetchall(f"PRAGMA max_page_count = {pages + 2_000}")
            assert not (await write("k", large, turn_id="t")).replayed

    asyncio.run(scenario())


def test_a_lock_held_too_long_is_unavailable_and_the_next_call_works(path: Path, outsider: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, busy_timeout=timedelta(milliseconds=30)) as backend:
            await append(backend)
            outsider.execute("BEGIN IMMEDIATE")
            with pytest.raises(BackendUnavailableError, match=r"history\.db' was locked by another connection"):
                await append(backend)
            with pytest.raises(BackendUnavailableError, match="give a longer busy timeout"):
                await backend.clear("k")
            assert (await backend.get("k")).record_count == 1
            outsider.execute("ROLLBACK")
            await append(backend)
            assert (await backend.get("k")).record_count == 2

    asyncio.run(scenario())


def test_after_any_failure_no_transaction_stays_open(path: Path, outsider: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            written = await backend.append("k", [SHORT], turn_id="t")
            failures: list[Callable[[], Awaitable[object]]] = [
                lambda: backend.append("k", [SHORT], turn_id="n", expected_revision="another"),
                lambda: backend.append("k", [SHORT] * 2, turn_id="t"),
                lambda: backend.clear("k", expected_revision="another"),
            ]
            for failure in failures:
                with pytest.raises((RevisionConflictError, TurnConflictError)):
                    await failure()
                outsider.execute("BEGIN IMMEDIATE")
                outsider.execute("ROLLBACK")
            assert (await backend.get("k")).revision == written.revision

    asyncio.run(scenario())


def test_cancelled_writes_are_whole_or_absent_and_leave_no_transaction_open(
    path: Path, outsider: sqlite3.Connection
) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, synchronous="NORMAL") as backend:
            for round_ in range(60):
                batch = [Record(f"{round_} {index}".encode(), "chat-message") for index in range(20)]
                task = asyncio.create_task(backend.append("k", batch, turn_id=str(round_)))
                for _ in range(round_ % 4):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            found = await backend.get("k")
            turns = [record.turn_id for record in found.records]
            assert all(turns.count(turn_id) == 20 for turn_id in set(turns))
            await append(backend)
            outsider.execute("BEGIN IMMEDIATE")
            outsider.execute("ROLLBACK")
            for round_ in range(60):
                batch = [Record(f"{round_} {index}".encode(), "chat-message") for index in range(20)]
                await backend.append("k", batch, turn_id=str(round_))
            assert (await backend.get("k")).record_count == 60 * 20 + 1

    asyncio.run(scenario())


def test_a_long_read_delays_no_write_and_sees_none_of_it(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            for _ in range(10):
                await append(backend)
            begun, go_on = threading.Event(), threading.Event()

            def hold() -> None:
                if watched.statements[-1].startswith("SELECT CAST(chathistory_records"):
                    begun.set()
                    go_on.wait(30)

            await watched.reader.set_progress_handler(hold, 1)
            reading = asyncio.create_task(backend.get("k"))
            await asyncio.to_thread(begun.wait, 30)
            await append(backend)
            await append(backend, "another")
            assert not reading.done()
            go_on.set()
            assert (await reading).record_count == len((await reading).records) == 10
            await watched.reader.set_progress_handler(hold, 0)
            assert (await backend.get("k")).record_count == 11

    asyncio.run(scenario())


def test_no_error_and_no_log_tells_what_a_message_says(
    watched: Watched, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = Record(CANARY.encode(), "chat-message", CANARY.encode())
    told: list[str] = []

    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await backend.append("k", [canary], turn_id="t")
            await backend.replace("k", [canary], turn_id="r")
            told.append(repr(await backend.get("k")))
            ((pages,),) = await watched.writer.execute_fetchall("PRAGMA page_count")
            await watched.writer.execute_fetchall(f"PRAGMA max_page_count = {pages}")
            failures: list[Callable[[], Awaitable[object]]] = [
                lambda: backend.append("k", [canary] * 2, turn_id="t"),
                lambda: backend.append("k", [canary], turn_id="n", expected_revision="another"),
                lambda: backend.append("k", [canary], turn_id="n", expected_epoch="another"),
                lambda: backend.append("k", [Record(CANARY.encode() * 9_000, "chat-message")], turn_id="n"),
            ]
            for failure in failures:
                with pytest.raises(ChatHistoryError) as caught:
                    await failure()
                told.append("".join(traceback.format_exception(caught.value)))
                assert type(pickle.loads(pickle.dumps(caught.value))) is type(caught.value)
            await backend.clear("k")

    with caplog.at_level(logging.DEBUG):
        asyncio.run(scenario(), debug=True)
    assert "executing" in caplog.text
    assert CANARY not in "".join((*told, caplog.text, *capsys.readouterr()))


def test_a_payload_that_was_edited_into_text_is_read_as_bytes(path: Path, outsider: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await append(backend)
            outsider.execute("UPDATE chathistory_records SET payload = 'schön'")
            assert (await backend.get("k")).records[0].payload == "schön".encode()

    asyncio.run(scenario())


def test_a_read_that_failed_keeps_no_later_one_from_seeing_what_was_written(
    watched: Watched, outsider: sqlite3.Connection
) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            for key in ("broken", "broken too", "k"):
                await backend.append(key, [SHORT] * 3, turn_id="t")
            outsider.execute("UPDATE chathistory_records SET stored_at = 1 << 60 WHERE conversation = 1")
            outsider.execute("UPDATE chathistory_conversations SET created_at = 1 << 60 WHERE key = 'broken too'")
            reads: tuple[Callable[[], Awaitable[object]], ...] = (
                lambda: backend.get("broken"),
                lambda: backend.get("broken", after=0),
                lambda: backend.summaries(),
            )
            for count, read in enumerate(reads, 4):
                with pytest.raises(OverflowError) as kept:  # with its traceback
                    await read()
                await append(backend)
                assert (await backend.get("k")).record_count == count, kept

    asyncio.run(scenario())


def test_the_oldest_driver_that_may_be_installed_runs_what_nobody_awaits() -> None:
    """The thread of an older aiosqlite than 0.22.1 ends at it, and each later call waits for ever."""
    page = Path(__file__).parents[1] / "pyproject.toml"
    (oldest,) = re.findall(r'"aiosqlite>=([0-9.]+),', page.read_text())
    assert tuple(map(int, oldest.split("."))) >= (0, 22, 1)
