"""A request that nobody waits for any more, and that the store carries out later."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import pytest

from chathistory_core import BackendUnavailableError, ChatHistoryBackend, Record
from chathistory_core.conditional import Block, ConditionalBackend, Head

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

COMMITS = 9
"""Of the scenario below, when nothing is late."""


def late(table_class: "type[Table]", number: int) -> "Table":
    """A store whose commit of this number, from 1, times out, and is carried out in front of the next one."""

    class Late(table_class):  # type: ignore[misc, valid-type]  # the fixture's class
        commits = 0
        waiting: Callable[[], object] | None = None

        async def commit(self, key: str, seen: Head | None, new: Head | None, blocks: Sequence[Block]) -> bool:
            self.commits += 1
            if self.commits == number:
                self._keep(blocks)  # the head alone is late
                self.waiting = lambda: self._put(key, seen, new)
                raise BackendUnavailableError("the request timed out")
            if self.waiting is not None:
                arrived, self.waiting = self.waiting, None
                self._keep(blocks)  # those of the next one are there too
                arrived()
            return bool(await super().commit(key, seen, new, blocks))

    table: Table = Late(slow=False)
    return table


async def texts(backend: ChatHistoryBackend) -> list[bytes]:
    return [record.payload for record in (await backend.get("k")).records]


@pytest.mark.parametrize("number", range(COMMITS + 1))
def test_a_commit_that_arrives_late_is_made_once_and_in_nobodys_way(make_table: "type[Table]", number: int) -> None:
    async def scenario() -> None:
        table = late(make_table, number)
        async with ConditionalBackend(table) as backend:
            first = await backend.append("k", [Record(b"a", "text")], turn_id="a")
            second = await backend.append("k", [Record(b"b", "text")], turn_id="b")
            assert await texts(backend) == [b"a", b"b"]
            third = await backend.replace("k", [Record(b"x", "text"), Record(b"y", "text")], turn_id="r")
            last = await backend.append("k", [Record(b"c", "text")], turn_id="c")
            assert await texts(backend) == [b"x", b"y", b"c"]
            assert [each.replayed for each in (first, second, third, last)] == [False] * 4
            assert await backend.append("k", [Record(b"c", "text")], turn_id="c") == last._replace(replayed=True)
            try:
                assert await backend.clear("k")
            except BackendUnavailableError:  # it may say that it could not clean up behind itself
                assert not await backend.clear("k")
            assert await texts(backend) == []
            await backend.append("k", [Record(b"d", "text")], turn_id="a")
            assert await texts(backend) == [b"d"]
            assert (await backend.append("k", [Record(b"d", "text")], turn_id="a")).replayed
        assert table.requests["put"] == COMMITS  # and the one that was late was made again

    asyncio.run(scenario())
