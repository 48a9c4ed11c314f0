"""What an operation costs, counted: hops to a thread, commits, steps of SQLite's machine, plans."""

import asyncio
import logging
import os
import re
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

import aiosqlite
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from chathistory_core import ChatHistoryBackend, Order, Record, RevisionConflictError, new_turn_id
from chathistory_sqlite import SQLiteBackend

SHORT = Record(b"x", "chat-message")

_MANY = 1_000_000 if os.environ.get("LONG") == "1" else 100_000


class Watched(Protocol):
    engine: AsyncEngine
    statements: list[str]

    @property
    def writer(self) -> aiosqlite.Connection: ...
    @property
    def reader(self) -> aiosqlite.Connection: ...


Fill = Callable[[ChatHistoryBackend, str, int], Awaitable[None]]


class Hops(logging.Handler):
    """Counts what the driver sends to its threads: it logs each function."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        self.count += record.getMessage().startswith("executing")


@contextmanager
def counted_hops() -> Iterator[Hops]:
    hops, logger = Hops(), logging.getLogger("aiosqlite")
    level = logger.level
    logger.addHandler(hops)
    logger.setLevel(logging.DEBUG)
    try:
        yield hops
    finally:
        logger.removeHandler(hops)
        logger.setLevel(level)


async def append(backend: ChatHistoryBackend, key: str, count: int = 1) -> None:
    await backend.append(key, [SHORT] * count, turn_id=new_turn_id())


def test_every_operation_is_one_hop_and_at_most_one_commit_at_any_length(watched: Watched) -> None:
    @contextmanager
    def one_hop() -> Iterator[None]:
        watched.statements.clear()
        with counted_hops() as hops:
            yield
        assert hops.count == 1
        assert sum(statement.startswith("BEGIN") for statement in watched.statements) == 1
        assert watched.statements.count("COMMIT") == 1

    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            for size in 1, 1_000, backend.limits.max_records:
                key = f"of {size}"
                with one_hop():
                    await append(backend, key, size)
                with one_hop():
                    await append(backend, key, 4)
                with one_hop():
                    await backend.get(key, limit=20)
                with one_hop():
                    await backend.get(key)
                with one_hop():
                    await backend.summaries(prefix="of ")
                with one_hop():
                    await backend.summaries(order="recent", limit=1)
                with one_hop(), pytest.raises(RevisionConflictError):
                    await backend.append(key, [SHORT], turn_id="n", expected_revision="another")
                with one_hop():
                    written = await backend.replace(key, [SHORT] * size, turn_id="r")
                with one_hop():
                    assert await backend.replace(key, [SHORT] * size, turn_id="r") == written._replace(replayed=True)
                with one_hop():
                    assert await backend.clear(key)
                with one_hop():
                    assert not await backend.clear(key)

    asyncio.run(scenario())


async def steps(connection: aiosqlite.Connection, operation: Awaitable[object]) -> int:
    count = 0

    def step() -> None:
        nonlocal count
        count += 1

    await connection.set_progress_handler(step, 1)
    await operation
    await connection.set_progress_handler(step, 0)
    return count


async def fill_long(backend: ChatHistoryBackend) -> None:
    for _ in range(_MANY // backend.limits.max_records):
        await append(backend, "long", backend.limits.max_records)


def test_an_append_costs_the_same_at_10_and_at_100_000_records(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await append(backend, "short", 10)
            await fill_long(backend)
            short = await steps(watched.writer, append(backend, "short", 4))
            long = await steps(watched.writer, append(backend, "long", 4))
            assert short == long > 0

    asyncio.run(scenario())


def test_an_append_looks_once_and_writes_each_row_once(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await append(backend, "k")
            watched.statements.clear()
            await append(backend, "k", 4)

    asyncio.run(scenario())
    words = [" ".join(re.findall(r"^\w+|(?<=INTO |FROM )\w+", statement)) for statement in watched.statements]
    assert words[: words.index("COMMIT") + 1] == [
        "BEGIN",
        "SELECT chathistory_conversations",  # with the turn of this id
        "UPDATE",
        *["INSERT chathistory_records"] * 4,
        "INSERT chathistory_turns",
        "SELECT chathistory_conversations",  # what has expired
        "COMMIT",
    ]


def test_old_turns_are_forgotten_all_at_once_and_no_other_append_pays(
    watched: Watched, outsider: sqlite3.Connection
) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine, synchronous="NORMAL") as backend:
            kept = backend.limits.turns_kept
            found = [await steps(watched.writer, append(backend, "k")) for _ in range(3 * kept + 2)]
            dear = [turn for turn, count in enumerate(found, 1) if count != found[1]]
            assert dear == [1, kept, 2 * kept, 3 * kept]
            assert max(found) < 20 * kept
            assert outsider.execute("SELECT count(*) FROM chathistory_turns").fetchall() == [(kept + 2,)]

    asyncio.run(scenario())


def test_the_newest_records_cost_the_same_at_100_and_at_100_000(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await append(backend, "short", 100)
            await fill_long(backend)
            short = await steps(watched.reader, backend.get("short", limit=20))
            assert await steps(watched.reader, backend.get("long", limit=20)) == short
            short = await steps(watched.reader, backend.get("short", limit=20, after=50))
            assert await steps(watched.reader, backend.get("long", limit=20, after=50)) == short

    asyncio.run(scenario())


def test_what_the_records_of_a_turn_have_in_common_is_kept_once(watched: Watched) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await append(backend, "k", 3)
            first, *others = (await backend.get("k")).records
            for other in others:
                assert other.format is first.format
                assert other.turn_id is first.turn_id
                assert other.stored_at is first.stored_at

    asyncio.run(scenario())


def test_a_page_of_summaries_costs_the_same_among_few_and_among_many(watched: Watched, fill: Fill) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine, synchronous="NORMAL") as backend:

            async def page(order: Order, prefix: str, *, behind: int = 50) -> int:
                (*_, last) = await backend.summaries(prefix=prefix, order=order, limit=behind)
                reading = backend.summaries(prefix=prefix, order=order, limit=20, after=last)
                return await steps(watched.reader, reading)

            await fill(backend, "ann/", 100)
            by_key, recent = await page("key", ""), await page("recent", "")
            sorted_for_her = await page("recent", "ann/")
            await fill(backend, "everybody/", _MANY)
            for prefix in "", "ann/":
                assert await page("key", prefix) <= by_key * 1.1
            for prefix in "", "everybody/":
                assert await page("key", prefix, behind=_MANY // 2) <= by_key * 1.1
            assert await page("recent", "", behind=_MANY // 2) <= recent * 1.1
            assert await page("recent", "ann/") <= sorted_for_her * 1.1
            a_look = 4 * 1_000  # whether there are more under the prefix than are sorted
            assert await page("recent", "everybody/", behind=_MANY // 2) <= recent * 1.1 + a_look

    asyncio.run(scenario())


def test_no_statement_reads_a_whole_table(watched: Watched, path: Path) -> None:
    """Of all that is executed in every operation, purging of expired conversations included."""

    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            watched.statements.clear()
            await append(backend, "k", 3)
            await append(backend, "k")
            await backend.get("k")
            await backend.get("k", after=1, limit=1)
            await backend.summaries(prefix="k")
            page = await backend.summaries(order="recent")
            await backend.summaries(prefix="k", order="recent", after=page[-1])
            await backend.replace("k", [], turn_id="r")
            await backend.clear("k")

    asyncio.run(scenario())
    plans = [plan for statement in watched.statements for plan in _plan(path, statement)]
    assert len(plans) > 20
    assert [plan for plan in plans if plan.startswith("SCAN")] == []


def test_listing_the_newest_conversations_sorts_nothing(watched: Watched, fill: Fill, path: Path) -> None:
    async def scenario() -> None:
        async with SQLiteBackend(watched.engine) as backend:
            await fill(backend, "many/", 1_001)
            watched.statements.clear()
            await backend.summaries(order="recent", limit=10)
            await backend.summaries(prefix="many/", order="recent", limit=10)
            await backend.summaries(limit=10)

    asyncio.run(scenario())
    plans = [plan for statement in watched.statements for plan in _plan(path, statement)]
    assert any("USING INDEX chathistory_recent" in plan for plan in plans)
    assert [plan for plan in plans if "TEMP B-TREE" in plan] == []


def _plan(path: Path, statement: str) -> list[str]:
    if not re.match("SELECT|UPDATE|DELETE", statement, re.IGNORECASE):
        return []
    connection = sqlite3.connect(path)
    try:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]
    finally:
        connection.close()
