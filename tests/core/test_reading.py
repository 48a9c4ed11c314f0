import asyncio
from collections.abc import Sequence

import pytest

from chathistory_core import (
    BackendError,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    Order,
    Record,
    StoredRecord,
    erase,
    iter_records,
    new_turn_id,
    read_on,
)
from chathistory_memory import MemoryBackend, MemoryStore


async def say(backend: MemoryBackend, *texts: str, key: str = "k") -> None:
    await backend.append(key, [Record(text.encode(), "text") for text in texts], turn_id=new_turn_id())


async def replace(backend: MemoryBackend, *texts: str) -> None:
    await backend.replace("k", [Record(text.encode(), "text") for text in texts], turn_id=new_turn_id())


def payloads(found: Conversation | None) -> list[bytes]:
    assert found is not None
    return [record.payload for record in found.records]


class Counting(MemoryBackend):
    """Notes what is read."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__(store)
        self.reads: list[tuple[int | None, int | None, int | None]] = []
        self.largest = 0

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        self.reads.append((limit, before, after))
        found = await super().get(key, limit=limit, before=before, after=after)
        self.largest = max(self.largest, len(found.records))
        return found


def test_reading_on_asks_once_for_the_held_record_and_what_is_behind_it() -> None:
    async def scenario() -> None:
        async with Counting() as backend:
            await say(backend, "a", "b", "c")
            held = await backend.get("k", limit=2)
            await say(backend, "d", "e")
            backend.reads.clear()
            assert payloads(await read_on(backend, "k", held, limit=1)) == [b"d"]
            assert payloads(await read_on(backend, "k", held)) == [b"d", b"e"]
            assert payloads(await read_on(backend, "k", held, limit=0)) == []
            assert backend.reads == [(2, None, 2), (None, None, 2), (1, None, 2)]

    asyncio.run(scenario())


def test_reading_on_tells_the_whole_head() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a")
            held = await backend.get("k")
            await say(backend, "b", "c")
            found = await read_on(backend, "k", held, limit=1)
            assert found is not None
            assert found._replace(records=()) == await backend.get("k", limit=0)

    asyncio.run(scenario())


def test_who_holds_no_record_gets_the_first_ones() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            assert await read_on(backend, "k", Conversation("k")) == Conversation("k")
            await replace(backend)
            held = await backend.get("k")
            await say(backend, "a", "b")
            assert payloads(await read_on(backend, "k", held, limit=1)) == [b"a"]
            assert payloads(await read_on(backend, "k", Conversation("k"))) == [b"a", b"b"]

    asyncio.run(scenario())


@pytest.mark.parametrize("change", ["position", "turn_id", "stored_at"])
def test_reading_on_starts_over_where_the_held_record_is_another(change: str) -> None:
    # as after a failover to a copy that had not seen the last write: the epoch is the same

    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a")
            await say(backend, "b")
            held = await backend.get("k")
            last = held.records[-1]
            other = {
                "position": last._replace(position=last.position + 1),
                "turn_id": last._replace(turn_id="another"),
                "stored_at": last._replace(stored_at=last.stored_at.replace(year=2000)),
            }[change]
            assert await read_on(backend, "k", held._replace(records=(other,))) is None
            assert payloads(await read_on(backend, "k", held._replace(records=(last,)))) == []

    asyncio.run(scenario())


def test_reading_on_starts_over_in_another_epoch() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a", "b")
            held = await backend.get("k")
            assert await read_on(backend, "k", held._replace(epoch="another")) is None
            await replace(backend, "a", "b")
            assert await read_on(backend, "k", held) is None
            await backend.clear("k")
            assert await read_on(backend, "k", held) is None

    asyncio.run(scenario())


def test_walking_reads_page_by_page_in_the_memory_of_one() -> None:
    async def scenario() -> None:
        async with Counting() as backend:
            await say(backend, *map(str, range(10)))
            walked = [record.payload async for record in iter_records(backend, "k", page=4)]
            assert walked == [str(number).encode() for number in range(10)]
            assert backend.reads == [(4, None, 0), (5, None, 3), (5, None, 7)]
            assert backend.largest == 5

    asyncio.run(scenario())


def test_walking_ends_at_the_head_that_was_first_seen() -> None:
    async def scenario() -> list[StoredRecord]:
        async with MemoryBackend() as backend:
            await say(backend, "a", "b", "c")
            walked = []
            async for record in iter_records(backend, "k", page=2):
                walked.append(record)
                await say(backend, "later")
            return walked

    assert [record.payload for record in asyncio.run(scenario())] == [b"a", b"b", b"c"]


@pytest.mark.parametrize("texts", [(), ("x",), ("x", "y", "z", "z")])
def test_walking_raises_where_records_are_taken_away(texts: tuple[str, ...]) -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a", "b", "c")
            walk = iter_records(backend, "k", page=1)
            assert (await anext(walk)).payload == b"a"
            await replace(backend, *texts)
            with pytest.raises(EpochChangedError, match=r"^conversation 'k': records were taken away"):
                await anext(walk)

    asyncio.run(scenario())


def test_a_walk_that_has_seen_everything_ends_whatever_happens() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a")
            walk = iter_records(backend, "k", page=1)
            await anext(walk)
            await backend.clear("k")
            assert [record async for record in walk] == []
            assert [record async for record in iter_records(backend, "k")] == []

    asyncio.run(scenario())


def test_a_page_has_at_least_one_record() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            with pytest.raises(ValueError, match="`page` is 0: a page has at least one record"):
                await anext(iter_records(backend, "k", page=0))

    asyncio.run(scenario())


def test_erasing_clears_more_than_a_page_and_counts() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            for number in range(2_300):
                await say(backend, "a", key=f"ann/{number}")
            await say(backend, "a", key="anna/1")
            assert await erase(backend, "ann/") == 2_300
            assert [each.key for each in await backend.summaries()] == ["anna/1"]

    asyncio.run(scenario())


def test_erasing_goes_on_until_a_pass_finds_nothing() -> None:
    class Busy(MemoryBackend):
        """Somebody writes while conversations are erased."""

        left = 3

        async def summaries(
            self,
            *,
            prefix: str = "",
            after: ConversationSummary | None = None,
            limit: int | None = None,
            order: Order = "key",
        ) -> Sequence[ConversationSummary]:
            found = await super().summaries(prefix=prefix, after=after, limit=limit, order=order)
            if self.left:
                self.left -= 1
                await say(self, "late", key=f"{prefix}{self.left}")
            return found

    async def scenario() -> None:
        async with Busy() as backend:
            await say(backend, "a", key="ann/first")
            assert await erase(backend, "ann/") == 4
            assert await backend.summaries() == ()

    asyncio.run(scenario())


def test_erasing_ends_where_a_conversation_comes_back_every_time() -> None:
    class Keeping(MemoryBackend):
        """Says that it has cleared, and has not."""

        calls = 0

        async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
            self.calls += 1
            return True

    async def scenario() -> None:
        async with Keeping() as backend:
            await say(backend, "a", key="ann/1")
            with pytest.raises(
                BackendError, match="conversation 'ann/1' is there again after it was cleared 100 times"
            ):
                await erase(backend, "ann/")
            assert backend.calls == 100

    asyncio.run(scenario())


def test_erasing_everything_has_to_be_said() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            await say(backend, "a")
            with pytest.raises(ValueError, match="an empty prefix would clear every conversation: say"):
                await erase(backend, "")
            with pytest.raises(ValueError, match="`everything=True` goes with an empty prefix, not with 'k'"):
                await erase(backend, "k", everything=True)
            assert await erase(backend, "", everything=True) == 1

    asyncio.run(scenario())
