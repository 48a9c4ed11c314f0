"""Writes that wait at the same time: one commit for all, and each its own outcome."""

import asyncio
import sqlite3
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from types import FrameType
from typing import Any, Protocol, TypeVarTuple

import aiosqlite
from sqlalchemy.ext.asyncio import AsyncEngine

from chathistory_core import BackendUnavailableError, Record, RevisionConflictError, TurnConflictError, Written
from chathistory_sqlite import SQLiteBackend
from chathistory_sqlite.group import Group, Write
from chathistory_sqlite.transaction import Transaction

Ts = TypeVarTuple("Ts")

SHORT = Record(b"x", "chat-message")


class Watched(Protocol):
    engine: AsyncEngine
    statements: list[str]

    @property
    def writer(self) -> aiosqlite.Connection: ...


@asynccontextmanager
async def busy(watched: Watched) -> AsyncIterator[None]:
    """The writer's thread has something else to do until the block ends, so that all writes begun in it wait."""
    entered, leave = threading.Event(), threading.Event()

    def wait() -> int:
        entered.set()
        leave.wait(30)
        return 1

    await watched.writer.create_function("wait", 0, wait)
    waiting = asyncio.create_task(watched.writer.execute_fetchall("SELECT wait()"))
    await asyncio.to_thread(entered.wait)
    watched.statements.clear()
    try:
        yield
    finally:
        leave.set()
        await waiting


async def together(watched: Watched, *operations: Awaitable[object]) -> Sequence[object]:
    async with busy(watched):
        tasks = [asyncio.ensure_future(operation) for operation in operations]
        await asyncio.sleep(0)
    return await asyncio.gather(*tasks, return_exceptions=True)


def count(watched: Watched, statement: str) -> int:
    return sum(executed.startswith(statement) for executed in watched.statements)


def test_writes_that_wait_at_the_same_time_share_one_commit(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await backend.append("gone", [SHORT], turn_id="t")
            results = await together(
                watched,
                *(backend.append(f"k{number % 8}", [SHORT] * 4, turn_id=f"t{number}") for number in range(32)),
                backend.replace("replaced", [SHORT], turn_id="t"),
                backend.clear("gone"),
            )
            assert (count(watched, "BEGIN"), count(watched, "COMMIT"), count(watched, "ROLLBACK")) == (1, 1, 0)
            assert all(isinstance(result, Written) for result in results[:-1])
            assert results[-1] is True
            for number in range(8):
                kept = await backend.get(f"k{number}")
                assert [record.turn_id for record in kept.records[::4]] == [
                    f"t{number + 8 * turn}" for turn in range(4)
                ]
            assert len({result.revision for result in results if isinstance(result, Written)}) == 33
            assert (await backend.get("gone")).records == ()

    asyncio.run(scenario())


class CountingLoop(asyncio.SelectorEventLoop):
    """Counts how often another thread woke it."""

    woken = 0

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.woken += 1
        return super().call_soon_threadsafe(callback, *args, context=context)


def test_writes_that_wait_at_the_same_time_share_their_way_to_the_thread_and_back(watched: Watched) -> None:
    async def scenario() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        async with SQLiteBackend(watched.engine) as backend:
            await backend.get("k")
            before = loop.woken
            await backend.append("k", [SHORT], turn_id="alone")
            assert loop.woken == before + 1
            async with busy(watched):
                appends = [asyncio.ensure_future(backend.append("k", [SHORT], turn_id=f"t{n}")) for n in range(32)]
                await asyncio.sleep(0)
                before = loop.woken
            await asyncio.gather(*appends)
            await watched.writer.execute_fetchall("SELECT 'behind them'")
            return loop.woken - before

    with asyncio.Runner(loop_factory=CountingLoop) as runner:
        assert runner.run(scenario()) == 3  # by what kept the thread busy, by all 32, and by what came behind


def test_a_conflict_touches_none_of_the_writes_beside_it(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            before = await backend.append("k", [SHORT], turn_id="first")
            results = await together(
                watched,
                backend.append("k", [SHORT], turn_id="second"),
                backend.append("k", [SHORT], turn_id="third", expected_revision=before.revision),
                backend.append("k", [SHORT] * 2, turn_id="first"),
                backend.append("k", [SHORT], turn_id="first"),
                backend.append("k", [SHORT], turn_id="fourth"),
            )
            assert [type(result) for result in results] == [
                Written,
                RevisionConflictError,
                TurnConflictError,
                Written,
                Written,
            ]
            assert results[3] == before._replace(replayed=True)
            assert count(watched, "COMMIT") == 1
            assert [record.turn_id for record in (await backend.get("k")).records] == ["first", "second", "fourth"]

    asyncio.run(scenario())


def test_one_turn_that_is_sent_twice_at_once_is_stored_once(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            results = await together(watched, *(backend.append("k", [SHORT], turn_id="t") for _ in range(4)))
            assert [isinstance(result, Written) and result.replayed for result in results] == [False, True, True, True]
            assert (await backend.get("k")).record_count == 1

    asyncio.run(scenario())


def test_a_cancelled_task_takes_no_other_write_along(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            async with busy(watched):
                tasks = [
                    asyncio.ensure_future(backend.append("k", [SHORT], turn_id=f"t{number}")) for number in range(6)
                ]
                await asyncio.sleep(0)
                for task in tasks[0], tasks[3]:
                    task.cancel()
                await asyncio.sleep(0)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(result, Written) for result in results] == [False, True, True, False, True, True]
            assert isinstance(results[0], asyncio.CancelledError)
            stored = [record.turn_id for record in (await backend.get("k")).records]
            assert {"t1", "t2", "t4", "t5"} <= set(stored)
            again = await backend.append("k", [SHORT], turn_id="t0")  # whether it was stored or not: now it is, once
            assert again.replayed == ("t0" in stored)

    asyncio.run(scenario())


def test_on_a_full_disk_what_fits_is_stored_and_the_rest_says_so(watched: Watched) -> None:
    large = Record(b"x" * 400_000, "chat-message")

    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await backend.append("k", [SHORT], turn_id="first")
            await watched.writer.execute_fetchall("PRAGMA max_page_count = 60")
            results = await together(
                watched,
                backend.append("k", [SHORT], turn_id="small"),
                backend.append("k", [large], turn_id="large"),
                backend.append("k", [SHORT], turn_id="last"),
            )
            assert [type(result) for result in results] == [Written, BackendUnavailableError, Written]
            assert [record.turn_id for record in (await backend.get("k")).records] == ["first", "small", "last"]
            await watched.writer.execute_fetchall("PRAGMA max_page_count = 1000000")
            assert not (await backend.append("k", [large], turn_id="large")).replayed

    asyncio.run(scenario())


def test_while_the_file_is_locked_all_fail_after_one_timeout(watched: Watched, outsider: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await watched.writer.execute_fetchall("PRAGMA busy_timeout = 100")
            outsider.execute("BEGIN IMMEDIATE")
            appends = (backend.append("k", [SHORT], turn_id=f"t{number}") for number in range(64))
            results = await together(watched, *appends)
            assert {type(result) for result in results} == {BackendUnavailableError}
            assert count(watched, "BEGIN") == 1
            outsider.execute("ROLLBACK")
            assert not (await backend.append("k", [SHORT], turn_id="t0")).replayed

    asyncio.run(scenario())


def test_a_write_that_begins_while_the_thread_takes_those_that_wait_is_not_forgotten() -> None:
    """At each instruction of the loop's thread: without a global lock the two run at the same time."""

    def settled(instruction: int) -> tuple[int, int]:
        """How many instructions there are, and how many of three writes are settled when no call is left."""
        group = Group(lambda connection: Transaction(connection, now=0))
        found, calls, seen = 0, 0, 0

        def trace(frame: FrameType, event: str, argument: Any) -> Any:  # as `sys.settrace` has it
            nonlocal found, calls, seen
            if frame.f_code is Group.add.__code__:
                frame.f_trace_opcodes = True
                if event == "opcode":
                    if seen == instruction:
                        sys.settrace(before)
                        found, calls = found + len(group.settle(connection)), calls - 1
                    seen += 1
            return trace

        calls += group.add(write())
        sys.settrace(trace)
        is_first = group.add(write())
        sys.settrace(before)
        calls += is_first
        calls += group.add(write())
        while calls:
            found, calls = found + len(group.settle(connection)), calls - 1
        return seen, found

    def write() -> Write[None]:
        return Write(lambda _: None, loop.create_future())

    before, loop = sys.gettrace(), asyncio.new_event_loop()
    connection = sqlite3.connect(":memory:")  # where there is no table, and so each write fails
    try:
        count, _ = settled(-1)
        assert count > 5
        assert [settled(instruction)[1] for instruction in range(count)] == [3] * count
    finally:
        sys.settrace(before)
        connection.close()
        loop.close()
