"""What trimming and interrupted runs broke elsewhere, by public reports: not here, on any backend."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from chathistory_core import StoredChatHistoryProvider, Window
from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage, FunctionResultContent
from chathistory_core.views.repair import Repair, unpaired

from .counted import Counted
from .messages import ASSISTANT, SYSTEM, USER, call, calls, request, response, result, results, says
from .openai_rules import refused

MakeBackend = Callable[[], Counted]
Work = Callable[[Counted], Awaitable[None]]


def run(make_backend: MakeBackend, *works: Work) -> None:
    """Do one work after another, with a restart between."""

    async def opened(work: Work) -> None:
        async with make_backend() as backend:
            await work(backend)

    for work in works:
        asyncio.run(opened(work))


async def put(backend: Counted, messages: Sequence[ChatMessage]) -> None:
    history = StoredChatHistoryProvider(backend)
    await history.set_messages(history.session("s"), messages)


async def stored(backend: Counted) -> list[ChatMessage]:
    history = StoredChatHistoryProvider(backend)
    return list(await history.messages(history.session("s")))


async def shown(backend: Counted, window: Window | None = None, repair: Repair | None = None) -> list[ChatMessage]:
    """What a model is given of the history."""
    history = StoredChatHistoryProvider(backend, window=window, repair=repair)
    async with history.turn(history.session("s"), []) as turn:
        return [message.without_source() for message in turn.messages]


async def ask(history: StoredChatHistoryProvider, text: str, answer: str) -> list[ChatMessage]:
    """A turn; what the model was given."""
    async with history.turn(history.session("s"), [USER(text)]) as turn:
        given = list(turn.messages)
        turn.add(ASSISTANT(answer))
    return given


def test_a_cut_amid_a_round_leaves_no_result_without_its_call(make_backend: MakeBackend) -> None:
    messages = [SYSTEM("sys"), USER("weather?"), calls("call_1"), results("call_1"), USER("thanks"), ASSISTANT("bye")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given = await shown(backend, Window(messages=3))
        assert given == [messages[0], *messages[4:]]
        assert refused(openai_chat.dump(given)) == []
        assert await stored(backend) == messages

    run(make_backend, work)


def test_a_cut_between_the_results_of_parallel_calls_takes_the_round_or_leaves_it(make_backend: MakeBackend) -> None:
    messages = [USER("go"), calls("a", "b", "c"), results("b"), results("a"), results("c"), ASSISTANT("done")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        for limit in range(1, 7):
            given = await shown(backend, Window(messages=limit))
            assert given == messages[-{5: 5, 6: 6}.get(limit, 1) :]
            assert refused(openai_chat.dump(given)) == []

    run(make_backend, work)


def test_rules_survive_every_limit_and_a_limit_of_one_still_limits(make_backend: MakeBackend) -> None:
    messages = [SYSTEM("rules"), USER("1"), ASSISTANT("2"), USER("3"), ASSISTANT("4")]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        assert await shown(backend, Window(messages=2)) == [messages[0], *messages[3:]]
        assert await shown(backend, Window(messages=1)) == [messages[0], messages[4]]

    run(make_backend, work)


@pytest.mark.parametrize("repair", ["drop", "answer"])
def test_a_call_that_a_crash_left_without_result_breaks_no_later_run(make_backend: MakeBackend, repair: Repair) -> None:
    messages = [USER("go"), calls("call_1")]

    async def crash(backend: Counted) -> None:
        await put(backend, messages)

    async def go_on(backend: Counted) -> None:
        assert await stored(backend) == messages
        history = StoredChatHistoryProvider(backend, repair=repair)
        given = await ask(history, "still there?", "yes")
        assert refused(openai_chat.dump(given)) == []
        assert await stored(backend) == [*messages, USER("still there?"), ASSISTANT("yes")]
        later = await shown(backend, repair=repair)
        assert later == [*(message.without_source() for message in given), ASSISTANT("yes")]

    run(make_backend, crash, go_on)


def test_of_an_id_that_repeats_the_newest_pair_is_kept_whole(make_backend: MakeBackend) -> None:
    messages = [
        *(USER("1"), calls("call_0"), says("tool", result("call_0", "one")), ASSISTANT("x")),
        *(USER("2"), calls("call_0"), says("tool", result("call_0", "two")), ASSISTANT("y")),
    ]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        given = await shown(backend, Window(messages=4))
        values = [one.result for each in given for one in each.contents if isinstance(one, FunctionResultContent)]
        assert values == ["two"]
        assert not unpaired(given).calls
        assert await stored(backend) == messages

    run(make_backend, work)


@pytest.mark.parametrize("repair", [None, "drop", "answer", "raise"])
def test_a_pending_approval_survives_a_restart_a_failed_resume_and_every_repair(
    make_backend: MakeBackend, repair: Repair | None
) -> None:
    asked = says("assistant", request("ap1", "c9"))
    refusal = says("user", response("ap1", "c9", approved=False))

    async def store(backend: Counted) -> None:
        await put(backend, [USER("delete a"), asked])

    async def fail(history: StoredChatHistoryProvider) -> None:
        async with history.turn(history.session("s"), [refusal]) as turn:
            assert [message.without_source() for message in turn.messages] == [asked, refusal]
            raise ZeroDivisionError

    async def resume(backend: Counted) -> None:
        history = StoredChatHistoryProvider(backend, repair=repair, window=Window(messages=1))
        with pytest.raises(ZeroDivisionError):
            await fail(history)
        assert await stored(backend) == [USER("delete a"), asked]
        given = await ask(history, "never mind", "ok")
        assert given[0].without_source() == asked
        assert (await stored(backend))[-2:] == [USER("never mind"), ASSISTANT("ok")]

    run(make_backend, store, resume)


def test_an_approval_that_is_given_after_a_restart_is_one_round(make_backend: MakeBackend) -> None:
    asked = says("assistant", request("ap1", "c9"))
    done = [says("assistant", call("c9", executed=True)), results("c9"), ASSISTANT("deleted")]

    async def store(backend: Counted) -> None:
        await put(backend, [USER("delete a"), asked])

    async def resume(backend: Counted) -> None:
        history = StoredChatHistoryProvider(backend, repair="raise", window=Window(messages=5))
        async with history.turn(history.session("s"), [says("user", response("ap1", "c9"))]) as turn:
            turn.add(done)
        given = await shown(backend, Window(messages=5), "raise")
        assert given == [asked, says("user", response("ap1", "c9")), *done]
        assert await shown(backend, Window(messages=4), "raise") == done[-1:]
        assert refused(openai_chat.dump(given)) == []

    run(make_backend, store, resume)


@pytest.mark.parametrize("limit", [3, 9, 99])
def test_a_window_shows_the_newest_and_of_few_all(make_backend: MakeBackend, limit: int) -> None:
    messages = [USER(str(number)) for number in range(10)]

    async def work(backend: Counted) -> None:
        await put(backend, messages)
        assert await shown(backend, Window(messages=limit)) == messages[-limit:]

    run(make_backend, work)
