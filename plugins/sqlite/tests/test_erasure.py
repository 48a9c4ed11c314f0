"""What was cleared, replaced or has expired is in no byte of the files."""

import asyncio
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from chathistory_core import Conversation, Record, new_turn_id
from chathistory_sqlite import SQLiteBackend

NEEDLE = b"needle-7f3a"
HAY = Record(b"hay", "chat-message")
TTL = timedelta(hours=1)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def places(path: Path) -> list[str]:
    return sorted(each.name for each in path.parent.iterdir() if NEEDLE in each.read_bytes())


async def hide(backend: SQLiteBackend, key: str = "k", *, count: int = 50, size: int = 3_000) -> None:
    """Append records with a needle, some of them longer than a page."""
    padding = b"." * size
    await backend.append(key, [Record(NEEDLE + padding, "chat-message"), HAY] * count, turn_id=new_turn_id())
    await backend.append(key, [Record(b"short " + NEEDLE, "chat-message")], turn_id=new_turn_id())


@pytest.fixture
def reader(outsider: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """A connection that may hold a snapshot."""
    yield outsider
    if outsider.in_transaction:
        outsider.execute("ROLLBACK")


@pytest.mark.parametrize("size", [0, 3_000, 100_000])
def test_what_is_cleared_is_in_no_file(path: Path, size: int) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await backend.append("other", [HAY], turn_id="t")
            await hide(backend, size=size)
            assert places(path)
            assert await backend.clear("k")
            assert places(path) == []
        assert places(path) == []

    asyncio.run(scenario())


def test_what_is_replaced_is_in_no_file(path: Path) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await hide(backend)
            await backend.replace("k", [HAY], turn_id="r")
            assert places(path) == []

    asyncio.run(scenario())


def test_what_has_expired_is_gone_from_the_files_after_some_writes(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=300)
            await hide(backend, "another")
            clock.now += TTL
            for _ in range(5):
                await backend.append("living", [HAY], turn_id=new_turn_id())
            assert places(path) == []
            assert [summary.key for summary in await backend.summaries()] == ["living"]

    asyncio.run(scenario())


def test_a_key_that_expired_can_be_used_while_its_records_are_still_being_purged(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=300)
            clock.now += TTL
            await backend.append("k", [HAY], turn_id="t")
            assert places(path)
            found = await backend.get("k")
            assert (found.record_count, [each.record for each in found.records]) == (1, [HAY])
            for _ in range(4):
                await backend.append("k", [HAY], turn_id=new_turn_id())
            assert places(path) == []
            assert (await backend.get("k")).record_count == 5
            assert len(await backend.summaries(order="recent")) == 1

    asyncio.run(scenario())


def test_purging_has_no_part_of_a_conversation_come_back_when_the_clock_goes_back(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=300)
            clock.now += TTL
            await backend.append("other", [HAY], turn_id="t")
            clock.now -= TTL
            assert await backend.get("k") == Conversation("k")
            assert [summary.key for summary in await backend.summaries(order="recent")] == ["other"]

    asyncio.run(scenario())


def test_one_write_purges_a_bounded_number_of_rows(path: Path, outsider: sqlite3.Connection) -> None:
    clock = Clock()

    def rows() -> int:
        count: int = outsider.execute("SELECT count(*) FROM chathistory_records").fetchone()[0]
        return count

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=500, size=0)
            clock.now += TTL
            before = rows()
            await backend.clear("no such key")
            assert 0 < before - rows() <= 200

    asyncio.run(scenario())


def test_writes_that_share_a_commit_purge_as_much_as_each_alone(path: Path, outsider: sqlite3.Connection) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=1_000, size=0)
            clock.now += TTL
            await asyncio.gather(*(backend.append(f"k{number}", [HAY], turn_id="t") for number in range(10)))
            ((left,),) = outsider.execute("SELECT count(*) FROM chathistory_records WHERE conversation = 1")
            assert left == 2_001 - 10 * 200

    asyncio.run(scenario())


def test_opening_purges_what_has_expired(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend)
        clock.now += TTL
        assert places(path)
        async with SQLiteBackend.from_path(path, clock=clock):
            assert places(path) == []

    asyncio.run(scenario())


def test_clearing_what_has_expired_erases_it_at_once(path: Path) -> None:
    clock = Clock()

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, ttl=TTL, clock=clock) as backend:
            await hide(backend, count=500)
            clock.now += TTL
            assert not await backend.clear("k")
            assert places(path) == []

    asyncio.run(scenario())


def test_a_reader_delays_erasure_to_the_next_write_and_fails_nothing(path: Path, reader: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await hide(backend)
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM chathistory_records").fetchone()
            async with asyncio.timeout(10):  # the busy timeout is 30
                assert await backend.clear("k")
            assert await backend.get("k") == Conversation("k")
            assert places(path)
            reader.execute("COMMIT")
            await backend.append("other", [HAY], turn_id="t")
            assert places(path) == []

    asyncio.run(scenario())


def test_a_reader_delays_erasure_to_the_next_opening(path: Path, reader: sqlite3.Connection) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await hide(backend)
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM chathistory_records").fetchone()
            assert await backend.clear("k")
        assert places(path)
        reader.execute("COMMIT")
        async with SQLiteBackend.from_path(path):
            assert places(path) == []

    asyncio.run(scenario())
