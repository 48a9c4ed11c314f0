"""Stored history is rewritten for good, a copy kept, and nothing that others do meanwhile is lost."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    ChatMessage,
    InvalidKeyError,
    Record,
    StoredChatHistoryProvider,
    StoredRecord,
    TooLargeError,
    new_turn_id,
)
from chathistory_core.formats import openai_chat
from chathistory_core.reducers import CountingReducer, Reducer, ReducerPipeline, ToolResultReducer, is_summary
from chathistory_memory import MemoryBackend

from .talk import ASSISTANT, SYSTEM, TOOL, USER, MakeBackend, Model, call, held, notes, put, reducer, run, seen, talk


def plain(records: Sequence[StoredRecord]) -> list[tuple[bytes, str]]:
    return [(record.payload, record.format) for record in records]


def test_the_reducer_s_view_takes_the_place_of_what_is_stored(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        session = history.session("k")
        await put(history, SYSTEM("rules"))
        await talk(history, 1, 5)
        before = await backend.get("k")
        done = await history.compact(session, CountingReducer(2))
        assert (done.before, done.after, done.archive) == (9, 3, "k.archive.1")
        assert await held(history) == ["rules", "q4", "a4"]
        after = await backend.get("k")
        assert done.written is not None
        assert (after.revision, after.epoch) == (done.written.revision, done.written.epoch)
        assert after.created_at == before.created_at
        assert after.epoch != before.epoch

    run(make_backend, work)


def test_messages_that_are_left_as_they_are_keep_their_records(make_backend: MakeBackend) -> None:
    theirs = '{ "role": "assistant", "content": "as it came", "refusal": null }'

    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await put(history, USER("look"), ChatMessage(role="assistant", contents=[call("c")]), TOOL("c", "found it"))
        await put(history, USER("and?"), *openai_chat.load(theirs))
        await backend.append("k", [Record(b"of mine", "chathistory-note")], turn_id=new_turn_id())
        await put(history, USER("well"))
        await backend.append("k", [Record(b"of mine too", "chathistory-note")], turn_id=new_turn_id())
        before = plain((await backend.get("k")).records)
        await history.compact(history.session("k"), ToolResultReducer(keep=0))
        after = plain((await backend.get("k")).records)
        assert after[0] == before[0]
        assert after[2:] == before[3:]
        assert await held(history) == ["look", "[Tool Calls]\nlook(): found it", "and?", "as it came", "well"]

    run(make_backend, work)


def test_the_copy_is_what_was_there_a_conversation_of_its_own(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, scope=("t", "ann"))
        session = history.session("k:1")
        messages = [one for number in range(1, 5) for one in (USER(f"q{number}"), ASSISTANT(f"a{number}"))]
        await history.set_messages(session, messages)
        await seen(StoredChatHistoryProvider(backend, scope=("t", "ann"), reducer=reducer(model)), key="k:1")
        [summary] = await backend.summaries()
        before = plain((await backend.get(summary.key)).records)
        assert len(before) == 9
        await history.compact(session, CountingReducer(2))
        assert [one.key for one in await history.summaries()] == ["k:1", "k:1.archive.1"]
        copy = next(one.key for one in await backend.summaries() if one.key != summary.key)
        assert plain((await backend.get(copy)).records) == before
        await history.clear(session)
        assert (await held(history, key="k:1.archive.1"))[:2] == ["q1", "a1"]

    run(make_backend, work)


def test_a_second_copy_has_the_next_number_and_a_named_one_its_name(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        session = history.session("k")
        await talk(history, 1, 5)
        assert (await history.compact(session, CountingReducer(6))).archive == "k.archive.1"
        assert (await history.compact(session, CountingReducer(4))).archive == "k.archive.2"
        assert (await history.compact(session, CountingReducer(3), archive="old")).archive == "old"
        with pytest.raises(ValueError, match="'old'"):
            await history.compact(session, CountingReducer(2), archive="old")
        assert await held(history) == ["a3", "q4", "a4"]
        assert (await history.compact(session, CountingReducer(2), archive=False)).archive is None
        sizes = {one.key: one.record_count for one in await history.summaries()}
        assert sizes == {"k": 2, "k.archive.1": 8, "k.archive.2": 6, "old": 4}

    run(make_backend, work)


def test_both_keys_are_checked_before_anything_is_written(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        long = "k" * 505
        await talk(history, 1, 5, key=long)
        for key, name in ((long, True), (long, "\0")):
            with pytest.raises(InvalidKeyError):
                await history.compact(history.session(key), reducer(model), archive=name)
        with pytest.raises(ValueError, match="another key"):
            await history.compact(history.session(long), reducer(model), archive=long)
        assert [(one.key, one.record_count) for one in await backend.summaries()] == [(long, 8)]
        assert model.asked == []

    run(make_backend, work)


def test_what_needs_no_change_is_left_alone(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 3)
        before = await backend.get("k")
        for session in (history.session("k"), history.session("new"), history.session(), None):
            done = await history.compact(session, CountingReducer(4))
            assert (done.before, done.written, done.archive) == (done.after, None, None)
        assert await backend.get("k") == before
        assert len(await backend.summaries()) == 1

    run(make_backend, work)


def test_no_conversation_is_made_where_there_is_none() -> None:
    class Greeting:
        async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
            return [SYSTEM("welcome"), *messages]

    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await history.compact(history.session("k"), Greeting())
        assert await history.summaries() == ()

    run(MemoryBackend, work)


def test_compacting_again_changes_nothing_more(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        for one in (CountingReducer(6), reducer(model)):
            await history.compact(history.session("k"), one)
            before = await backend.get("k")
            assert (await history.compact(history.session("k"), one)).written is None
            assert await backend.get("k") == before

    run(make_backend, work)
    assert len(model.asked) == 1


def test_a_summary_that_was_shown_is_the_one_that_is_stored(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await put(history, SYSTEM("rules"))
        await talk(history, 1, 5)
        shown = await seen(history)
        assert shown == ["rules", "[Summary]\n<q1 a1 q2 a2 q3 a3>", "q4", "a4"]
        await history.compact(history.session("k"), reducer(model))
        assert await held(history) == shown
        after = await backend.get("k")
        assert notes(after) == 0
        assert [is_summary(one) for one in await history.messages(history.session("k"))] == [False, True, False, False]
        assert await seen(history) == shown
        await talk(history, 5, 7)
        assert (await seen(history))[1] == "[Summary]\n<<q1 a1 q2 a2 q3 a3> q4 a4 q5 a5>"

    run(make_backend, work)
    assert len(model.asked) == 2


def test_a_model_that_fails_leaves_everything_as_it_is(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        before = await backend.get("k")
        model.failure = RuntimeError()
        assert (await history.compact(history.session("k"), reducer(model))).written is None
        assert await backend.get("k") == before
        assert len(await backend.summaries()) == 1

    run(make_backend, work)


class Meanwhile:
    """A reducer during whose work something happens, so many times."""

    def __init__(self, reducer: Reducer, action: Callable[[], Awaitable[object]], times: int = 1) -> None:
        self.reducer = reducer
        self.action = action
        self.times = times

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        if self.times:
            self.times -= 1
            await self.action()
        return await self.reducer.reduce(messages)


def test_what_is_appended_meanwhile_is_kept_and_copied(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        numbers = iter(range(5, 8))

        async def another_turn() -> None:
            number = next(numbers)
            await talk(history, number, number + 1)

        done = await history.compact(history.session("k"), Meanwhile(CountingReducer(2), another_turn, times=3))
        assert (done.before, done.archive) == (14, "k.archive.1")
        assert await held(history) == ["q7", "a7"]
        assert len(await held(history, key="k.archive.1")) == 14

    run(make_backend, work)


def test_a_run_that_ends_after_it_is_stored_behind(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        async with history.turn(history.session("k"), [USER("q5")]) as turn:
            await history.compact(history.session("k"), CountingReducer(2))
            turn.add(ASSISTANT("a5"))
        assert await held(history) == ["q4", "a4", "q5", "a5"]

    run(make_backend, work)


async def broken_off(history: StoredChatHistoryProvider) -> None:
    async with history.turn(history.session("k"), [USER("q5")], turn_id="T") as turn:
        turn.add(ASSISTANT("half"))
        raise ZeroDivisionError


@pytest.mark.parametrize("summarizing", [False, True])
def test_an_incomplete_answer_that_was_replaced_is_left_out(
    make_backend: MakeBackend, model: Model, summarizing: bool
) -> None:
    one: Reducer = reducer(model, keep=4, above=4) if summarizing else CountingReducer(4)

    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, on_failure="partial")
        session = history.session("k")
        await talk(history, 1, 5)
        with pytest.raises(ZeroDivisionError):
            await broken_off(history)
        async with history.turn(session, [USER("q5")], turn_id="T") as turn:
            turn.add(ASSISTANT("whole"))
        assert (await held(history))[-3:] == ["q5", "half", "whole"]
        shown = await seen(StoredChatHistoryProvider(backend, reducer=one))
        await history.compact(session, one)
        assert await held(history) == shown
        assert shown[-4:] == ["q4", "a4", "q5", "whole"]
        assert (await held(history, key="k.archive.1"))[8:11] == ["q5", "half", "whole"]

    run(make_backend, work)


def test_a_conversation_that_is_cleared_meanwhile_is_not_brought_back(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        session = history.session("k")
        await talk(history, 1, 5)
        done = await history.compact(session, Meanwhile(CountingReducer(2), lambda: history.clear(session)))
        assert done.written is None
        assert not await history.exists("k")

    run(make_backend, work)


def test_several_at_once_make_one_change_and_one_copy(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        session = history.session("k")
        await asyncio.gather(*(history.compact(session, reducer(model)) for _ in range(4)))
        assert await held(history) == ["[Summary]\n<q1 a1 q2 a2 q3 a3>", "q4", "a4"]
        sizes = {one.key: one.record_count for one in await history.summaries()}
        assert sizes.keys() == {"k", "k.archive.1"}
        assert (await held(history, key="k.archive.1"))[:8] == ["q1", "a1", "q2", "a2", "q3", "a3", "q4", "a4"]

    run(make_backend, work)
    assert len(model.asked) == 1


def test_a_view_that_no_store_takes_is_refused_before_a_copy_is_made() -> None:
    class Swelling:
        async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
            return [*messages, USER("x" * 17 * 2**20)]

    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        await talk(history, 1, 5)
        with pytest.raises(TooLargeError):
            await history.compact(history.session("k"), Swelling())
        assert len(await backend.summaries()) == 1

    run(MemoryBackend, work)


@pytest.mark.parametrize("wrong", [CountingReducer, None, "summary"])
def test_what_is_no_reducer_is_refused(wrong: Reducer) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend)
        with pytest.raises(TypeError, match="reduce"):
            await history.compact(history.session("k"), wrong)
        with pytest.raises(TypeError, match="reduce"):
            ReducerPipeline(wrong)

    run(MemoryBackend, work)
