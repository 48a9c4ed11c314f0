"""What is stored of a run that fails, whichever way it fails, and what becomes of it when it is tried again."""

# ruff: noqa: PT012 - what raises is the end of a block

import asyncio
import json
import logging
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    InvokedContext,
    InvokingContext,
    StoredChatHistoryProvider,
    Turn,
    TurnConflictError,
    is_incomplete,
)
from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage, FunctionCallContent, TextContent

ORACLE = Path(__file__).resolve().parents[2] / "../shared/tools/dotnet-oracle/dotnet-oracle"

USER, ASSISTANT, TOOL = ChatMessage.user, ChatMessage.assistant, ChatMessage.tool

OpenStore: TypeAlias = Callable[[], ChatHistoryBackend]
Fail: TypeAlias = Callable[[StoredChatHistoryProvider, str | None], Awaitable[None]]


async def pieces(*texts: str, then: BaseException | None = None) -> AsyncIterator[str]:
    for text in texts:
        yield text
    if then is not None:
        raise then


def joined(texts: Sequence[str]) -> ChatMessage:
    return ASSISTANT("".join(texts))


def turn_of(history: StoredChatHistoryProvider, turn_id: str | None, question: str = "q") -> Turn:
    return history.turn(history.session("k"), [USER(question)], turn_id=turn_id)


async def raised(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    with pytest.raises(LookupError, match="the model"):
        async with turn_of(history, turn_id) as turn:
            turn.add(ASSISTANT("Once upon"))
            raise LookupError("the model is gone")


async def cancelled(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    waits = asyncio.Event()

    async def job() -> None:
        async with turn_of(history, turn_id) as turn:
            turn.add(ASSISTANT("Once upon"))
            waits.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(job())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def broken_off(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    async with turn_of(history, turn_id) as turn:
        async for piece in turn.stream(pieces("Once ", "upon", " a time"), joined):
            if piece == "upon":
                break


async def stream_raised(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    with pytest.raises(ConnectionError, match="gone"):
        async with turn_of(history, turn_id) as turn:
            async for _ in turn.stream(pieces("Once ", "upon", then=ConnectionError("gone")), joined):
                pass


async def stream_cancelled(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    waits = asyncio.Event()

    async def endless() -> AsyncIterator[str]:
        yield "Once "
        yield "upon"
        waits.set()
        await asyncio.Event().wait()

    async def job() -> None:
        async with turn_of(history, turn_id) as turn:
            async for _ in turn.stream(endless(), joined):
                pass

    task = asyncio.create_task(job())
    await waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def in_a_framework(history: StoredChatHistoryProvider, turn_id: str | None) -> None:
    began = InvokingContext(None, history.session("k"), [USER("q")], turn_id=turn_id)
    given = await history.invoking(began)
    failure = LookupError("the model is gone")
    partial = [ASSISTANT("Once upon")]
    await history.invoked(
        InvokedContext.failed(None, began.session, given, failure, partial_messages=partial, invoking=began)
    )


WAYS = [raised, cancelled, broken_off, stream_raised, stream_cancelled, in_a_framework]

STORED = {
    "discard": [],
    "request": [("user", "q", False)],
    "partial": [("user", "q", False), ("assistant", "Once upon", True)],
}


async def stored(history: StoredChatHistoryProvider) -> list[tuple[str, str, bool]]:
    found = await history.messages(history.session("k"))
    return [(message.role, message.text, is_incomplete(message)) for message in found]


async def texts(history: StoredChatHistoryProvider) -> list[str]:
    return [text for _, text, _ in await stored(history)]


async def ask(
    history: StoredChatHistoryProvider, question: str, answer: str, turn_id: str | None = None
) -> tuple[Turn, list[str]]:
    """A run that succeeds, and what its model was sent."""
    async with turn_of(history, turn_id, question) as turn:
        sent = [message.text for message in turn.messages]
        if not turn.replayed:
            turn.add(ASSISTANT(answer))
    return turn, sent


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", STORED)
def test_what_is_stored_depends_on_the_policy_and_not_on_the_way_of_failing(
    open_store: OpenStore, policy: Any, way: Fail
) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure=policy)
            await way(history, None)
            assert await stored(history) == STORED[policy]
            await ask(history, "again", "ok")
            assert [*STORED[policy], ("user", "again", False), ("assistant", "ok", False)] == await stored(history)

    asyncio.run(run())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("policy", STORED)
def test_a_turn_tried_again_stores_its_answer_alone_and_no_message_twice(
    open_store: OpenStore, policy: Any, way: Fail
) -> None:
    async def fail() -> None:
        async with open_store() as backend:
            await way(StoredChatHistoryProvider(backend, on_failure=policy), "T")

    async def try_again() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure=policy)
            turn, sent = await ask(history, "q", "a", "T")
            assert not turn.replayed
            assert sent == ["q"]
            kept = STORED[policy] or [("user", "q", False)]
            assert await stored(history) == [*kept, ("assistant", "a", False)]

    async def once_more() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure=policy)
            before = await stored(history)
            turn, sent = await ask(history, "q", "never", "T")
            assert turn.replayed
            assert sent == ["q", "a"]
            assert [message.text for message in turn.answer or ()] == ["a"]
            assert await stored(history) == before
            _, sent = await ask(history, "next", "ok")
            assert sent == ["q", "a", "next"]

    for step in (fail, try_again, once_more):
        asyncio.run(step())


def test_each_attempt_that_fails_adds_what_had_come_of_its_answer(open_store: OpenStore) -> None:
    async def fail(history: StoredChatHistoryProvider, *partial: str) -> list[str]:
        with pytest.raises(LookupError):
            async with turn_of(history, "T") as turn:
                sent = [message.text for message in turn.messages]
                turn.add(ASSISTANT(text) for text in partial)
                raise LookupError
        return sent

    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            await ask(history, "q0", "a0")
            for attempt in ((), ("first",), (), ("second", "third"), ("second", "third")):
                assert await fail(history, *attempt) == ["q0", "a0", "q"]
            assert await texts(history) == ["q0", "a0", "q", "first", "second", "third", "second", "third"]
            _, sent = await ask(history, "q", "a", "T")
            assert sent == ["q0", "a0", "q"]
            assert (await texts(history))[-1] == "a"
            _, sent = await ask(history, "q2", "a2")
            assert sent == ["q0", "a0", "q", "a", "q2"]

    asyncio.run(run())


def test_turns_between_the_attempts_keep_their_places(open_store: OpenStore) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request")
            await raised(history, "T")
            _, sent = await ask(history, "q1", "a1")
            assert sent == ["q", "q1"]
            _, sent = await ask(history, "q", "a", "T")
            assert sent == ["q1", "a1", "q"]
            assert await texts(history) == ["q", "q1", "a1", "a"]
            turn, sent = await ask(history, "q", "never", "T")
            assert turn.replayed
            assert sent == ["q1", "a1", "q", "a"]

    asyncio.run(run())


def test_another_request_under_the_id_of_a_failed_attempt_is_a_conflict_on_entry(open_store: OpenStore) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            await raised(history, "T")
            with pytest.raises(TurnConflictError):
                async with turn_of(history, "T", "another"):
                    pytest.fail("the model must not run")
            await ask(history, "q", "a", "T")
            with pytest.raises(TurnConflictError):
                async with turn_of(history, "T", "another"):
                    pytest.fail("the model must not run")
            assert await texts(history) == ["q", "Once upon", "a"]

    asyncio.run(run())


def test_what_was_kept_is_known_though_the_policy_is_another_one_now(open_store: OpenStore) -> None:
    async def run() -> None:
        async with open_store() as backend:
            await raised(StoredChatHistoryProvider(backend, on_failure="partial"), "T")
            history = StoredChatHistoryProvider(backend)
            _, sent = await ask(history, "q", "a", "T")
            assert sent == ["q"]
            assert await texts(history) == ["q", "Once upon", "a"]
            assert (await ask(history, "q", "never", "T"))[0].replayed

    asyncio.run(run())


def test_calls_of_an_incomplete_answer_that_nobody_answered_are_stored_and_not_shown(open_store: OpenStore) -> None:
    calls = [FunctionCallContent(call_id=name, name="look", arguments={}) for name in ("c1", "c2", "c3")]
    answer = [
        ChatMessage(role="assistant", contents=[TextContent(text="I look."), *calls[:2]]),
        TOOL("c1", "12:00"),
        ChatMessage(role="assistant", contents=[calls[2]]),
    ]

    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            with pytest.raises(LookupError):
                async with turn_of(history, None) as turn:
                    turn.add(answer)
                    raise LookupError
            found = await history.messages(history.session("k"))
            assert [message.contents for message in found[1:]] == [message.contents for message in answer]
            async with turn_of(history, None, "next") as turn:
                seen = [message.contents for message in turn.messages]
            assert seen[1:3] == [answer[0].contents[:2], answer[1].contents]
            assert [message.text for message in turn.messages] == ["q", "I look.", "", "next"]

    asyncio.run(run())


def test_an_answer_of_which_nothing_came_leaves_the_request_alone(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            with pytest.raises(LookupError):
                async with turn_of(history, None) as turn:
                    turn.add([ChatMessage(role="assistant"), ASSISTANT("")])
                    raise LookupError
            assert await stored(history) == STORED["request"]

    asyncio.run(run())


def test_the_mark_is_a_property_that_every_reader_of_the_records_sees(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            told = ASSISTANT("Once upon").model_copy(update={"additional_properties": {"mine": 1}})
            with pytest.raises(LookupError):
                async with turn_of(history, None) as turn:
                    turn.add(told)
                    raise LookupError
            request, answer = (await backend.get("k")).records
            assert "additionalProperties" not in json.loads(request.payload)
            assert answer.format == "chat-message"
            assert json.loads(answer.payload)["additionalProperties"] == {"mine": 1, "_incomplete": True}

    asyncio.run(run())


@pytest.mark.skipif(not ORACLE.exists(), reason="the real .NET is not here")
def test_dotnet_reads_an_incomplete_answer_and_writes_its_mark_again(faulty: Any) -> None:
    async def run() -> bytes:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            half = openai_chat.load_chunks([{"choices": [{"index": 0, "delta": {"content": "Once", "refusal": None}}]}])
            with pytest.raises(LookupError):
                async with turn_of(history, None) as turn:
                    turn.add(half)
                    raise LookupError
            return bytes((await backend.get("k")).records[1].payload)

    payload = asyncio.run(run())
    done = subprocess.run([ORACLE, "check"], input=payload + b"\n", capture_output=True, check=True, timeout=60)
    answer = json.loads(done.stdout)
    assert answer["ok"], answer
    assert json.loads(answer["json"]) == json.loads(payload)
    assert json.loads(payload)["additionalProperties"]["_incomplete"] is True


def test_filters_choose_what_of_a_failed_run_is_kept(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(
                backend,
                on_failure="partial",
                store_request_filter=lambda messages: [message for message in messages if message.text != "secret"],
                store_response_filter=lambda messages: list(messages)[1:],
            )
            with pytest.raises(LookupError):
                async with history.turn(history.session("k"), [USER("secret"), USER("q")]) as turn:
                    turn.add([ASSISTANT("thought"), ASSISTANT("said")])
                    raise LookupError
            assert await texts(history) == ["q", "said"]

    asyncio.run(run())


def test_a_failure_that_is_told_again_is_kept_once(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            failed = InvokedContext.failed(
                None,
                history.session("k"),
                [USER("q")],
                LookupError(),
                partial_messages=[ASSISTANT("half")],
                turn_id="T",
            )
            backend.lost_replies = 1
            for _ in range(3):
                await history.invoked(failed)
            assert await texts(history) == ["q", "half"]
            succeeded = InvokedContext.succeeded(None, history.session("k"), [USER("q")], [ASSISTANT("a")], turn_id="T")
            for _ in range(2):
                await history.invoked(succeeded)
            await history.invoked(failed)
            assert await texts(history) == ["q", "half", "a"]

    asyncio.run(run())


def test_a_framework_that_tries_again_within_a_run_stores_the_request_once(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request")
            began = InvokingContext(None, history.session("k"), [USER("q")])
            given = await history.invoking(began)
            await history.invoked(
                InvokedContext.failed(None, began.session, given, LookupError(), invoking=began, turn_id="made")
            )
            await history.invoked(
                InvokedContext.succeeded(None, began.session, given, [ASSISTANT("a")], invoking=began, turn_id="made")
            )
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_a_request_that_was_summarised_since_is_not_stored_a_second_time(open_store: OpenStore) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request")
            await raised(history, "T")
            await history.set_messages(history.session("k"), [ASSISTANT("summary of q")])
            await ask(history, "q", "a", "T")
            assert await texts(history) == ["summary of q", "a"]
            turn, _ = await ask(history, "q", "never", "T")
            assert turn.replayed
            assert [message.text for message in turn.answer or ()] == ["a"]

    asyncio.run(run())


def test_of_a_conversation_that_was_cleared_meanwhile_nothing_is_kept(
    open_store: OpenStore, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            await ask(history, "private", "very")
            for turn_id in (None, "T"):
                await ask(history, "q0", "a0")
                with pytest.raises(LookupError):
                    async with turn_of(history, turn_id) as turn:
                        turn.add(ASSISTANT("canary"))
                        await history.clear(history.session("k"))
                        raise LookupError
                assert not await history.exists("k")

    with caplog.at_level(logging.INFO, "chathistory"):
        asyncio.run(run())
    assert caplog.text.count("nothing is kept of turn") == 2
    assert "canary" not in caplog.text


def test_a_store_that_is_down_does_not_hide_why_the_run_failed(faulty: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            backend.down.add("append")
            for way in WAYS:
                await way(history, None)
            backend.down.clear()
            assert await stored(history) == []

    with caplog.at_level(logging.INFO, "chathistory"):
        asyncio.run(run())
    assert caplog.text.count("nothing is kept of turn") == len(WAYS)
    assert "Once" not in caplog.text


@pytest.mark.parametrize("turn_id", [None, "T"])
@pytest.mark.parametrize("times", [1, 3])
def test_cancelled_at_any_await_of_keeping_it_is_kept_whole(faulty: Any, times: int, turn_id: str | None) -> None:
    async def cancelled_after(steps: int, history: StoredChatHistoryProvider) -> bool:
        session = history.session(f"k{steps}")
        leaving = asyncio.Event()

        async def job() -> None:
            async with history.turn(session, [USER("q")], turn_id=turn_id) as turn:
                turn.add(ASSISTANT("half"))
                leaving.set()
                raise LookupError("the model is gone")

        task = asyncio.create_task(job())
        await leaving.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        hit = not task.done()
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        with pytest.raises((LookupError, asyncio.CancelledError)):
            await task
        assert [message.text for message in await history.messages(session)] == ["q", "half"], steps
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return hit

    async def run() -> None:
        faulty.steps = 3
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial", save_timeout=60)
            hits = [await cancelled_after(steps, history) for steps in range(20)]
            assert 5 < hits.count(True) < 20

    asyncio.run(run())


def test_a_replay_whose_block_fails_asks_nothing_more_of_the_store(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            await ask(history, "q", "a", "T")
            for added in ((), (ASSISTANT("another"),)):
                backend.calls.clear()
                with pytest.raises(LookupError):
                    async with turn_of(history, "T") as turn:
                        turn.add(added)
                        raise LookupError
                assert backend.calls == ["get"]
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_an_unknown_policy_is_refused(faulty: Any) -> None:
    with pytest.raises(ValueError, match="`on_failure` is one of 'discard', 'request', 'partial', not 'keep'"):
        StoredChatHistoryProvider(faulty, on_failure="keep")  # type: ignore[arg-type] # as a caller without types
