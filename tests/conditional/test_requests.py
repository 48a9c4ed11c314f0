"""How many requests a call makes, and how much it reads."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from chathistory_core import Record, iter_records, new_turn_id
from chathistory_core.conditional import ConditionalBackend

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

Scenario = Callable[[ConditionalBackend, "Table"], Awaitable[None]]


@pytest.fixture(params=[False, True], ids=["compared by revision", "compared by version"])
def run(request: pytest.FixtureRequest, make_table: "Callable[..., Table]") -> Callable[[Scenario], None]:
    """Runs a scenario on a backend whose store counts."""

    async def opened(scenario: Scenario) -> None:
        table = make_table(slow=False, versions=request.param)
        async with ConditionalBackend(table) as backend:
            await scenario(backend, table)

    return lambda scenario: asyncio.run(opened(scenario))


async def _say(backend: ConditionalBackend, count: int) -> None:
    await backend.append("k", [Record(b"x" * 100, "text")] * count, turn_id=new_turn_id())


async def _requests(table: "Table", call: Awaitable[object]) -> Counter[str]:
    table.requests.clear()
    await call
    return table.requests.copy()


def test_an_append_takes_four_requests_at_any_length(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        assert (await _requests(table, _say(backend, 3))).total() == 5  # the first
        for count in (3, 1, 64, 900, 3):
            assert await _requests(table, _say(backend, count)) == Counter(load=1, scan=1, stage=1, put=1)

    run(scenario)


def test_an_append_costs_no_more_bytes_in_a_long_conversation(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        sizes = []
        for _ in range(200):
            before = sum(len(block.body) for block in table.blocks())
            table.bytes_read = 0
            await _say(backend, 2)
            sizes.append((sum(len(block.body) for block in table.blocks()) - before, table.bytes_read))
        assert max(sizes) <= (sizes[0][0] + 10, 0)

    run(scenario)


def test_a_replay_takes_three_requests(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        record = Record(b"a", "text")
        await backend.append("k", [record], turn_id="t")
        again = backend.append("k", [record], turn_id="t")
        assert await _requests(table, again) == Counter(load=1, scan=1)  # the head's own
        await _say(backend, 1)
        again = backend.append("k", [record], turn_id="t")
        assert await _requests(table, again) == Counter(load=1, scan=2)

    run(scenario)


def test_a_read_takes_two_requests(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        assert await _requests(table, backend.get("k")) == Counter(load=1)
        for _ in range(60):
            await _say(backend, 3)
        two = Counter(load=1, scan=1)
        assert await _requests(table, backend.get("k")) == two
        assert await _requests(table, backend.get("k", limit=20)) == two
        assert await _requests(table, backend.get("k", after=170)) == two
        assert await _requests(table, backend.get("k", limit=0)) == Counter(load=1)
        assert await _requests(table, backend.get("k", before=1)) == Counter(load=1)
        for limit in range(1, 30):
            assert await _requests(table, backend.get("k", after=50, limit=limit)) in (two, two + Counter(scan=1))

    run(scenario)


def test_a_page_that_ends_inside_a_long_turn_takes_three_requests(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        for _ in range(3):
            await _say(backend, 500)
        assert await _requests(table, backend.get("k", after=600, limit=20)) == Counter(load=1, scan=2)

    run(scenario)


@pytest.mark.parametrize("turn", [1, 4, 1_000])
def test_a_page_costs_what_is_on_it(run: Callable[[Scenario], None], turn: int) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        for _ in range(1_000 // turn):
            await _say(backend, turn)
        pages: tuple[dict[str, int], ...] = ({}, {"before": 500}, {"after": 500})
        for arguments in pages:
            table.bytes_read = 0
            assert len((await backend.get("k", limit=20, **arguments)).records) == 20
            assert table.bytes_read < 3 * 64 * 150

    run(scenario)


def test_a_page_does_not_read_the_large_records_in_front_of_it(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        for _ in range(3):
            await backend.append("k", [Record(bytes(2**20), "text")] * 3, turn_id=new_turn_id())
        table.bytes_read = 0
        await backend.get("k", limit=1)
        assert table.bytes_read < 2**20 + 1_000

    run(scenario)


def test_a_walk_through_a_long_conversation_takes_at_most_three_requests_a_page(
    run: Callable[[Scenario], None],
) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        for _ in range(100):
            await _say(backend, 7)

        async def walk() -> None:
            assert len([record async for record in iter_records(backend, "k", page=50)]) == 700

        assert (await _requests(table, walk())).total() <= 3 * 14

    run(scenario)


def test_a_page_of_summaries_is_one_request(run: Callable[[Scenario], None]) -> None:
    async def scenario(backend: ConditionalBackend, table: "Table") -> None:
        for number in range(30):
            await backend.append(f"{number:02}", [Record(b"a", "text")], turn_id="t")
        assert await _requests(table, backend.summaries(limit=10)) == Counter(heads=1)
        assert await _requests(table, backend.summaries()) == Counter(heads=1)
        assert await _requests(table, backend.summaries(limit=0)) == Counter()

    run(scenario)
