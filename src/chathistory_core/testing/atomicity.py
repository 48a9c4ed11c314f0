"""Obligations 3 and 4: a read is one snapshot, a write is all or nothing."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from itertools import groupby
from typing import cast

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import RevisionConflictError, TooLargeError
from chathistory_core.records import Conversation, Record, Written, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, keys_of, records, say, texts_of, with_backend


class SnapshotTests:
    """Head and records fit together, and what was acknowledged is seen."""

    @in_loop
    async def test_another_handle_sees_every_acknowledged_write(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            for number in range(30):
                written = await say(one, "k", str(number))
                found = await other.get("k")
                assert (found.revision, found.record_count) == (written.revision, number + 1)
                assert texts_of(found)[-1] == str(number)
                one, other = other, one

    @in_loop
    async def test_summaries_of_another_handle_see_every_acknowledged_write(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            for number in range(10):
                written = await say(one, f"k{number}", "a")
                found = await other.summaries()
                assert keys_of(found) == [f"k{each}" for each in range(number + 1)]
                assert found[-1].revision == written.revision
            await one.clear("k0")
            assert "k0" not in keys_of(await other.summaries())

    @in_loop
    async def test_head_and_records_are_one_snapshot_while_others_append(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            written: dict[str, int] = {}

            async def write() -> None:
                for number in range(1, 41):
                    written[(await say(one, "k", "a", "b", "c")).revision] = number * 3

            found = await seen_during(write(), other)
        for each in found:
            assert len(each.records) == each.record_count == written.get(each.revision, 0)

    @in_loop
    async def test_a_replace_is_never_seen_half_done(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            written: dict[str, str] = {}

            async def replace(number: int) -> None:
                texts = [f"{number}"] * (number % 5 + 1)
                result = await one.replace("k", records(*texts), turn_id=new_turn_id())
                written[result.revision] = str(number)

            async def write() -> None:
                for number in range(1, 41):
                    await replace(number)

            await replace(0)
            found = await seen_during(write(), other)
        for each in found:
            assert each.revision in written, "a state that no replace had made was seen"
            number = written[each.revision]
            assert texts_of(each) == [number] * (int(number) % 5 + 1)


class AtomicityTests:
    """No error, cancelled task or rival leaves half a write or takes one away."""

    @in_loop
    async def test_sixteen_writers_on_two_handles_lose_double_and_split_nothing(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as one, make_backend() as other:

            async def writer(backend: ChatHistoryBackend, name: int) -> None:
                for number in range(8):
                    size = (name + number) % 4 + 1
                    await say(backend, "k", *(f"{name} {number} {index} {size}" for index in range(size)))

            await asyncio.gather(*(writer((one, other)[name % 2], name) for name in range(16)))
            found = await one.get("k")
        assert_whole_turns(texts_of(found), writers=16, turns=8)
        assert len({record.turn_id for record in found.records}) == 16 * 8
        assert found.record_count == len(found.records)

    @in_loop
    async def test_sixteen_writers_begin_one_conversation(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            written = await asyncio.gather(*(say((one, other)[name % 2], "k", str(name)) for name in range(16)))
            found = await other.get("k")
        assert sorted(map(int, texts_of(found))) == list(range(16))
        assert {each.epoch for each in written} == {found.epoch}
        assert len({each.revision for each in written}) == 16

    @in_loop
    async def test_cancelled_appends_are_stored_once_when_they_are_tried_again(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as backend:
            moments = await _moments(backend)
            for number, moment in enumerate(moments):
                await _cancelled(say(backend, "k", f"{number}a", f"{number}b", turn_id=f"t{number}"), moment)
                held = texts_of(await backend.get("k"))
                assert held[number * 2 :] in ([], [f"{number}a", f"{number}b"])
                await say(backend, "k", f"{number}a", f"{number}b", turn_id=f"t{number}")
            found = texts_of(await backend.get("k"))
        assert found == [f"{number}{half}" for number in range(len(moments)) for half in "ab"]

    @in_loop
    async def test_many_appends_cancelled_at_once_are_stored_once_when_they_are_tried_again(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as backend:
            moments = await _moments(backend)
            turns = [(f"t{number}", f"{number}") for number in range(len(moments))]
            await asyncio.gather(
                *(
                    _cancelled(say(backend, "k", text, text, turn_id=turn), moment)
                    for (turn, text), moment in zip(turns, moments, strict=True)
                )
            )
            await asyncio.gather(*(say(backend, "k", text, text, turn_id=turn) for turn, text in turns))
            found = texts_of(await backend.get("k"))
        assert sorted(found) == sorted([text for _, text in turns] * 2)
        assert [text for text, run in groupby(found) if len(list(run)) != 2] == []

    @in_loop
    async def test_a_cancelled_replace_leaves_the_old_or_the_new(self, make_backend: BackendFactory) -> None:
        async with make_backend() as backend:
            held = ["start"]
            await say(backend, "k", *held)
            for number, moment in enumerate(await _moments(backend)):
                new = [f"{number}a", f"{number}b", f"{number}c"]
                turn_id = new_turn_id()
                await _cancelled(backend.replace("k", records(*new), turn_id=turn_id), moment)
                assert texts_of(await backend.get("k")) in (held, new)
                await backend.replace("k", records(*new), turn_id=turn_id)
                assert texts_of(await backend.get("k")) == new
                held = new

    @with_backend
    async def test_a_refused_expectation_writes_nothing(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        before = await backend.get("k")
        with pytest.raises(RevisionConflictError):
            await backend.append("k", records("b", "c"), turn_id="t", expected_revision="another")
        with pytest.raises(RevisionConflictError):
            await backend.replace("k", records("b", "c"), turn_id="t", expected_revision="another")
        assert await backend.get("k") == before
        assert not (await say(backend, "k", "b", turn_id="t")).replayed

    @with_backend
    async def test_a_batch_with_one_bad_record_writes_nothing(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        before = await backend.get("k")
        no_bytes = Record(cast("bytes", "text"), "text")
        too_large = Record(bytes(backend.limits.max_record_bytes + 1), "text")
        for bad, error in ((no_bytes, TypeError), (too_large, TooLargeError)):
            batch = [*records("b", "c"), bad]
            with pytest.raises(error):
                await backend.append("k", batch, turn_id="t")
            with pytest.raises(error):
                await backend.replace("k", batch, turn_id="t")
            with pytest.raises(error):
                await backend.append("new", batch, turn_id="t")
        assert await backend.get("k") == before
        assert keys_of(await backend.summaries()) == ["k"]

    @in_loop
    async def test_after_a_refused_batch_another_handle_writes_at_once(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            with pytest.raises(TypeError):
                await one.append("k", [*records("a"), Record(cast("bytes", object()), "text")], turn_id="t")
            assert (await other.get("k")).record_count == 0
            await say(other, "k", "b")
            await say(one, "k", "c")
            assert texts_of(await other.get("k")) == ["b", "c"]


def assert_whole_turns(texts: list[str], *, writers: int, turns: int) -> None:
    """Check texts `writer turn index size`: every turn once, whole, and each writer's in order."""
    seen: dict[str, list[int]] = {}
    at = 0
    while at < len(texts):
        name, number, _, size = texts[at].split()
        assert texts[at : at + int(size)] == [f"{name} {number} {index} {size}" for index in range(int(size))]
        seen.setdefault(name, []).append(int(number))
        at += int(size)
    assert seen == {name: list(range(turns)) for name in sorted(seen, key=list(seen).index)}
    assert len(seen) == writers


async def seen_during(write: Coroutine[object, object, None], backend: ChatHistoryBackend) -> list[Conversation]:
    """What reads of `k` see until the writing ends."""
    found: list[Conversation] = []
    writing = asyncio.create_task(write)
    try:
        while not writing.done():
            found.append(await backend.get("k"))
            await asyncio.sleep(0)
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)  # its end is heard, also where a read fails
    await writing
    return found


async def _moments(backend: ChatHistoryBackend) -> list[int]:
    """After how many steps of the loop to cancel a call, so that its whole length is hit."""
    task = asyncio.create_task(say(backend, "a call to measure", "a"))
    steps = 0
    while not task.done():
        await asyncio.sleep(0)
        steps += 1
    await task
    return [round(steps * number / 30) for number in range(40)]


async def _cancelled(call: Coroutine[object, object, Written], steps: int) -> None:
    task = asyncio.create_task(call)
    for _ in range(steps):
        await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
