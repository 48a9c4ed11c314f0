"""What a run is given: read no further than it takes, and never changed in the store."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core import (
    BackendUnavailableError,
    CorruptRecordError,
    EpochChangedError,
    InvokingContext,
    Record,
    StoredChatHistoryProvider,
    TooLargeError,
    TurnConflictError,
    UnpairedCallsError,
    blocking,
    open_history,
)
from chathistory_core.messages import ChatMessage, TextContent
from chathistory_core.reducers import SummarizingReducer
from chathistory_core.views.repair import mended
from chathistory_core.views.view import View
from chathistory_core.views.windows import Window
from chathistory_memory import MemoryBackend

from .counted import Counted
from .histories import HISTORIES, generated
from .messages import ASSISTANT, SYSTEM, USER, calls, request, response, results, says

MakeBackend = Callable[[], Counted]
Work = Callable[[Counted], Awaitable[None]]

ASK = USER("and now?")


def run(make_backend: MakeBackend, work: Work) -> None:
    async def opened() -> None:
        async with make_backend() as backend:
            await work(backend)

    asyncio.run(opened())


def memory() -> Counted:
    return Counted(MemoryBackend())


async def put(backend: Counted, messages: Sequence[ChatMessage]) -> None:
    history = StoredChatHistoryProvider(backend)
    await history.set_messages(history.session("k"), messages)
    backend.reads.clear()


async def sent(
    backend: Counted, *, asking: ChatMessage = ASK, turn_id: str | None = None, **how: Any
) -> tuple[list[ChatMessage], View]:
    """What a run is given of the history, and what is told of it."""
    history = StoredChatHistoryProvider(backend, **how)
    run = InvokingContext(None, history.session("k"), [asking], turn_id=turn_id)
    *given, last = await history.invoking(run)
    assert last is asking
    assert run.view is not None
    return [message.without_source() for message in given], run.view


def exchanges(count: int) -> list[ChatMessage]:
    return [make(str(number)) for number in range(count // 2) for make in (USER, ASSISTANT)]


@pytest.mark.parametrize("count", [100, 10_000])
def test_of_a_long_history_only_what_the_window_shows_is_read(make_backend: MakeBackend, count: int) -> None:
    messages = [SYSTEM("rules"), *exchanges(count)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, view = await sent(backend, window=Window(messages=20))
        assert given == [messages[0], *messages[-20:]]
        assert view == View(messages=21, records=count + 1, left_out=count - 20)
        assert backend.reads == [28, 20]

    run(make_backend, work)


@pytest.mark.parametrize(
    ("window", "shown"),
    [
        (Window(turns=10), 20),
        (Window(tokens=20 * 5), 20),
        (Window(bytes=20 * 4), 20),
        (Window(messages=100, turns=10), 20),
    ],
    ids=["turns", "tokens", "bytes", "several"],
)
def test_every_kind_of_window_reads_what_it_shows_and_a_little_more(
    make_backend: MakeBackend, window: Window, shown: int
) -> None:
    messages = exchanges(10_000)

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, _ = await sent(backend, window=window)
        assert given == messages[-shown:]
        assert sum(backend.reads) <= 120

    run(make_backend, work)


def test_a_round_at_the_edge_is_read_to_its_beginning(make_backend: MakeBackend) -> None:
    ids = [str(number) for number in range(200)]
    messages = [*exchanges(400), calls(*ids), *map(results, ids), ASSISTANT("done")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, _ = await sent(backend, window=Window(messages=202))
        assert given == messages[-202:]
        given, _ = await sent(backend, window=Window(messages=201))
        assert given == messages[-1:]
        given, _ = await sent(backend, window=Window(messages=1))
        assert given == messages[-1:]

    run(make_backend, work)


def test_a_window_larger_than_the_history_reads_it_once(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(20))
        given, view = await sent(backend, window=Window(messages=20))
        assert (given, view.is_whole, backend.reads) == (exchanges(20), True, [20])

    run(make_backend, work)


def test_rules_are_pinned_whichever_role_they_have_and_however_far_they_are(make_backend: MakeBackend) -> None:
    rules = [SYSTEM("a"), says("developer", *SYSTEM("b").contents), SYSTEM("c")]

    async def work(backend: Counted) -> None:
        await put(backend, [*rules, *exchanges(1_000)])
        given, _ = await sent(backend, window=Window(turns=1))
        assert given == [*rules, USER("499"), ASSISTANT("499")]

    run(make_backend, work)


def test_what_is_stored_stays_as_it_is(make_backend: MakeBackend) -> None:
    messages = [SYSTEM("rules"), USER("1"), calls("c"), USER("2"), results("z"), *exchanges(40)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        before = await backend.get("k")
        how: dict[str, Any] = {
            "window": Window(messages=3),
            "repair": "answer",
            "trusted_roles": ["user", "assistant", "tool"],
        }
        assert await sent(backend, **how) == await sent(backend, **how)
        assert await backend.get("k") == before
        history = StoredChatHistoryProvider(backend, **how)
        assert list(await history.messages(history.session("k"))) == messages

    run(make_backend, work)


def test_rules_that_the_last_page_but_one_reaches_are_shown_once() -> None:
    messages = [*(SYSTEM("s") for _ in range(20)), *exchanges(40)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, view = await sent(backend, window=Window(tokens=330))
        assert (given, view.is_whole) == (messages, True)

    run(memory, work)


@pytest.mark.parametrize("count", [2, 200])
def test_rules_are_pinned_behind_what_repair_leaves_out(make_backend: MakeBackend, count: int) -> None:
    messages = [results("z"), calls("c"), SYSTEM("rules"), *exchanges(count)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, _ = await sent(backend, window=Window(messages=1), repair="drop")
        assert given == [SYSTEM("rules"), messages[-1]]

    run(make_backend, work)


@st.composite
def long_histories(draw: st.DrawFn) -> list[ChatMessage]:
    """Random pieces in random order, more of them than the first page holds."""
    pieces = draw(st.lists(HISTORIES.filter(bool), min_size=1, max_size=3))
    order = draw(st.lists(st.integers(0, len(pieces) - 1), min_size=1, max_size=30))
    return [message for index in order for message in pieces[index]]


def test_what_is_pinned_stands_behind_messages_that_are_not_trusted_too() -> None:
    rules = [
        says("developer" if number % 5 == 4 else "system", TextContent(text=f"rule {number}")) for number in range(30)
    ]
    window, trusted = Window(tokens=20), ("user", "system", "assistant")

    async def work(backend: Counted) -> None:
        for messages in (rules, [*rules, *exchanges(10)], [*rules, *exchanges(3_000)]):
            await put(backend, messages)
            given, _ = await sent(backend, window=window, trusted_roles=trusted)
            believed = [message for message in messages if message.role in trusted]
            assert given == list(window.select(believed).messages)
            assert len(given) >= 20

    run(memory, work)


def test_looking_for_what_is_pinned_has_an_end() -> None:
    messages = [*(SYSTEM(f"{number}") for number in range(2_000)), *exchanges(100)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, _ = await sent(backend, window=Window(messages=4), trusted_roles=("user", "assistant"))
        assert len(given) == 4
        assert sum(backend.reads) < 1_100

    run(memory, work)


WINDOWS = st.one_of(
    st.integers(1, 12).map(lambda limit: Window(messages=limit)),
    st.integers(1, 3).map(lambda limit: Window(turns=limit)),
    st.integers(20, 200).map(lambda limit: Window(tokens=limit)),
    st.integers(20, 400).map(lambda limit: Window(bytes=limit)),
)


@generated
@given(
    long_histories(),
    WINDOWS,
    st.sampled_from([None, "drop", "answer"]),
    st.sampled_from([None, ("user", "assistant", "tool"), ("USER", "system", "assistant")]),
)
def test_what_is_read_in_parts_is_what_would_be_seen_of_the_whole(
    messages: list[ChatMessage], window: Window, repair: Any, trusted: Sequence[str] | None
) -> None:
    believed = [message for message in messages if trusted is None or message.role in map(says_role, trusted)]
    whole = believed if repair is None else mended(believed, repair, following=[ASK]).messages

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, view = await sent(backend, window=window, repair=repair, trusted_roles=trusted)
        assert given == list(window.select(whole).messages)
        assert view.messages == len(given)

    run(memory, work)


def says_role(role: str) -> str:
    return says(role).role


def test_dangling_calls_are_mended_before_the_model_sees_them(make_backend: MakeBackend) -> None:
    messages = [USER("go"), calls("c"), USER("again"), calls("d")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, view = await sent(backend)
        assert (given, view.is_whole) == (messages, True)
        given, view = await sent(backend, repair="drop")
        assert (given, view.unpaired) == ([messages[0], messages[2]], 2)
        given, view = await sent(backend, repair="answer")
        assert (len(given), view.unpaired) == (6, 2)
        with pytest.raises(UnpairedCallsError, match=r"2 calls .* 0 results"):
            await sent(backend, repair="raise")

    run(make_backend, work)


def test_what_is_missing_behind_a_summary_is_an_error_too() -> None:
    async def model(_: Sequence[ChatMessage]) -> str:
        return "in short"

    async def work(backend: Counted) -> None:
        await put(backend, [*exchanges(100), calls("c")])
        reducer = SummarizingReducer(model)
        given, view = await sent(backend, reducer=reducer, repair="drop")
        assert (len(given), view.unpaired, view.summarized > 0) == (view.messages, 1, True)
        with pytest.raises(UnpairedCallsError):
            await sent(backend, reducer=reducer, repair="raise")

    run(memory, work)


def test_a_call_that_the_run_answers_is_not_mended(make_backend: MakeBackend) -> None:
    messages = [USER("where am I?"), calls("c")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        for repair in ("drop", "answer", "raise"):
            given, _ = await sent(backend, asking=results("c"), repair=repair, window=Window(messages=1))
            assert given == messages[1:]

    run(make_backend, work)


def test_an_approval_that_the_run_gives_is_still_asked_for(make_backend: MakeBackend) -> None:
    messages = [USER("delete it"), says("assistant", request("p", "c"))]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        for repair in ("drop", "answer", "raise"):
            given, _ = await sent(backend, asking=says("user", response("p", "c")), repair=repair)
            assert given == messages

    run(make_backend, work)


def test_what_is_missing_outside_the_window_is_no_error(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, [USER("go"), calls("c"), *exchanges(10)])
        given, view = await sent(backend, repair="raise", window=Window(messages=4))
        assert (given, view.unpaired) == (exchanges(10)[-4:], 0)

    run(make_backend, work)


def test_only_roles_that_are_trusted_reach_the_model(make_backend: MakeBackend) -> None:
    messages = [SYSTEM("forged"), USER("1"), calls("c"), results("c"), ASSISTANT("2"), says("root")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given, view = await sent(backend, trusted_roles=["user", "Assistant", "tool"])
        assert given == messages[1:5]
        assert view == View(messages=4, records=6, untrusted=2)
        given, _ = await sent(backend, trusted_roles=["system", "user", "assistant", "tool"], window=Window(turns=1))
        assert given == messages[:5]
        given, _ = await sent(backend, trusted_roles=[])
        assert given == []
        given, _ = await sent(backend, trusted_roles=["user", "assistant"], repair="drop")
        assert given == [USER("1"), ASSISTANT("2")]

    run(make_backend, work)


def test_what_is_not_trusted_is_told_of_what_is_shown() -> None:
    async def work(backend: Counted) -> None:
        await put(backend, [says("root"), USER("1"), USER("2"), says("root")])
        _, view = await sent(backend, trusted_roles=["user"], window=Window(messages=1))
        assert view == View(messages=1, records=4, left_out=2, untrusted=1)

    run(memory, work)


def test_rules_that_are_not_trusted_are_not_pinned_either(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, [SYSTEM("forged"), *exchanges(200)])
        given, _ = await sent(backend, trusted_roles=["user", "assistant"], window=Window(messages=2))
        assert given == exchanges(200)[-2:]

    run(make_backend, work)


def test_a_run_loads_no_more_bytes_than_it_may(make_backend: MakeBackend) -> None:
    messages = [USER("x" * 1_000) for _ in range(100)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        with pytest.raises(TooLargeError, match=r"more than 50000 bytes .* window, or a larger") as caught:
            await sent(backend, max_load_bytes=50_000)
        assert "xxx" not in str(caught.value)
        given, _ = await sent(backend, max_load_bytes=50_000, window=Window(messages=10))
        assert given == messages[-10:]
        given, _ = await sent(backend, max_load_bytes=200_000)
        assert given == messages

    run(make_backend, work)


def test_a_history_beyond_the_bytes_is_not_read_to_its_end() -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(10_000))
        with pytest.raises(TooLargeError):
            await sent(backend, max_load_bytes=1_000)
        assert sum(backend.reads) <= 1_000

    run(memory, work)


async def fail(_: int) -> None:
    raise BackendUnavailableError("the store is down")


def test_a_history_that_cannot_be_loaded_is_an_error_unless_it_may_be_empty(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(2))
        backend.before_read = fail
        with pytest.raises(BackendUnavailableError):
            await sent(backend)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "chathistory"):
            given, view = await sent(backend, on_load_error="empty")
        assert (given, view) == ([], View(error="BackendUnavailableError"))
        [line] = [record.getMessage() for record in caplog.records]
        assert line == "load 'k' failed, and the run begins without history: BackendUnavailableError"

    run(memory, work)


def test_a_run_that_began_empty_is_stored_behind_what_is_there(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(2))
        history = StoredChatHistoryProvider(backend, on_load_error="empty")
        session = history.session("k")
        backend.before_read = fail
        async with history.turn(session, [ASK], turn_id="t") as turn:
            assert turn.messages == (ASK,)
            backend.before_read = None
            turn.add(ASSISTANT("well"))
        assert list(await history.messages(session)) == [*exchanges(2), ASK, ASSISTANT("well")]

    run(make_backend, work)


def test_a_record_that_cannot_be_read_is_an_error_unless_the_run_may_begin_empty(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(2))
        await backend.append("k", [Record(b"\xff canary", "chat-message")], turn_id="broken")
        with pytest.raises(CorruptRecordError):
            await sent(backend)
        given, view = await sent(backend, on_load_error="empty")
        assert (given, view.error) == ([], "CorruptRecordError")

    run(make_backend, work)


def test_a_users_mistake_is_an_error_in_any_case() -> None:
    async def work(backend: Counted) -> None:
        history = StoredChatHistoryProvider(backend, on_load_error="empty", new_key=lambda _: "")
        with pytest.raises(ValueError, match="key"):
            async with history.turn(history.session(), [ASK]):
                pass

    run(memory, work)


def test_a_conversation_that_is_replaced_while_it_is_read_is_read_anew(make_backend: MakeBackend) -> None:
    after = [SYSTEM("new rules"), *exchanges(300)]

    async def work(backend: Counted) -> None:
        await put(backend, [SYSTEM("old rules"), *(USER("old") for _ in range(300))])
        other = StoredChatHistoryProvider(backend.backend)

        async def replace(reads: int) -> None:
            if reads == 1:
                await other.set_messages(other.session("k"), after)

        backend.before_read = replace
        given, _ = await sent(backend, window=Window(messages=4))
        assert given == [after[0], *after[-4:]]

    run(make_backend, work)


def test_a_conversation_that_is_replaced_at_every_read_is_an_error() -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(300))
        other = StoredChatHistoryProvider(backend.backend)

        async def replace(_: int) -> None:
            await other.set_messages(other.session("k"), exchanges(300))

        backend.before_read = replace
        with pytest.raises(EpochChangedError):
            await sent(backend, window=Window(messages=4))
        given, view = await sent(backend, window=Window(messages=4), on_load_error="empty")
        assert (given, view.error) == ([], "EpochChangedError")

    run(memory, work)


def test_what_is_appended_while_it_is_read_is_not_shown(make_backend: MakeBackend) -> None:
    async def work(backend: Counted) -> None:
        await put(backend, exchanges(300))
        other = StoredChatHistoryProvider(backend.backend)

        async def append(_: int) -> None:
            async with other.turn(other.session("k"), [USER("meanwhile")]):
                pass

        given, _ = await sent(backend, window=Window(messages=4))
        backend.reads.clear()
        backend.before_read = append
        again, view = await sent(backend, window=Window(messages=40))
        assert again[-5:] == [*given, USER("meanwhile")]
        assert (len(again), view.records) == (40, 301)

    run(make_backend, work)


@pytest.mark.parametrize("turns_since", [0, 1, 30])
def test_a_turn_that_is_stored_already_is_recognised_within_the_window_and_outside(
    make_backend: MakeBackend, turns_since: int
) -> None:
    answer = [calls("c"), results("c"), ASSISTANT("so")]

    async def work(backend: Counted) -> None:
        await put(backend, exchanges(100))
        history = StoredChatHistoryProvider(backend, window=Window(messages=2))
        session = history.session("k")
        async with history.turn(session, [ASK], turn_id="t") as turn:
            turn.add(answer)
        for _ in range(turns_since):
            async with history.turn(session, [USER("next")]) as turn:
                turn.add(ASSISTANT("yes"))
        stored = await backend.get("k")
        async with history.turn(session, [ASK], turn_id="t") as again:
            assert again.replayed
            assert [message.without_source() for message in again.answer or ()] == answer
            if not turns_since:
                assert [message.text for message in again.messages[:2]] == ["49", "49"]
        assert await backend.get("k") == stored
        with pytest.raises(TurnConflictError):
            async with history.turn(session, [USER("something else")], turn_id="t"):
                pass

    run(make_backend, work)


def test_a_long_turn_that_the_window_cuts_is_recognised(make_backend: MakeBackend) -> None:
    answer = [each for number in range(40) for each in (calls(str(number)), results(str(number)))]

    async def work(backend: Counted) -> None:
        await put(backend, exchanges(100))
        history = StoredChatHistoryProvider(backend, window=Window(messages=2))
        session = history.session("k")
        async with history.turn(session, [ASK], turn_id="t") as turn:
            turn.add(answer)
        async with history.turn(session, [ASK], turn_id="t") as again:
            assert again.replayed
            assert len(again.answer or ()) == 80
            assert [message.text for message in again.messages[:3]] == ["49", "49", ASK.text]

    run(make_backend, work)


def test_what_was_left_out_is_in_the_log_as_numbers(caplog: pytest.LogCaptureFixture) -> None:
    messages = [SYSTEM("canary"), *exchanges(200), USER("canary"), calls("canary"), USER("canary")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        with caplog.at_level(logging.INFO, "chathistory"):
            _, view = await sent(backend, window=Window(messages=4), repair="drop", trusted_roles=["user", "assistant"])
        assert view == View(messages=4, records=204, left_out=199, unpaired=1)
        line = caplog.records[0].getMessage()
        assert line == "load 'k': 12 of 204 records; left_out=199, unpaired=1"
        assert "canary" not in caplog.text

    run(memory, work)


def test_no_session_no_view() -> None:
    async def work(backend: Counted) -> None:
        async with StoredChatHistoryProvider(backend).turn(None, [ASK]) as turn:
            assert turn.view is None

    run(memory, work)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"window": 20}, TypeError),
        ({"reducer": len}, TypeError),
        ({"repair": "fix"}, ValueError),
        ({"trusted_roles": "user"}, TypeError),
        ({"max_load_bytes": 0}, ValueError),
        ({"max_load_bytes": 1.5}, ValueError),
        ({"max_remembered_bytes": -1}, ValueError),
        ({"max_remembered_bytes": None}, ValueError),
        ({"on_load_error": "ignore"}, ValueError),
        ({"on_load_error": "empty", "exclusive": True}, ValueError),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"{next(iter(wrong))}|reduce|exclusive"):
        StoredChatHistoryProvider(MemoryBackend(), **wrong)


def test_a_blocking_history_has_the_same_views() -> None:
    with blocking.open_history("memory://", window=Window(messages=1), repair="answer") as history:
        session = history.session("k")
        history.set_messages(session, [USER("go"), calls("c")])
        with history.turn(session, [ASK]) as turn:
            assert [message.role for message in turn.messages] == ["assistant", "tool", "user"]
            assert turn.view == View(messages=2, records=2, left_out=1, unpaired=1)


def test_a_history_is_opened_with_all_of_it() -> None:
    async def work() -> None:
        async with open_history(
            "memory://",
            window=Window(turns=1),
            repair="drop",
            trusted_roles=["user", "assistant"],
            max_load_bytes=9_999,
        ) as history:
            session = history.session("k")
            await history.set_messages(session, [SYSTEM("forged"), *exchanges(20)])
            async with history.turn(session, [ASK]) as turn:
                assert [message.text for message in turn.messages] == ["9", "9", ASK.text]

    asyncio.run(work())
