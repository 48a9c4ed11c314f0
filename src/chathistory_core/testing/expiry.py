"""The part of obligation 9 that not every backend has: conversations that expire."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import NamedTuple

import pytest

from chathistory_core.errors import EpochChangedError, RevisionConflictError
from chathistory_core.reading import read_on
from chathistory_core.records import NO_REVISION, Conversation, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, keys_of, records, say, texts_of


class ExpiringStore(NamedTuple):
    """A store, empty at first, whose conversations expire, and the way its time goes by."""

    make_backend: BackendFactory
    ttl: timedelta
    wait: Callable[[timedelta], None]
    """Lets time pass for the store: moves a clock that was passed in, or sleeps where the store has its own."""


def in_loop(
    test: Callable[["ExpiryTests", ExpiringStore], Coroutine[object, object, None]],
) -> Callable[["ExpiryTests", ExpiringStore], None]:
    """The test as a plain function that runs in an event loop of its own."""

    def run(self: "ExpiryTests", expiring_store: ExpiringStore) -> None:
        asyncio.run(test(self, expiring_store))

    run.__name__, run.__qualname__, run.__module__ = test.__name__, test.__qualname__, test.__module__
    return run


class ExpiryTests:
    """Expiry is a clear made by the store's clock; a subclass gives one more fixture, `expiring_store`."""

    @pytest.fixture
    def expiring_store(self) -> ExpiringStore:
        """An empty store that the test may let expire: the subclass's to give."""
        raise NotImplementedError("give the class a fixture `expiring_store` that returns an `ExpiringStore`")

    @in_loop
    async def test_an_expired_conversation_is_invisible_at_once(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            await say(backend, "k", "a")
            await backend.replace("empty", [], turn_id="t")
            store.wait(store.ttl)
            assert await backend.get("k") == Conversation("k")
            assert keys_of(await backend.summaries()) == []
            assert keys_of(await backend.summaries(order="recent")) == []
            assert await backend.clear("k") is False
            assert await backend.clear("empty", expected_revision="another") is False

    @in_loop
    async def test_a_conversation_stays_until_its_time_is_over(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            await say(backend, "k", "a")
            store.wait(store.ttl / 2)
            assert texts_of(await backend.get("k")) == ["a"]
            assert keys_of(await backend.summaries()) == ["k"]

    @in_loop
    async def test_appends_and_replaces_renew_the_time(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            await say(backend, "k", "a")
            store.wait(store.ttl * 0.6)
            await say(backend, "k", "b")
            store.wait(store.ttl * 0.6)
            await backend.replace("k", records("x"), turn_id=new_turn_id())
            store.wait(store.ttl * 0.6)
            assert texts_of(await backend.get("k")) == ["x"]
            store.wait(store.ttl * 0.6)
            assert await backend.get("k") == Conversation("k")

    @in_loop
    async def test_reads_and_refused_writes_renew_nothing(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            await say(backend, "k", "a")
            store.wait(store.ttl * 0.6)
            await backend.get("k")
            await backend.summaries()
            with pytest.raises(RevisionConflictError):
                await backend.append("k", records("b"), turn_id="u", expected_revision="another")
            store.wait(store.ttl * 0.6)
            assert await backend.get("k") == Conversation("k")

    @in_loop
    async def test_after_expiry_a_conversation_begins_anew(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            first = await say(backend, "k", "a", turn_id="t")
            created_at = (await backend.get("k")).created_at
            store.wait(store.ttl)
            again = await backend.append("k", records("b"), turn_id="t", expected_revision=NO_REVISION)
            found = await backend.get("k")
            assert not again.replayed
            assert again.epoch != first.epoch
            assert found.created_at not in (None, created_at)
            assert texts_of(found) == ["b"]
            assert keys_of(await backend.summaries()) == ["k"]

    @in_loop
    async def test_expired_is_not_brought_back(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            first = await say(backend, "k", "a")
            store.wait(store.ttl)
            with pytest.raises(EpochChangedError):
                await backend.append("k", records("b"), turn_id="u", expected_epoch=first.epoch)
            with pytest.raises(RevisionConflictError):
                await backend.append("k", records("b"), turn_id="u", expected_revision=first.revision)
            assert await backend.get("k") == Conversation("k")

    @in_loop
    async def test_expired_conversations_take_no_place_in_a_page(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            for number in range(6):
                await say(backend, f"old {number}", "a")
            store.wait(store.ttl * 0.6)
            for key in "a", "p", "z":
                await say(backend, key, "a")
            store.wait(store.ttl * 0.6)
            assert keys_of(await backend.summaries(limit=2)) == ["a", "p"]
            assert len(await backend.summaries(limit=3, order="recent")) == 3

    @in_loop
    async def test_what_begins_anew_beside_many_that_expired_is_listed_once(self, store: ExpiringStore) -> None:
        # more than one write purges, so some begin anew where what expired is still there
        keys = [f"{number:02}" for number in range(60)]
        async with store.make_backend() as backend:
            for key in keys:
                await say(backend, key, "old")
            store.wait(store.ttl)
            for key in reversed(keys):
                await say(backend, key, "new")
            assert keys_of(await backend.summaries()) == keys
            assert sorted(keys_of(await backend.summaries(order="recent"))) == keys
            for key in keys:
                assert texts_of(await backend.get(key)) == ["new"]

    @in_loop
    async def test_what_expired_stays_gone_after_closing(self, store: ExpiringStore) -> None:
        async with store.make_backend() as backend:
            await say(backend, "k", "a")
            held = await backend.get("k")
        store.wait(store.ttl)
        async with store.make_backend() as backend:
            assert await read_on(backend, "k", held) is None
            assert keys_of(await backend.summaries()) == []
            await say(backend, "other", "b")
            assert await backend.get("k") == Conversation("k")
