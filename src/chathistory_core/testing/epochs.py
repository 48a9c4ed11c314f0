"""Obligation 2: a reader is told when records were taken away, and else misses nothing."""

import asyncio
from random import Random

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.reading import read_on
from chathistory_core.records import Conversation, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, records, say, texts_of, with_backend

WRITES = 120


class EpochTests:
    """The epoch changes when records are taken away and only then; followers rely on it."""

    @with_backend
    async def test_appending_keeps_the_epoch(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a")
        second = await say(backend, "k", "b")
        assert first.epoch
        assert second.epoch == first.epoch == (await backend.get("k")).epoch

    @with_backend
    async def test_replacing_changes_the_epoch(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a")
        second = await backend.replace("k", records("a"), turn_id=new_turn_id())
        assert second.epoch not in ("", first.epoch)
        assert (await backend.get("k")).epoch == second.epoch

    @with_backend
    async def test_replacing_with_nothing_changes_the_epoch(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a")
        second = await backend.replace("k", [], turn_id=new_turn_id())
        assert second.epoch not in ("", first.epoch)
        assert (await backend.get("k")).epoch == second.epoch

    @with_backend
    async def test_a_new_start_after_a_clear_has_another_epoch(self, backend: ChatHistoryBackend) -> None:
        epochs = set()
        for _ in range(5):
            epochs.add((await say(backend, "k", "a")).epoch)
            await backend.clear("k")
        assert len(epochs) == 5

    @with_backend
    async def test_two_conversations_have_different_epochs(self, backend: ChatHistoryBackend) -> None:
        assert (await say(backend, "a", "x")).epoch != (await say(backend, "b", "x")).epoch

    @with_backend
    async def test_get_summaries_and_writes_tell_the_same_epoch(self, backend: ChatHistoryBackend) -> None:
        written = await say(backend, "k", "a")
        (listed,) = await backend.summaries()
        assert (await backend.get("k", limit=0)).epoch == listed.epoch == written.epoch

    @with_backend
    async def test_reading_on_gives_what_is_new(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        held = await backend.get("k")
        await say(backend, "k", "c", "d")
        for limit, new in ((None, ["c", "d"]), (5, ["c", "d"]), (1, ["c"]), (0, [])):
            found = await read_on(backend, "k", held, limit=limit)
            assert found is not None
            assert texts_of(found) == new
            assert found.record_count == 4

    @with_backend
    async def test_reading_on_starts_over_after_a_replace(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        held = await backend.get("k")
        await backend.replace("k", records("a", "b", "c"), turn_id=new_turn_id())
        assert await read_on(backend, "k", held) is None

    @with_backend
    async def test_reading_on_starts_over_after_a_clear(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        held = await backend.get("k")
        await backend.clear("k")
        assert await read_on(backend, "k", held) is None
        await say(backend, "k", "a", "b", "c")
        assert await read_on(backend, "k", held) is None

    @in_loop
    async def test_followers_at_any_limit_miss_repeat_and_reorder_nothing(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            logs: dict[str, list[str]] = {}
            done = asyncio.Event()
            seen = await asyncio.gather(
                *(_follow(other, done, limit) for limit in (1, 2, 3, 7, None)), _write(one, done, logs)
            )
            final = await one.get("k")
        for held in seen:
            for epoch, texts in held or ():
                assert epoch in logs, "an epoch was read that no write had told"
                assert texts == logs[epoch][: len(texts)]
            if held is not None:
                assert held[-1] == (final.epoch, texts_of(final))


async def _write(backend: ChatHistoryBackend, done: asyncio.Event, logs: dict[str, list[str]]) -> None:
    """Append, replace and clear at random; `logs` gets what each epoch held in the end."""
    chance = Random(7)  # noqa: S311 - a schedule, not a secret
    for number in range(WRITES):
        texts = [f"{number}.{index}" for index in range(chance.randrange(1, 4))]
        draw = chance.random()
        if draw < 0.85:
            written = await say(backend, "k", *texts)
            logs.setdefault(written.epoch, []).extend(texts)
        elif draw < 0.93:
            written = await backend.replace("k", records(*texts), turn_id=new_turn_id())
            logs[written.epoch] = texts
        elif draw < 0.96:
            written = await backend.replace("k", [], turn_id=new_turn_id())
            logs[written.epoch] = []
        else:
            await backend.clear("k")
        for _ in range(chance.randrange(8)):
            await asyncio.sleep(0)
    written = await say(backend, "k", "last")
    logs.setdefault(written.epoch, []).append("last")
    done.set()


async def _follow(backend: ChatHistoryBackend, done: asyncio.Event, limit: int | None) -> list[tuple[str, list[str]]]:
    """What the follower held after each step that brought something: the epoch and all texts."""
    seen: list[tuple[str, list[str]]] = []
    held = Conversation("k")
    texts: list[str] = []
    restarts = 0
    while True:
        finished = done.is_set()
        found = await read_on(backend, "k", held, limit=limit)
        if found is None or (not held.records and found.epoch != held.epoch):
            texts = []
        if found is None:
            held = Conversation("k")
            restarts += 1
            assert restarts <= WRITES, "the follower was told to start over more often than anything was taken away"
            await asyncio.sleep(0)
            continue
        assert limit is None or len(found.records) <= limit
        texts = [*texts, *texts_of(found)]
        if found.records:
            seen.append((found.epoch, texts))
        elif finished:
            return seen
        held = found._replace(records=(held.records + found.records)[-1:])
        await asyncio.sleep(0)
