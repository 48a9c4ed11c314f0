"""The memory backend, as every backend is tested, and what it alone promises."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from chathistory_core import Conversation, Record, new_turn_id
from chathistory_core.testing import BackendFactory, BackendTests, ExpiringStore, ExpiryTests
from chathistory_memory import MemoryBackend, MemoryStore


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, time: timedelta) -> None:
        self.now += time


class TestMemoryBackend(BackendTests, ExpiryTests):
    @pytest.fixture
    def make_backend(self) -> BackendFactory:
        return partial(MemoryBackend, MemoryStore())

    @pytest.fixture
    def expiring_store(self) -> ExpiringStore:
        clock, ttl = Clock(), timedelta(days=30)
        return ExpiringStore(partial(MemoryBackend, MemoryStore(), ttl=ttl, clock=clock), ttl, clock.wait)


def test_a_backend_without_a_store_keeps_its_records_while_it_is_closed() -> None:
    backend = MemoryBackend()

    async def scenario(text: bytes) -> list[bytes]:
        async with backend:
            await backend.append("k", [Record(text, "text")], turn_id=new_turn_id())
            return [record.payload for record in (await backend.get("k")).records]

    assert asyncio.run(scenario(b"a")) == [b"a"]
    assert asyncio.run(scenario(b"b")) == [b"a", b"b"]


def test_the_longest_ttl_is_no_overflow() -> None:
    async def scenario() -> None:
        async with MemoryBackend(ttl=timedelta.max) as backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="t")
            assert (await backend.get("k")).record_count == 1

    asyncio.run(scenario())


def test_a_conversation_remembers_its_newest_turns_and_no_more() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            kept = backend.limits.turns_kept
            for turn in range(kept + 1):
                await backend.append("k", [Record(b"a", "text")], turn_id=f"{turn}")
            assert (await backend.append("k", [Record(b"a", "text")], turn_id="1")).replayed
            assert not (await backend.append("k", [Record(b"a", "text")], turn_id="0")).replayed
            assert (await backend.get("k", limit=0)).record_count == kept + 2

    asyncio.run(scenario())


def test_backends_without_a_store_share_nothing() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as one, MemoryBackend() as other:
            await one.append("k", [Record(b"a", "text")], turn_id="t")
            assert await other.summaries() == ()

    asyncio.run(scenario())


def test_equal_times_are_listed_by_key_and_paged_without_a_gap() -> None:
    async def scenario() -> None:
        async with MemoryBackend(clock=Clock()) as backend:
            for key in ("b", "é", "a", "\U00010000", "\uffff"):
                await backend.append(key, [Record(b"a", "text")], turn_id="t")
            whole = await backend.summaries(order="recent")
            assert [each.key for each in whole] == ["a", "b", "é", "\uffff", "\U00010000"]
            for number, last in enumerate(whole):
                assert await backend.summaries(order="recent", after=last) == whole[number + 1 :]

    asyncio.run(scenario())


def test_a_clock_that_goes_back_changes_no_order_and_no_earlier_time() -> None:
    async def scenario() -> None:
        clock = Clock()
        async with MemoryBackend(clock=clock) as backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="1")
            before = await backend.get("k")
            clock.wait(timedelta(hours=-1))
            await backend.append("k", [Record(b"b", "text")], turn_id="2")
            after = await backend.get("k")
            assert [record.payload for record in after.records] == [b"a", b"b"]
            assert (after.created_at, after.updated_at) == (before.created_at, before.updated_at)

    asyncio.run(scenario())


def test_a_conversation_expires_for_backends_without_a_ttl_too() -> None:
    async def scenario() -> None:
        clock, store = Clock(), MemoryStore()
        async with (
            MemoryBackend(store, ttl=timedelta(hours=1), clock=clock) as one,
            MemoryBackend(store, clock=clock) as other,
        ):
            await one.append("k", [Record(b"a", "text")], turn_id="t")
            assert (await other.get("k")).record_count == 1
            clock.wait(timedelta(hours=1))
            assert await other.get("k") == Conversation("k")
            assert await other.summaries() == ()

    asyncio.run(scenario())


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=-1)])
def test_a_ttl_is_more_than_nothing(ttl: timedelta) -> None:
    with pytest.raises(ValueError, match=r"^`ttl` is .*: it must be more than nothing$"):
        MemoryBackend(ttl=ttl)


def test_threads_with_backends_of_their_own_share_a_store() -> None:
    store = MemoryStore()

    async def writer(name: int) -> None:
        async with MemoryBackend(store) as backend:
            for number in range(200):
                await backend.append("k", [Record(b"%d %d" % (name, number), "text")] * 2, turn_id=f"{name} {number}")

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(asyncio.run, writer(name)) for name in range(4)]:
            done.result()

    async def read() -> list[bytes]:
        async with MemoryBackend(store) as backend:
            return [record.payload for record in (await backend.get("k")).records]

    found = asyncio.run(read())
    assert len(found) == 1_600
    assert found[::2] == found[1::2]
    for name in range(4):
        own = [payload for payload in found[::2] if payload.startswith(b"%d " % name)]
        assert own == [b"%d %d" % (name, number) for number in range(200)]


def test_expired_conversations_are_removed_whatever_the_time_to_live_of_their_neighbours() -> None:
    gone = 0

    class Payload(bytes):
        def __del__(self) -> None:
            nonlocal gone
            gone += 1

    async def scenario() -> None:
        clock, store = Clock(), MemoryStore()
        long, short = MemoryBackend(store, clock=clock), MemoryBackend(store, ttl=timedelta(seconds=1), clock=clock)
        async with long, short:
            for n in range(100):
                await long.append(f"long {n}", [Record(b"x", "f")], turn_id="t")
                await short.append(f"short {n}", [Record(Payload(b"x"), "f")], turn_id="t")
            clock.wait(timedelta(seconds=1))
            for n in range(100):
                await long.append(f"long {n}", [Record(b"x", "f")], turn_id="t2")
            assert gone == 100

    asyncio.run(scenario())
