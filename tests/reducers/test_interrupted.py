"""Compacting that is broken off anywhere loses nothing, and is brought to its end by repeating it."""

import asyncio

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    Limits,
    RevisionConflictError,
    StoredChatHistoryProvider,
)
from chathistory_core.reducers import CountingReducer
from chathistory_memory import MemoryBackend

from .between import AtTheLastMoment, Breaking, KilledError
from .talk import SYSTEM, USER, MakeBackend, Model, held, put, reducer, run, talk

MESSAGES = ["rules", "q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]


def test_what_is_appended_at_the_last_moment_is_kept_and_copied(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await begin(plain, "k")
        late = AtTheLastMoment(backend)
        late.action = lambda: talk(plain, 5, 6)
        done = await StoredChatHistoryProvider(late).compact(plain.session("k"), CountingReducer(2))
        assert await held(plain) == ["rules", "q5", "a5"]
        assert await held(plain, key="k.archive.1") == [*MESSAGES, "q5", "a5"]
        assert done.before == 11

    run(make_backend, work)


def test_of_two_that_would_store_different_views_the_second_works_on_the_first_one_s(
    make_backend: MakeBackend,
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await begin(plain, "k")
        late = AtTheLastMoment(backend)
        late.action = lambda: plain.compact(plain.session("k"), CountingReducer(4), archive=False)
        done = await StoredChatHistoryProvider(late).compact(plain.session("k"), CountingReducer(2), archive=False)
        assert await held(plain) == ["rules", "q4", "a4"]
        assert done.before == 5

    run(make_backend, work)


def test_where_others_write_each_time_it_gives_up_and_says_so() -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await begin(plain, "k")
        late = AtTheLastMoment(backend)
        tries = 0

        async def write() -> None:
            nonlocal tries
            tries += 1
            late.action = write
            await put(plain, USER("well?"))

        late.action = write
        with pytest.raises(RevisionConflictError):
            await StoredChatHistoryProvider(late).compact(plain.session("k"), CountingReducer(2))
        assert await held(plain) == [*MESSAGES, *["well?"] * tries]

    run(MemoryBackend, work)


SMALL = Limits(max_records=6)
"""So that a copy takes several writes."""


async def begin(history: StoredChatHistoryProvider, key: str) -> None:
    await put(history, SYSTEM("rules"), key=key)
    await talk(history, 1, 5, key=key)


async def texts(history: StoredChatHistoryProvider, key: str) -> list[str] | None:
    return await held(history, key=key) if await history.exists(key) else None


def test_a_copy_that_another_begins_at_the_last_moment_is_gone_on_with(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await begin(plain, "k")
        late = AtTheLastMoment(backend)
        late.before, late.action = "append", lambda: plain.compact(plain.session("k"), CountingReducer(4))
        await StoredChatHistoryProvider(late).compact(plain.session("k"), CountingReducer(2))
        sizes = {one.key: one.record_count for one in await plain.summaries()}
        assert sizes == {"k": 3, "k.archive.1": 9, "k.archive.2": 5}

    run(make_backend, work)


def test_a_copy_is_written_into_no_conversation_of_somebody_else_s(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await begin(plain, "k")
        await plain.set_messages(plain.session("k.archive.1"), [])
        late = AtTheLastMoment(backend)
        late.before, late.action = "append", lambda: put(plain, USER("mine"), key="k.archive.2")
        done = await StoredChatHistoryProvider(late).compact(plain.session("k"), CountingReducer(2))
        assert done.archive == "k.archive.3"
        sizes = {one.key: one.record_count for one in await plain.summaries()}
        assert sizes == {"k": 3, "k.archive.1": 0, "k.archive.2": 1, "k.archive.3": 9}

    run(make_backend, work)


@pytest.mark.parametrize("limits", [Limits(max_records=6), Limits(max_bytes=1_000)])
def test_a_copy_that_is_too_large_for_one_write_takes_several(make_backend: MakeBackend, limits: Limits) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        await talk(plain, 1, 20)
        limited = StoredChatHistoryProvider(Breaking(backend, limits=limits))
        await limited.compact(plain.session("k"), CountingReducer(4))
        before = [message for number in range(1, 20) for message in (f"q{number}", f"a{number}")]
        assert await held(plain, key="k.archive.1") == before
        assert len({record.turn_id for record in (await backend.get("k.archive.1")).records}) > 1

    run(make_backend, work)


@pytest.mark.parametrize("error", [KilledError, asyncio.CancelledError, BackendUnavailableError])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_broken_off_at_any_call_nothing_is_lost_and_repeating_it_brings_it_to_its_end(
    make_backend: MakeBackend, moment: str, error: type[BaseException]
) -> None:
    asked = 0

    async def work(backend: ChatHistoryBackend) -> None:
        nonlocal asked
        number, is_done = 0, False
        while not is_done:
            number += 1
            key = f"k{number}"
            model = Model()
            breaking = Breaking(backend, limits=SMALL)
            history = StoredChatHistoryProvider(breaking)
            session = history.session(key)
            await begin(StoredChatHistoryProvider(backend), key)
            breaking.broken, breaking.error = (number, moment), error
            try:
                await history.compact(session, reducer(model))
                is_done = breaking.calls < number
            except error:
                pass
            breaking.broken = None
            found, copy = await texts(history, key), await texts(history, f"{key}.archive.1")
            if found == MESSAGES:
                assert copy is None or copy == MESSAGES[: len(copy)]
                await talk(history, 5, 6, key=key)
                expected = [*MESSAGES, "q5", "a5"]
            else:
                expected = MESSAGES
            await history.compact(session, reducer(model))
            assert await texts(history, f"{key}.archive.1") == expected
            assert await texts(history, f"{key}.archive.2") is None
            [rules, summary, *rest] = await held(history, key=key)
            assert (rules, summary[:9], rest) == ("rules", "[Summary]", expected[-len(rest) :])
            assert summary.endswith(f" {expected[-len(rest) - 1]}>")
            assert len(model.asked) <= 2
            asked = max(asked, number)

    run(make_backend, work)
    assert asked > 8
