"""A summary is made once, kept as a note of its conversation, and shown in the place of what it stands for."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

import pytest

from chathistory_core import (
    NO_REVISION,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatMessage,
    Conversation,
    StoredChatHistoryProvider,
    new_turn_id,
)
from chathistory_core.reducers import CountingReducer, ReducerPipeline, SummarizingReducer, ToolResultReducer
from chathistory_core.views.windows import Window
from chathistory_memory import MemoryBackend

from .between import Breaking
from .talk import ASSISTANT, SYSTEM, TOOL, USER, MakeBackend, Model, call, held, notes, put, reducer, run, seen, talk

Q1A1Q2A2 = ["q1", "a1", "q2", "a2"]
FIRST = "[Summary]\n<q1 a1 q2 a2>"


def test_the_model_is_asked_once_for_a_stretch_also_after_a_restart(make_backend: MakeBackend, model: Model) -> None:
    async def write(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        for _ in range(3):
            assert await seen(history) == [FIRST, "q3", "a3"]

    async def read(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        for _ in range(3):
            assert await seen(history) == [FIRST, "q3", "a3"]

    run(make_backend, write, read)
    assert model.asked == [Q1A1Q2A2]


def test_the_next_summary_is_made_of_the_one_before_and_what_came_since(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        await seen(history)
        await talk(history, 4, 5)
        assert await seen(history) == [FIRST, "q3", "a3", "q4", "a4"]
        await talk(history, 5, 6)
        assert await seen(history) == ["[Summary]\n<<q1 a1 q2 a2> q3 a3 q4 a4>", "q5", "a5"]

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2, [FIRST, "q3", "a3", "q4", "a4"]]


def test_what_is_stored_stays_and_no_reader_of_messages_sees_the_note(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        before = await backend.get("k")
        await seen(history)
        after = await backend.get("k")
        assert after.records[:-1] == before.records
        assert (after.epoch, notes(after), after.record_count) == (before.epoch, 1, 7)
        assert await held(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        assert await seen(StoredChatHistoryProvider(backend)) == await held(history)

    run(make_backend, work)


def test_leading_system_messages_stand_before_the_summary(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await put(history, SYSTEM("rules"), ChatMessage(role="developer"), USER("q0"), ASSISTANT("a0"))
        await talk(history, 1, 40)
        for _ in range(2):
            shown = await seen(history)
            assert shown[:2] == ["rules", ""]
            assert shown[2].startswith("[Summary]\n<q0 a0 q1")
            assert shown[3:] == ["q39", "a39"]
        assert await seen(StoredChatHistoryProvider(backend, reducer=reducer(model), trusted_roles=["user"])) == ["q39"]

    run(make_backend, work)
    assert len(model.asked) == 1
    assert "rules" not in model.asked[0]


def test_a_failing_model_leaves_the_messages_and_the_log_says_so_without_them(
    make_backend: MakeBackend, model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        model.failure = RuntimeError("about q1")
        with caplog.at_level(logging.WARNING, "chathistory"):
            assert await seen(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        assert "RuntimeError" in caplog.text
        assert "q1" not in caplog.text
        assert notes(await backend.get("k")) == 0
        model.failure, model.answer = None, " \n"
        assert await seen(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        model.answer = None
        assert await seen(history) == [FIRST, "q3", "a3"]
        await talk(history, 4, 6)
        model.failure = RuntimeError()
        assert await seen(history) == [FIRST, "q3", "a3", "q4", "a4", "q5", "a5"]

    run(make_backend, work)


def test_a_run_that_is_cancelled_in_the_model_s_call_is_cancelled(model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        model.failure = asyncio.CancelledError()
        with pytest.raises(asyncio.CancelledError):
            await seen(history)

    run(MemoryBackend, work)


def test_runs_at_once_ask_the_model_once(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        histories = [StoredChatHistoryProvider(backend, reducer=reducer(model)) for _ in range(2)]
        await talk(histories[0], 1, 4)
        model.meanwhile = lambda: asyncio.sleep(0)
        shown = await asyncio.gather(*(seen(history) for history in [*histories, *histories]))
        assert shown == [[FIRST, "q3", "a3"]] * 4
        assert notes(await backend.get("k")) == 1

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2]


def test_a_run_takes_over_from_one_that_is_cancelled_while_it_asks(model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def wait() -> None:
            begun.set()
            await go_on.wait()

        model.meanwhile = wait
        first = asyncio.create_task(seen(history))
        await begun.wait()
        second = asyncio.create_task(seen(history))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        go_on.set()
        assert await second == [FIRST, "q3", "a3"]

    run(MemoryBackend, work)
    assert model.asked == [Q1A1Q2A2, Q1A1Q2A2]


def test_the_summary_that_came_first_is_the_one_that_counts(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        other = Model()
        other.answer = "of another"
        await talk(history, 1, 4)

        async def from_elsewhere() -> None:  # as another process does: in another loop, for none of ours waits for it
            def elsewhere() -> list[str]:
                return asyncio.run(one())

            async def one() -> list[str]:
                async with make_backend() as theirs:
                    return await seen(StoredChatHistoryProvider(theirs, reducer=reducer(other)))

            assert await asyncio.to_thread(elsewhere) == ["[Summary]\nof another", "q3", "a3"]

        model.meanwhile = from_elsewhere
        assert await seen(history) == ["[Summary]\nof another", "q3", "a3"]
        assert notes(await backend.get("k")) == 1
        assert await seen(history) == ["[Summary]\nof another", "q3", "a3"]

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2]


def test_a_summary_is_gone_with_its_conversation(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        session = history.session("k")
        await talk(history, 1, 4)
        await seen(history)
        await history.clear(session)
        await talk(history, 1, 2)
        assert await seen(history) == ["q1", "a1"]
        await talk(history, 2, 4)
        assert await seen(history) == [FIRST, "q3", "a3"]
        await history.set_messages(session, [USER("other"), *(await history.messages(session))])
        assert await seen(history) == ["[Summary]\n<other q1 a1 q2 a2>", "q3", "a3"]

    run(make_backend, work)
    assert len(model.asked) == 3


def test_a_conversation_that_is_set_to_what_it_was_is_summarised_once_more(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        session = history.session("k")
        await talk(history, 1, 4)
        await seen(history)
        await history.set_messages(session, await history.messages(session))
        for _ in range(3):
            assert await seen(history) == [FIRST, "q3", "a3"]

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2, Q1A1Q2A2]


def test_a_conversation_that_is_cleared_meanwhile_is_not_brought_back_by_its_summary(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        model.meanwhile = lambda: history.clear(history.session("k"))
        assert await seen(history) == [FIRST, "q3", "a3"]
        assert (await backend.get("k")).revision == NO_REVISION

    run(make_backend, work)


def test_a_summary_holds_in_a_copy_of_its_conversation(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        await seen(history)
        records = [record.record for record in (await backend.get("k")).records]
        await backend.replace("copy", records, turn_id=new_turn_id())
        assert await seen(history, key="copy") == [FIRST, "q3", "a3"]
        await backend.replace("tail", records[1:], turn_id=new_turn_id())  # where it stands for something else
        assert await seen(history, key="tail") == ["[Summary]\n<a1 q2 a2>", "q3", "a3"]
        await backend.replace("short", records[4:], turn_id=new_turn_id())
        assert await seen(history, key="short") == ["q3", "a3"]

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2, ["a1", "q2", "a2"]]


def test_a_summary_expires_with_its_conversation(model: Model) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    async def work(backend: ChatHistoryBackend) -> None:
        nonlocal now
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        assert await seen(history) == [FIRST, "q3", "a3"]
        now += timedelta(days=2)
        assert await seen(history) == []

    run(lambda: MemoryBackend(ttl=timedelta(days=1), clock=lambda: now), work)


def test_summaries_of_several_names_stand_side_by_side(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        brief = Model()
        brief.answer = "in brief"
        other = StoredChatHistoryProvider(backend, reducer=reducer(brief, name="brief"))
        await talk(history, 1, 4)
        for _ in range(2):
            assert await seen(history) == [FIRST, "q3", "a3"]
            assert await seen(other) == ["[Summary]\nin brief", "q3", "a3"]
        assert len(brief.asked) == 1

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2]


def test_a_summary_that_is_made_when_a_run_was_stored_is_there_for_the_next(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model, trigger="after_append"))
        await talk(history, 1, 4)
        assert await seen(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]
        assert model.asked == []
        async with history.turn(history.session("k"), [USER("q4")]) as turn:
            turn.add(ASSISTANT("a4"))
        assert model.asked == [["q1", "a1", "q2", "a2", "q3", "a3"]]
        assert await seen(history) == ["[Summary]\n<q1 a1 q2 a2 q3 a3>", "q4", "a4"]
        assert len(model.asked) == 1

    run(make_backend, work)


def test_a_run_is_stored_though_the_summary_after_it_fails(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model, trigger="after_append"))
        await talk(history, 1, 4)
        model.failure = RuntimeError()
        async with history.turn(history.session("k"), [USER("q4")]) as turn:
            turn.add(ASSISTANT("a4"))
        assert (await held(history))[-2:] == ["q4", "a4"]

    run(make_backend, work)


def test_a_run_alone_is_not_disturbed_by_the_summary_that_it_makes(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model), exclusive=True)
        await talk(history, 1, 4)
        async with history.turn(history.session("k"), [USER("q4")]) as turn:
            assert [message.text for message in turn.messages] == [FIRST, "q3", "a3", "q4"]
            turn.add(ASSISTANT("a4"))
        assert (await held(history))[-2:] == ["q4", "a4"]

    run(make_backend, work)


def test_a_turn_that_is_stored_already_asks_no_model(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model, keep=2, above=4))
        await talk(history, 1, 4)
        async with StoredChatHistoryProvider(backend).turn(history.session("k"), [USER("q")], turn_id="T") as turn:
            turn.add(ASSISTANT("a"))
        async with history.turn(history.session("k"), [USER("q")], turn_id="T") as turn:
            assert turn.replayed
            assert turn.answer == (ASSISTANT("a"),)
        assert model.asked == []
        await seen(history)
        async with history.turn(history.session("k"), [USER("q")], turn_id="T") as turn:
            assert turn.replayed
        await talk(history, 4, 9)
        await seen(history)
        async with history.turn(history.session("k"), [USER("q")], turn_id="T") as turn:  # now behind the summary
            assert turn.replayed
            assert turn.answer == (ASSISTANT("a"),)

    run(make_backend, work)


def test_a_window_holds_the_summary_and_cuts_behind_it(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model, keep=2, above=6), window=Window(messages=2))
        await talk(history, 1, 4)
        assert await seen(history) == ["q3", "a3"]
        await talk(history, 4, 5)
        assert await seen(history) == ["[Summary]\n<q1 a1 q2 a2 q3 a3>", "q4", "a4"]
        await talk(history, 5, 6)
        assert await seen(history) == ["[Summary]\n<q1 a1 q2 a2 q3 a3>", "q5", "a5"]

    run(make_backend, work)


def test_in_a_pipeline_a_summary_is_kept_too(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        pipeline = ReducerPipeline(ToolResultReducer(keep=0), reducer(model), CountingReducer(3))
        history = StoredChatHistoryProvider(backend, reducer=pipeline)
        await talk(history, 1, 4)
        for _ in range(2):
            assert await seen(history) == [FIRST, "q3", "a3"]

    run(make_backend, work)
    assert model.asked == [Q1A1Q2A2]


def test_each_summary_on_the_way_through_a_long_history_is_kept(make_backend: MakeBackend, model: Model) -> None:
    def summarizing() -> SummarizingReducer:
        return SummarizingReducer(model, keep=Window(messages=2), at_once=Window(messages=4))

    async def begin(backend: ChatHistoryBackend) -> None:
        await talk(StoredChatHistoryProvider(backend), 1, 8)
        failures = iter([None, None, RuntimeError()])

        async def fail() -> None:
            model.failure = next(failures)

        model.meanwhile = fail
        shown = await seen(StoredChatHistoryProvider(backend, reducer=summarizing()))
        assert shown == ["[Summary]\n<<q1 a1 q2 a2> q3 a3 q4 a4>", "q5", "a5", "q6", "a6", "q7", "a7"]
        assert notes(await backend.get("k")) == 2

    async def go_on(backend: ChatHistoryBackend) -> None:
        model.meanwhile = model.failure = None
        shown = await seen(StoredChatHistoryProvider(backend, reducer=summarizing()))
        assert shown == ["[Summary]\n<<<q1 a1 q2 a2> q3 a3 q4 a4> q5 a5 q6 a6>", "q7", "a7"]
        assert notes(await backend.get("k")) == 3

    run(make_backend, begin, go_on)


def test_rounds_that_were_collapsed_before_go_into_the_summary_in_parts_too(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        one = SummarizingReducer(model, keep=Window(messages=1), at_once=Window(messages=1))
        history = StoredChatHistoryProvider(backend, reducer=ReducerPipeline(ToolResultReducer(keep=0), one))
        rounds = [[ChatMessage(role="assistant", contents=[call(f"c{n}")]), TOOL(f"c{n}", n)] for n in range(3)]
        await put(history, USER("q1"), *rounds[0], *rounds[1], USER("q2"), *rounds[2], ASSISTANT("a2"))
        for _ in range(2):
            assert (await seen(history))[1:] == ["a2"]
        told = " ".join(text for asked in model.asked for text in asked)
        assert all(f"look(): {n}" in told for n in range(3))

    run(make_backend, work)


def test_where_the_store_takes_no_note_the_run_goes_on_with_the_summary(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        await talk(StoredChatHistoryProvider(backend), 1, 4)
        failing = Breaking(backend)
        failing.broken, failing.error = (3, "before"), BackendUnavailableError
        history = StoredChatHistoryProvider(failing, reducer=reducer(model))
        assert await seen(history) == [FIRST, "q3", "a3"]
        assert "not kept: BackendUnavailableError" in caplog.text
        assert await seen(history) == [FIRST, "q3", "a3"]

    run(MemoryBackend, work)
    assert len(model.asked) == 2


def test_text_that_no_store_takes_does_not_break_a_summary(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        await talk(history, 1, 4)
        model.answer = "half an emoji: \ud83d, and \0"
        await seen(history)
        assert await seen(history) == ["[Summary]\nhalf an emoji: ?, and \0", "q3", "a3"]

    run(make_backend, work)
    assert len(model.asked) == 1


class Counting(MemoryBackend):
    """Counts the records of each read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, limit=limit, before=before, after=after)
        self.reads.append(len(found.records))
        return found


@pytest.mark.parametrize("count", [10, 5_000])
def test_what_is_read_follows_what_stands_behind_the_summary(count: int, model: Model) -> None:
    backend = Counting()

    async def work(_: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model))
        messages = [message for number in range(count) for message in (USER(f"q{number}"), ASSISTANT(f"a{number}"))]
        await history.set_messages(history.session("k"), messages)
        await seen(history)
        assert len(backend.reads) <= 15
        assert sum(backend.reads) == 2 * count
        backend.reads.clear()
        assert (await seen(history))[1:] == [f"q{count - 1}", f"a{count - 1}"]
        assert len(backend.reads) == 2
        assert sum(backend.reads) <= 64 + 20

    run(lambda: backend, work)
    assert len(model.asked) == 1


def test_of_a_long_stretch_behind_the_summary_no_more_is_read_than_is_shown(model: Model) -> None:
    backend = Counting()

    async def work(_: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, reducer=reducer(model, keep=100, above=400))
        messages = [USER(f"q{number}") for number in range(1_000)]
        await history.set_messages(history.session("k"), messages)
        await seen(history)
        backend.reads.clear()
        assert len(await seen(history)) == 101
        assert sum(backend.reads) == 1 + 100 + 1 + 20  # the last that it stands for, those behind, the note, the first

    run(lambda: backend, work)
