"""Obligation 1: the store gives the order."""

import asyncio
from itertools import pairwise

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.records import new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, records, say, texts_of, with_backend


class OrderTests:
    """Positions rise from 1 in the order of the commits, whatever any clock says."""

    @with_backend
    async def test_records_come_back_oldest_first(self, backend: ChatHistoryBackend) -> None:
        for text in "one", "two", "three":
            await say(backend, "k", text)
        assert texts_of(await backend.get("k")) == ["one", "two", "three"]

    @with_backend
    async def test_records_of_one_append_keep_their_order(self, backend: ChatHistoryBackend) -> None:
        texts = [f"{number:03}" for number in range(200)]
        await say(backend, "k", *reversed(texts))
        assert texts_of(await backend.get("k")) == texts[::-1]

    @with_backend
    async def test_positions_begin_at_1_or_later_and_rise_below_2_to_the_53(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b", "c")
        await say(backend, "k", "d")
        await say(backend, "k", "e", "f")
        positions = [record.position for record in (await backend.get("k")).records]
        assert len(positions) == 6
        assert all(type(position) is int and 1 <= position < 2**53 for position in positions)
        assert all(one < other for one, other in pairwise(positions))

    @with_backend
    async def test_positions_rise_after_a_replace_too(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b", "c")
        await backend.replace("k", records("x", "y"), turn_id=new_turn_id())
        await say(backend, "k", "z")
        found = await backend.get("k")
        assert texts_of(found) == ["x", "y", "z"]
        assert all(one.position < other.position for one, other in pairwise(found.records))
        assert found.records[0].position >= 1

    @with_backend
    async def test_the_first_position_of_a_write_is_that_of_its_first_record(self, backend: ChatHistoryBackend) -> None:
        written = [await say(backend, "k", f"{turn}.0", f"{turn}.1") for turn in range(3)]
        found = await backend.get("k")
        assert [found.records[at].position for at in (0, 2, 4)] == [each.first_position for each in written]
        replaced = await backend.replace("k", records("x", "y"), turn_id=new_turn_id())
        assert (await backend.get("k")).records[0].position == replaced.first_position

    @with_backend
    async def test_a_hundred_appends_in_a_hurry_keep_their_order(self, backend: ChatHistoryBackend) -> None:
        # many of them share an instant of a coarse clock, and random turn ids have no order
        for number in range(100):
            await say(backend, "k", str(number))
        assert texts_of(await backend.get("k")) == [str(number) for number in range(100)]

    @with_backend
    async def test_a_batch_and_what_follows_it_at_once_keep_their_order(self, backend: ChatHistoryBackend) -> None:
        for attempt in range(20):
            key = f"k{attempt}"
            await say(backend, key, "0", "1", "2", "3")
            for text in "4567":
                await say(backend, key, text)
            assert texts_of(await backend.get(key)) == list("01234567")

    @in_loop
    async def test_eight_writers_are_told_the_places_that_their_records_have(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as one, make_backend() as other:
            places: dict[int, str] = {}

            async def writer(backend: ChatHistoryBackend, name: int) -> None:
                for number in range(20):
                    written = await say(backend, "k", text := f"{name} {number}")
                    places[written.first_position] = text

            await asyncio.gather(*(writer((one, other)[name % 2], name) for name in range(8)))
            found = await one.get("k")
            newest = await other.get("k", limit=1)
        assert len(found.records) == 160
        assert {record.position: record.payload.decode() for record in found.records} == places
        assert texts_of(found) == [places[place] for place in sorted(places)]
        assert texts_of(newest) == [places[max(places)]]

    @with_backend
    async def test_an_acknowledged_append_stands_before_one_begun_after_it(self, backend: ChatHistoryBackend) -> None:
        async def writer(name: int) -> None:
            for number in range(5):
                await say(backend, "k", f"{name} {number}")

        await asyncio.gather(*(writer(name) for name in range(8)))
        found = [text.split() for text in texts_of(await backend.get("k"))]
        for name in range(8):
            assert [number for who, number in found if who == str(name)] == ["0", "1", "2", "3", "4"]

    @with_backend
    async def test_every_record_tells_its_turn(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b", turn_id="first")
        await say(backend, "k", "c", turn_id="second")
        assert [record.turn_id for record in (await backend.get("k")).records] == ["first", "first", "second"]

    @with_backend
    async def test_times_are_aware_and_in_utc(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        found = await backend.get("k")
        (listed,) = await backend.summaries()
        times = [found.records[0].stored_at, found.created_at, found.updated_at, listed.created_at, listed.updated_at]
        assert all(time is not None and time.tzname() == "UTC" for time in times)
