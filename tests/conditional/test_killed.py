"""What a killed or outrun writer leaves hurts nobody and is removed."""

import asyncio
from collections.abc import Awaitable, Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from chathistory_core import (
    BackendUnavailableError,
    Conversation,
    CorruptRecordError,
    Record,
    RevisionConflictError,
    Written,
)
from chathistory_core.conditional import ConditionalBackend

if TYPE_CHECKING:
    from tests.conditional.conftest import Killed, Table

MakeTable = Callable[..., "Table"]


def _batch(*texts: str) -> list[Record]:
    return [Record(text.encode(), "text") for text in texts]


def _texts(found: Conversation) -> list[str]:
    return [record.payload.decode() for record in found.records]


async def _say(table: "Table", turn_id: str, *texts: str) -> Written:
    async with ConditionalBackend(table) as backend:
        return await backend.append("k", _batch(*texts), turn_id=turn_id)


async def _replace(table: "Table", turn_id: str, *texts: str) -> Written:
    async with ConditionalBackend(table) as backend:
        return await backend.replace("k", _batch(*texts), turn_id=turn_id)


async def _clear(table: "Table") -> bool:
    async with ConditionalBackend(table) as backend:
        return await backend.clear("k")


async def _read(table: "Table") -> list[str]:
    async with ConditionalBackend(table) as backend:
        found = await backend.get("k")
        assert [summary.record_count for summary in await backend.summaries()] == (
            [found.record_count] if found.revision else []
        )
        return _texts(found)


@pytest.fixture
def kill(killed: "type[Killed]") -> Callable[["Table", str, Awaitable[object]], Awaitable[None]]:
    """Lets a call die before its first request of a kind."""

    async def kill(table: "Table", kind: str, call: Awaitable[object]) -> None:
        def die() -> None:
            if kind != "put" or table.heads_by_key:  # the first put is but of the place to start on
                raise killed

        table.failing[kind] = die
        with pytest.raises(killed):
            await call
        del table.failing[kind]

    return kill


Kill = Callable[["Table", str, Awaitable[object]], Awaitable[None]]


def _sizes(table: "Table") -> list[int]:
    return sorted(len(block.body) for block in table.blocks())


def test_what_a_killed_append_staged_is_not_seen_and_in_nobodys_way(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "1", "a", "b")
        for number in range(3):
            await kill(table, "put", _say(table, f"dead {number}", *["dead"] * (number + 1)))
            assert await _read(table) == ["a", "b", *map(str, range(number))]
            await _say(table, f"next {number}", str(number))
        assert await _read(table) == ["a", "b", "0", "1", "2"]
        async with ConditionalBackend(table) as backend:
            for position in range(1, 6):
                whole = ["a", "b", "0", "1", "2"]
                assert _texts(await backend.get("k", after=position - 1, limit=1)) == whole[position - 1 : position]
                assert _texts(await backend.get("k", before=position)) == whole[: position - 1]

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("write", [_say, _replace])
@pytest.mark.parametrize("starts", [True, False])
def test_a_write_that_was_killed_many_times_is_stored_once_and_leaves_nothing_else(
    make_table: MakeTable,
    kill: Kill,
    write: Callable[..., Awaitable[Written]],
    starts: bool,
) -> None:
    async def scenario(table: "Table", deaths: int) -> list[int]:
        if not starts:
            await _say(table, "start", "start")
        for _ in range(deaths):
            await kill(table, "put", write(table, "t", "a" * 1_000, "b"))
        await write(table, "t", "a" * 1_000, "b")
        assert (await _read(table))[-2:] == ["a" * 1_000, "b"]
        return _sizes(table)

    undisturbed = asyncio.run(scenario(make_table(), 0))
    assert asyncio.run(scenario(make_table(), 20)) == undisturbed


def test_a_killed_start_is_listed_nowhere_and_the_next_one_starts(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        for kind in "put", "stage":
            await kill(table, kind, _say(table, "dead", "dead"))
            assert await _read(table) == []
        written = await _say(table, "t", "a")
        assert (written.first_position, await _read(table)) == (1, ["a"])

    asyncio.run(scenario(make_table()))


def test_a_killed_replace_leaves_the_old_and_the_next_replace_works(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "1", "a")
        await kill(table, "put", _replace(table, "dead", "dead", "dead"))
        assert await _read(table) == ["a"]
        await _say(table, "2", "b")
        await _replace(table, "3", "x")
        assert await _read(table) == ["x"]
        await _say(table, "4", "y")
        assert await _read(table) == ["x", "y"]

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("finish", [_clear, lambda table: _say(table, "new", "new")])
def test_a_clear_that_was_killed_half_way_is_finished_by_the_next_write_or_clear(
    make_table: MakeTable, kill: Kill, finish: Callable[["Table"], Awaitable[object]]
) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "1", "secret", "secret")
        await kill(table, "drop", _clear(table))
        assert await _read(table) == []
        assert any(b"secret" in block.body for block in table.blocks())
        assert await finish(table) is not True
        assert not any(b"secret" in block.body for block in table.blocks())

    asyncio.run(scenario(make_table()))


def test_a_replace_that_was_killed_before_it_dropped_the_old_is_finished_by_the_next_write(
    make_table: MakeTable, kill: Kill
) -> None:
    async def scenario(table: "Table", retry: Callable[["Table"], Awaitable[Written]]) -> None:
        await _say(table, "1", "secret")
        await kill(table, "drop", _replace(table, "2", "x"))
        assert any(b"secret" in block.body for block in table.blocks())
        await retry(table)
        assert not any(b"secret" in block.body for block in table.blocks())
        assert (await _read(table))[:1] == ["x"]

    asyncio.run(scenario(make_table(), lambda table: _replace(table, "2", "x")))
    asyncio.run(scenario(make_table(), lambda table: _say(table, "3", "y")))


def test_a_clear_removes_what_killed_writers_left(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        await kill(table, "put", _say(table, "dead 0", "dead"))
        await kill(table, "put", _say(table, "dead 1", "dead"))
        await _say(table, "1", "a")
        await kill(table, "put", _say(table, "dead 2", "dead"))
        await kill(table, "put", _replace(table, "dead 3", "dead"))
        await kill(table, "drop", _replace(table, "2", "x"))
        await kill(table, "put", _replace(table, "dead 4", "dead"))
        assert await _clear(table)
        assert (table.blocks(), table.heads_by_key) == ([], {})
        await kill(table, "put", _say(table, "dead 5", "dead"))
        await kill(table, "put", _say(table, "dead 6", "dead"))
        assert not await _clear(table)
        assert (table.blocks(), table.heads_by_key) == ([], {})

    asyncio.run(scenario(make_table()))


def test_a_clear_removes_what_a_killed_replace_left_before_the_last_append(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "1", "a")
        await kill(table, "put", _replace(table, "dead", "dead"))
        await _say(table, "2", "b")
        assert await _clear(table)
        assert (table.blocks(), table.heads_by_key) == ([], {})

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("expected", [False, True])
def test_writers_who_outrun_each_other_leave_nothing_behind(make_table: MakeTable, expected: bool) -> None:
    async def scenario(table: "Table") -> list[int]:
        async with ConditionalBackend(table) as backend:
            head = await backend.append("k", _batch("start"), turn_id="start")

            async def append(number: int) -> None:
                revision = head.revision if expected else None
                await backend.append("k", _batch("abc"), turn_id=f"{number:02}", expected_revision=revision)

            refused = await asyncio.gather(*map(append, range(16)), return_exceptions=True)
            assert [type(each) for each in refused if each] == [RevisionConflictError] * (15 if expected else 0)
            return _sizes(table)

    async def in_turn(table: "Table") -> list[int]:
        for number in range(16 if not expected else 1):
            await _say(table, f"{number:02}", "abc")
        return _sizes(table)

    outrun = asyncio.run(scenario(make_table()))
    assert len(outrun) == len(asyncio.run(in_turn(make_table()))) + 3  # the start


def test_a_reader_of_a_log_that_is_being_dropped_is_shown_nothing_that_was_not_committed(
    make_table: MakeTable, kill: Kill
) -> None:
    async def scenario(seed: int) -> None:
        table = make_table(seed=seed)
        for number in range(15):
            await _say(table, f"{number}", f"{number}")
            await kill(table, "put", _say(table, f"dead {number}", "dead"))
        whole = await _read(table)
        later = deepcopy(table)
        drops = 0

        def die_on_the_second() -> None:
            nonlocal drops
            drops += 1
            if drops == 2:
                raise asyncio.CancelledError

        later.failing["drop"] = die_on_the_second
        with pytest.raises(asyncio.CancelledError):
            await _replace(later, "replace", "x")

        def go_on() -> None:
            table.heads_by_key, table.logs = later.heads_by_key, later.logs

        table.failing["scan"] = go_on
        async with ConditionalBackend(table) as backend:
            for arguments in ({}, {"after": 3, "limit": 4}, {"before": 9, "limit": 3}, {"after": 9, "limit": 1}):
                start = deepcopy(table)
                assert set(_texts(await backend.get("k", **arguments))) <= {*whole, "x"}
                table.heads_by_key, table.logs = start.heads_by_key, start.logs

    for seed in range(20):
        asyncio.run(scenario(seed))


@pytest.mark.parametrize("call", [lambda table: _say(table, "t", "b"), _clear])
def test_a_store_that_cannot_write_is_told_after_some_tries_and_the_next_call_works(
    make_table: MakeTable, call: Callable[["Table"], Awaitable[object]]
) -> None:
    def full() -> None:
        raise BackendUnavailableError("the store is full")

    async def scenario(table: "Table") -> None:
        await _say(table, "1", "a")
        table.failing["put"] = full
        table.requests.clear()
        with pytest.raises(BackendUnavailableError, match=r"^the store is full$"):
            await call(table)
        assert table.requests["put"] == 3
        del table.failing["put"]
        assert await _read(table) == ["a"]
        await call(table)
        assert await _read(table) in (["a", "b"], [])

    asyncio.run(scenario(make_table()))


def test_a_read_does_not_read_what_a_killed_writer_staged_behind_the_end(make_table: MakeTable, kill: Kill) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "1", "a", "b", "c")
        await kill(table, "put", _say(table, "dead", "dead" * 10_000))
        table.bytes_read = 0
        assert await _read(table) == ["a", "b", "c"]
        assert table.bytes_read < 1_000

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_turn_is_not_stored_again_when_a_clear_may_have_taken_it_away(
    make_table: MakeTable, begins_anew: bool
) -> None:
    async def scenario(table: "Table") -> None:
        class Cleared(type(table)):  # type: ignore[misc] # the fixture's class
            async def commit(self, *arguments: Any) -> bool:
                assert await table.commit(*arguments)
                await _clear(table)
                if begins_anew:
                    await _say(table, "new", "new")
                raise BackendUnavailableError("the reply was lost")

        await _say(table, "1", "a")
        cleared = Cleared(slow=False)
        cleared.heads_by_key, cleared.logs = table.heads_by_key, table.logs
        with pytest.raises(BackendUnavailableError, match="'k' was cleared while a write was repeated"):
            await _say(cleared, "2", "b")
        assert await _read(table) == (["new"] if begins_anew else [])

    asyncio.run(scenario(make_table(slow=False)))


def test_a_start_on_a_store_that_cannot_write_is_told_after_some_tries(make_table: MakeTable) -> None:
    def full() -> None:
        raise BackendUnavailableError("the store is full")

    async def scenario(table: "Table") -> None:
        table.failing["put"] = full
        with pytest.raises(BackendUnavailableError, match=r"^the store is full$"):
            await _say(table, "1", "a")
        assert table.requests["put"] == 3

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("call", [lambda table: _say(table, "t", "a"), _clear])
def test_a_conversation_that_never_rests_is_told_after_many_tries(
    make_table: MakeTable, call: Callable[["Table"], Awaitable[object]]
) -> None:
    async def scenario(table: "Table") -> None:
        rivals = 0

        class Restless(type(table)):  # type: ignore[misc] # the fixture's class
            async def commit(self, *arguments: Any) -> bool:
                nonlocal rivals
                rivals += 1
                await _say(table, f"rival {rivals}", "rival")
                return await table.commit(*arguments)

        restless = Restless(slow=False)
        restless.heads_by_key, restless.logs = table.heads_by_key, table.logs
        await _say(table, "start", "start")
        with pytest.raises(BackendUnavailableError, match="'k' was changed by others during each of 100 tries"):
            await call(restless)
        assert rivals == 100
        assert await _read(table) == ["start", *["rival"] * rivals]

    asyncio.run(scenario(make_table(slow=False)))


def test_a_record_that_the_store_has_lost_is_an_error_and_no_gap(make_table: MakeTable) -> None:
    async def scenario(table: "Table") -> None:
        for number in range(5):
            await _say(table, f"{number}", "x" * (number + 1))
        for block in table.blocks():
            if block.body.endswith(b"xxx") and not block.body.endswith(b"xxxx"):
                await table.drop(block.log, [block.name])
        async with ConditionalBackend(table) as backend:
            with pytest.raises(CorruptRecordError, match="position 3 of conversation 'k'"):
                await backend.get("k", after=2)
            assert _texts(await backend.get("k", limit=2)) == ["xxxx", "xxxxx"]

    asyncio.run(scenario(make_table()))


@pytest.mark.parametrize("lost", range(4))
@pytest.mark.parametrize("record", [Record(bytes(3_500), "text"), Record(b"", "f" * 3_500)], ids=["payload", "format"])
def test_a_record_of_which_the_store_has_lost_a_part_is_an_error(
    make_table: MakeTable, record: Record, lost: int
) -> None:
    async def scenario(table: "Table") -> None:
        async with ConditionalBackend(table, max_block=1_024) as backend:
            await backend.append("k", [record], turn_id="t")
            assert [found.record for found in (await backend.get("k")).records] == [record]
            parts = sorted(block for block in table.blocks() if len(block.body) > 300)
            assert len(parts) == 4
            await table.drop(parts[lost].log, [parts[lost].name])
            with pytest.raises(CorruptRecordError):
                await backend.get("k")

    asyncio.run(scenario(make_table()))
