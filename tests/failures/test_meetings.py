"""Where policies meet: a failed attempt and a summary, a window or the outbox; two runs under one id."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from chathistory_core import (
    BackendError,
    ChatHistoryError,
    EpochChangedError,
    InvokedContext,
    InvokingContext,
    StoredChatHistoryProvider,
    TooLargeError,
    TurnConflictError,
    Window,
)
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import SummarizingReducer
from chathistory_memory import MemoryBackend

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


@asynccontextmanager
async def provider(**settings: Any) -> AsyncIterator[StoredChatHistoryProvider]:
    async with MemoryBackend() as backend:
        yield StoredChatHistoryProvider(backend, **settings)


async def say(history: StoredChatHistoryProvider, question: str, answer: str, turn_id: str | None = None) -> None:
    async with history.turn(history.session("k"), [USER(question)], turn_id=turn_id) as turn:
        turn.add(ASSISTANT(answer))


async def fail(history: StoredChatHistoryProvider, question: str, turn_id: str, part: str = "") -> None:
    with suppress(ConnectionError):
        async with history.turn(history.session("k"), [USER(question)], turn_id=turn_id) as turn:
            if part:
                turn.add(ASSISTANT(part))
            raise ConnectionError


async def texts(history: StoredChatHistoryProvider) -> Sequence[str]:
    return [message.text for message in await history.messages(history.session("k"))]


def test_a_summary_that_a_retry_meets_does_not_swallow_the_request_that_was_kept() -> None:
    async def model(messages: Sequence[ChatMessage]) -> str:
        return "|".join(message.text for message in messages[:-1])

    async def scenario() -> None:
        async with MemoryBackend() as backend:
            plain = StoredChatHistoryProvider(backend, on_failure="request")
            reducer = SummarizingReducer(model, keep=Window(messages=2), above=Window(messages=8))
            summing = StoredChatHistoryProvider(backend, on_failure="request", reducer=reducer)
            await say(plain, "p", "b")
            await fail(plain, "asked in vain", "t")
            for number in range(5):
                await say(plain, f"q{number}", f"a{number}")
            await say(summing, "asked in vain", "answer", "t")
            async with summing.turn(summing.session("k"), [USER("next")]) as turn:
                assert "asked in vain" in "".join(message.text for message in turn.messages)

    asyncio.run(scenario())


def test_another_request_under_the_id_of_one_that_was_kept_before_the_window_is_a_conflict() -> None:
    async def scenario() -> None:
        async with provider(on_failure="request", window=Window(messages=2)) as history:
            await fail(history, "A", "t")
            for number in range(40):
                await say(history, f"q{number}", f"a{number}")
            with pytest.raises(TurnConflictError):
                await say(history, "B", "the answer to B", "t")
            assert "the answer to B" not in await texts(history)

    asyncio.run(scenario())


def test_another_request_under_the_id_of_one_that_is_kept_meanwhile_is_a_conflict() -> None:
    async def scenario() -> None:
        async with provider(on_failure="request") as history:

            async def attempt() -> None:
                async with history.turn(history.session("k"), [USER("B")], turn_id="t") as turn:
                    await fail(history, "A", "t")
                    turn.add(ASSISTANT("the answer to B"))

            with pytest.raises(TurnConflictError) as caught:
                await attempt()
            assert caught.value.unsaved
            assert await texts(history) == ["A"]

    asyncio.run(scenario())


def test_another_request_of_a_framework_under_the_id_of_one_that_was_kept_is_a_conflict() -> None:
    async def scenario() -> None:
        async with provider(on_failure="request") as history:
            session = history.session("k")
            began = InvokingContext(None, session, [USER("A")], turn_id="t")
            given = await history.invoking(began)
            await history.invoked(InvokedContext.failed(None, session, given, KeyError(), invoking=began))
            began = InvokingContext(None, session, [USER("B")], turn_id="t")
            given = await history.invoking(began)
            with pytest.raises(TurnConflictError):
                await history.invoked(
                    InvokedContext.succeeded(None, session, given, [ASSISTANT("the answer to B")], invoking=began)
                )
            assert await texts(history) == ["A"]

    asyncio.run(scenario())


def test_a_turn_before_the_window_is_answered_again_from_its_own_records_alone() -> None:
    async def scenario() -> None:
        settings: dict[str, Any] = {"window": Window(messages=2), "max_load_bytes": 20_000}
        async with provider(**settings) as history:
            await say(history, "first", "answer", "t")
            for _ in range(200):
                await say(history, "x" * 300, "y")
            async with history.turn(history.session("k"), [USER("first")], turn_id="t") as turn:
                assert turn.replayed
                assert [message.text for message in turn.answer or ()] == ["answer"]

    asyncio.run(scenario())


def test_a_turn_that_is_larger_than_a_run_may_load_is_not_answered_again() -> None:
    async def scenario() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend)
            await say(history, "first", "x" * 30_000, "t")
            for _ in range(40):
                await say(history, "x", "y")
            bounded = StoredChatHistoryProvider(backend, window=Window(messages=2), max_load_bytes=20_000)
            with pytest.raises(TooLargeError):
                await say(bounded, "first", "x" * 30_000, "t")

    asyncio.run(scenario())


def test_an_exclusive_run_brings_no_empty_conversation_back_that_was_cleared() -> None:
    async def scenario() -> None:
        async with provider(exclusive=True) as history:
            session = history.session("k")
            await history.set_messages(session, [])

            async def attempt() -> None:
                async with history.turn(session, [USER("q")]) as turn:
                    await history.clear(history.session("k"))
                    turn.add(ASSISTANT("a"))

            with pytest.raises(EpochChangedError):
                await attempt()
            assert not await history.exists("k")

    asyncio.run(scenario())


def test_one_conversation_that_cannot_be_written_keeps_no_other_in_the_outbox(faulty_memory: Callable[[], Any]) -> None:
    async def scenario() -> None:
        async with faulty_memory() as faulty:
            history = StoredChatHistoryProvider(faulty, on_save_error="outbox")
            faulty.down_keys = {"a", "b"}
            for key in "a", "b":
                async with history.turn(history.session(key), [USER("q")]) as turn:
                    turn.add(ASSISTANT("a"))
            faulty.down_keys = {"a"}
            with pytest.raises(ChatHistoryError):
                await history.save_unsaved()
            assert len(history.unsaved) == 1
            assert await history.count("b") == 2

    asyncio.run(scenario())


def test_a_second_answer_to_a_turn_that_waits_is_refused_at_once(faulty_memory: Callable[[], Any]) -> None:
    async def scenario() -> None:
        async with faulty_memory() as faulty:
            history = StoredChatHistoryProvider(faulty, on_save_error="outbox")
            session = history.session("k")
            began = [InvokingContext(None, session, [USER("q")], turn_id="t") for _ in range(2)]
            given = [await history.invoking(one) for one in began]
            faulty.down_keys = {"k"}
            ends = [
                InvokedContext.succeeded(None, session, request, [ASSISTANT(answer)], invoking=one)
                for one, request, answer in zip(began, given, ("one", "another"), strict=True)
            ]
            await history.invoked(ends[0])
            await history.invoked(ends[0])
            with pytest.raises(BackendError) as caught:
                await history.invoked(ends[1])
            assert caught.value.unsaved
            assert len(history.unsaved) == 1

    asyncio.run(scenario())


def test_while_the_answer_waits_nobody_is_shown_the_incomplete_one(faulty_memory: Callable[[], Any]) -> None:
    async def scenario() -> None:
        async with faulty_memory() as faulty:
            settings: dict[str, Any] = {"on_save_error": "outbox", "on_failure": "partial"}
            history = StoredChatHistoryProvider(faulty, **settings)
            await fail(history, "q", "t", "part")
            session = history.session("k")
            began = InvokingContext(None, session, [USER("q")], turn_id="t")
            given = await history.invoking(began)
            faulty.down_keys = {"k"}
            await history.invoked(InvokedContext.succeeded(None, session, given, [ASSISTANT("whole")], invoking=began))
            shown = await history.invoking(InvokingContext(None, session, [USER("n")]))
            assert [message.text for message in shown] == ["q", "whole", "n"]

    asyncio.run(scenario())
