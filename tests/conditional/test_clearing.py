"""A clear whose reply is lost is not made twice, and says what it did."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest

from chathistory_core import BackendUnavailableError, Record
from chathistory_core.conditional import ConditionalBackend

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

MakeTable = Callable[..., "Table"]
Meanwhile = Callable[["Table"], Awaitable[object]]


async def _say(table: "Table", text: str) -> None:
    async with ConditionalBackend(table) as backend:
        await backend.append("k", [Record(text.encode(), "text")], turn_id=text)


async def _clear(table: "Table") -> bool:
    async with ConditionalBackend(table) as backend:
        return await backend.clear("k")


async def _texts(table: "Table") -> list[str]:
    async with ConditionalBackend(table) as backend:
        return [record.payload.decode() for record in (await backend.get("k")).records]


async def _nothing(table: "Table") -> None:
    pass


async def _start(table: "Table") -> None:
    await _say(table, "new")


async def _clear_and_start(table: "Table") -> None:
    assert await _clear(table)
    await _start(table)


def _unreliable(table: "Table", *, kept: bool, told: bool, meanwhile: Meanwhile) -> "Table":
    """The same store, whose first commit is kept or not, and told to be refused or to have failed."""

    class Unreliable(type(table)):  # type: ignore[misc] # the fixture's class
        commits = 0

        async def commit(self, *arguments: Any) -> bool:
            self.commits += 1
            if self.commits > 1:
                answer: bool = await table.commit(*arguments)
                return answer
            if kept:
                assert await table.commit(*arguments)
            await meanwhile(table)
            if told:
                return False
            raise BackendUnavailableError("the reply was lost")

    made: Table = Unreliable(slow=False)
    made.heads_by_key, made.logs = table.heads_by_key, table.logs
    return made


@pytest.mark.parametrize("told", [True, False], ids=["repeated by the driver", "failed"])
@pytest.mark.parametrize(
    ("kept", "meanwhile", "was_its_own", "left"),
    [
        (True, _nothing, True, []),
        (True, _start, True, ["new"]),
        (False, _nothing, True, []),
        (False, _start, True, []),
        (False, _clear, False, []),
        (False, _clear_and_start, False, ["new"]),
    ],
)
def test_a_clear_whose_reply_is_lost_says_what_it_did_and_spares_what_came_later(
    make_table: MakeTable, kept: bool, told: bool, meanwhile: Meanwhile, was_its_own: bool, left: list[str]
) -> None:
    async def scenario(table: "Table") -> None:
        await _say(table, "old")
        assert await _clear(_unreliable(table, kept=kept, told=told, meanwhile=meanwhile)) is was_its_own
        assert await _texts(table) == left
        assert not any(block.body.endswith(b"old") for block in table.blocks())
        if not left:
            assert (table.blocks(), table.heads_by_key) == ([], {})

    asyncio.run(scenario(make_table(slow=False)))


def test_a_clear_of_a_place_without_a_conversation_says_so_when_its_reply_is_lost(make_table: MakeTable) -> None:
    async def scenario(table: "Table") -> None:
        def die() -> None:
            raise asyncio.CancelledError

        table.failing["stage"] = die
        with pytest.raises(asyncio.CancelledError):
            await _say(table, "never")
        del table.failing["stage"]
        assert table.heads_by_key
        assert not await _clear(_unreliable(table, kept=True, told=False, meanwhile=_nothing))
        assert not table.heads_by_key

    asyncio.run(scenario(make_table(slow=False)))
