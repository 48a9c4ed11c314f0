"""A write in whose middle somebody else does something."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from chathistory_core import NO_REVISION, Record, RevisionConflictError, Written
from chathistory_core.conditional import Block, ConditionalBackend

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

Meanwhile = Callable[["Table"], Awaitable[object]]


async def say(table: "Table", turn: str, **expected: str) -> Written:
    async with ConditionalBackend(table) as backend:
        return await backend.append("k", [Record(turn.encode(), "text")], turn_id=turn, **expected)


async def clear(table: "Table") -> bool:
    async with ConditionalBackend(table) as backend:
        return await backend.clear("k")


async def replace_twice(table: "Table") -> None:
    async with ConditionalBackend(table) as backend:
        for turn in ("r", "s"):
            await backend.replace("k", [Record(b"x", "text")], turn_id=turn)


async def begin_anew(table: "Table") -> None:
    assert await clear(table)
    await say(table, "new")


async def texts(table: "Table") -> list[bytes]:
    async with ConditionalBackend(table) as backend:
        return [record.payload for record in (await backend.get("k")).records]


def overtaken(table: "Table", call: str, meanwhile: Meanwhile) -> "Table":
    """The same store; in front of the first `commit` or `scan` that goes through this one, that happens."""

    class Overtaken(type(table)):  # type: ignore[misc]  # the fixture's class
        left = 1

        async def commit(self, *arguments: Any) -> bool:
            await self._first("commit")
            return bool(await table.commit(*arguments))

        async def scan(self, log: str, start: str, stop: str) -> Sequence[Block]:
            await self._first("scan")
            return await table.scan(log, start, stop)

        async def _first(self, made: str) -> None:
            if made == call and self.left:
                self.left = 0
                await meanwhile(table)

    made: Table = Overtaken(slow=False)
    made.heads_by_key, made.logs = table.heads_by_key, table.logs
    return made


def test_a_write_whose_conversation_is_cleared_in_front_of_its_commit_begins_it_anew(
    make_table: "Callable[..., Table]",
) -> None:
    async def scenario(table: "Table") -> None:
        await say(table, "a")
        written = await say(overtaken(table, "commit", clear), "b")
        assert not written.replayed
        assert await texts(table) == [b"b"]
        assert (await say(table, "b")).replayed

    asyncio.run(scenario(make_table(slow=False)))


def test_a_write_whose_conversation_begins_anew_in_front_of_its_commit_leaves_nothing_in_the_old_one(
    make_table: "Callable[..., Table]",
) -> None:
    async def scenario(table: "Table") -> None:
        await say(table, "a")
        await say(overtaken(table, "commit", begin_anew), "b")
        assert await texts(table) == [b"new", b"b"]
        assert await clear(table)
        assert (table.heads_by_key, table.blocks()) == ({}, [])

    asyncio.run(scenario(make_table(slow=False)))


def test_a_clear_takes_what_replaces_in_front_of_its_commit_have_put_there(
    make_table: "Callable[..., Table]",
) -> None:
    async def scenario(table: "Table") -> None:
        await say(table, "a")
        assert await clear(overtaken(table, "commit", replace_twice))
        assert (table.heads_by_key, table.blocks()) == ({}, [])

    asyncio.run(scenario(make_table(slow=False)))


def test_a_turn_that_is_cleared_while_it_is_looked_up_is_new_and_no_conflict(
    make_table: "Callable[..., Table]",
) -> None:
    async def scenario(table: "Table") -> None:
        await say(table, "a", expected_revision=NO_REVISION)
        written = await say(overtaken(table, "scan", clear), "a", expected_revision=NO_REVISION)
        assert not written.replayed
        assert await texts(table) == [b"a"]

    asyncio.run(scenario(make_table(slow=False)))


def test_a_refused_write_to_an_unknown_key_leaves_nothing(make_table: "Callable[..., Table]") -> None:
    async def scenario(table: "Table") -> None:
        with pytest.raises(RevisionConflictError):
            await say(table, "a", expected_revision="another")
        assert (table.heads_by_key, table.blocks()) == ({}, [])

    asyncio.run(scenario(make_table(slow=False)))


def test_a_start_where_a_killed_one_left_its_place_is_created_when_it_is_written(
    make_table: "Callable[..., Table]",
) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    async def scenario(table: "Table") -> None:
        def die() -> None:
            raise asyncio.CancelledError

        table.failing["stage"] = die
        async with ConditionalBackend(table, clock=lambda: noon) as backend:
            with pytest.raises(asyncio.CancelledError):
                await backend.append("k", [Record(b"a", "text")], turn_id="a")
        del table.failing["stage"]
        later = noon + timedelta(hours=1)
        async with ConditionalBackend(table, clock=lambda: later) as backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="a")
            found = await backend.get("k")
        assert (found.created_at, found.updated_at) == (later, later)

    asyncio.run(scenario(make_table(slow=False)))
