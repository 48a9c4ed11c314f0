"""What `ConditionalBackend` promises beyond what every backend does."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Self

import pytest

from chathistory_core import BackendUnavailableError, ConfigurationError, Record
from chathistory_core.conditional import Block, ConditionalBackend, Head

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

MakeTable = Callable[..., "Table"]


def test_the_time_is_the_writer_s_and_never_goes_back(make_table: MakeTable) -> None:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    hours = iter([1, 0, 2, -1])

    async def scenario() -> None:
        async with ConditionalBackend(make_table(), clock=lambda: noon + timedelta(hours=next(hours))) as backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="0")  # asks twice: for the place, for the record
            await backend.append("k", [Record(b"a", "text")], turn_id="1")
            await backend.append("k", [Record(b"a", "text")], turn_id="2")
            found = await backend.get("k")
        passed = [round((record.stored_at - noon) / timedelta(hours=1)) for record in found.records]
        assert passed == [1, 2, 2]
        assert (found.created_at, found.updated_at) == (noon + timedelta(hours=1), noon + timedelta(hours=2))

    asyncio.run(scenario())


def test_a_clear_does_not_set_the_time_back_for_the_next_start(make_table: MakeTable) -> None:
    async def scenario() -> None:
        table, now = make_table(), datetime.now(UTC)
        later, earlier = (
            ConditionalBackend(table, clock=lambda: now),
            ConditionalBackend(table, clock=lambda: now - timedelta(hours=1)),
        )

        def die() -> None:
            raise BackendUnavailableError("the store has gone")

        async with later, earlier:
            await later.append("k", [Record(b"a", "text")], turn_id="t")
            table.failing["drop"] = die
            with pytest.raises(BackendUnavailableError):
                await earlier.clear("k")
            del table.failing["drop"]
            await earlier.append("k", [Record(b"a", "text")], turn_id="t")
            assert (await earlier.get("k")).created_at == now

    asyncio.run(scenario())


@pytest.mark.parametrize("max_block", [-1, 0, 1_023])
def test_a_block_takes_at_least_a_kibibyte(make_table: MakeTable, max_block: int) -> None:
    with pytest.raises(ConfigurationError, match=f"`max_block` is {max_block}: it must be at least 1024"):
        ConditionalBackend(make_table(), max_block=max_block)


def test_a_store_that_is_a_context_manager_is_opened_and_closed_with_the_backend(make_table: MakeTable) -> None:
    events: list[str] = []

    class Opened(make_table().__class__):  # type: ignore[misc] # the fixture's class
        async def __aenter__(self) -> Self:
            events.append("opened")
            if len(events) == 1:
                raise BackendUnavailableError("not yet")
            return self

        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
        ) -> None:
            events.append("closed")

    async def scenario() -> None:
        backend = ConditionalBackend(Opened())
        with pytest.raises(BackendUnavailableError, match="not yet"):
            await backend.__aenter__()
        async with backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="t")
        async with backend:
            assert (await backend.get("k")).record_count == 1
        assert events == ["opened", "opened", "closed", "opened", "closed"]

    asyncio.run(scenario())


def test_places_that_killed_writers_left_do_not_shorten_a_page(make_table: MakeTable) -> None:
    async def scenario() -> None:
        table = make_table(slow=False)

        def die() -> None:
            raise asyncio.CancelledError

        async with ConditionalBackend(table) as backend:
            for number in range(30):
                if number % 3:
                    table.failing["stage"] = die
                    with pytest.raises(asyncio.CancelledError):
                        await backend.append(f"{number:02}", [Record(b"a", "text")], turn_id="t")
                    del table.failing["stage"]
                else:
                    await backend.append(f"{number:02}", [Record(b"a", "text")], turn_id="t")
            whole = await backend.summaries()
            assert [summary.key for summary in whole] == [f"{number:02}" for number in range(0, 30, 3)]
            assert await backend.summaries(limit=4) == whole[:4]
            assert await backend.summaries(after=whole[3], limit=4) == whole[4:8]
            assert await backend.summaries(after=whole[7], limit=4) == whole[8:]
            assert not await backend.clear("01")

    asyncio.run(scenario())


def test_no_repr_of_what_a_store_is_given_shows_content() -> None:
    assert "secret" not in repr((Block("log", "name", b"secret"), Head("revision", b"secret")))
