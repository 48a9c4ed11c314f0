"""Attempts at one turn that run at the same time: no message is stored twice, and none is lost."""

# ruff: noqa: PT012 - what raises is the end of a block

import asyncio
import os
from collections import Counter
from random import Random
from typing import Any

import pytest

from chathistory_core import (
    BackendUnavailableError,
    InvokedContext,
    StoredChatHistoryProvider,
    TurnConflictError,
    is_incomplete,
)
from chathistory_core.messages import ChatMessage

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant

SCHEDULES = 3_000 if os.environ.get("LONG") else 60


async def attempt(
    history: StoredChatHistoryProvider, number: int, random: Random, *, turn_id: str = "T", question: str = "q"
) -> str:
    """One attempt at the turn; how it ended."""
    turn = history.turn(history.session("k"), [USER(question)], turn_id=turn_id)
    try:
        async with turn:
            if turn.replayed:
                return "replayed"
            for _ in range(random.randrange(12)):
                await asyncio.sleep(0)
            turn.add(ASSISTANT(f"{turn_id}{number}"))
            if random.random() < 0.5:
                raise LookupError
        return "stored"
    except LookupError:
        return "failed"
    except TurnConflictError:
        return "conflict"
    except BackendUnavailableError:
        await turn.save()
        return "stored"


@pytest.mark.parametrize("policy", ["request", "partial"])
def test_however_attempts_interleave_each_request_and_each_answer_is_there_once(
    before: Any, open_store: Any, policy: Any
) -> None:
    async def schedule(backend: Any, seed: int) -> None:
        random = Random(seed)
        providers = [StoredChatHistoryProvider(backend, on_failure=policy) for _ in range(2)]
        backend.steps = random.randrange(4)
        backend.lost_replies = random.randrange(2)
        ends = await asyncio.gather(
            *(attempt(random.choice(providers), number, random) for number in range(random.randrange(2, 5))),
            *(attempt(providers[0], number, random, turn_id="U", question="q2") for number in range(2)),
            *(
                attempt(providers[1], number, random, turn_id=f"V{number}", question=f"v{number}")
                for number in range(2)
            ),
        )
        backend.lost_replies = 0
        found = await providers[0].messages(providers[0].session("k"))
        told = Counter((message.text, is_incomplete(message)) for message in found)
        assert max(told.values()) == 1, (seed, ends, told)
        questions = [text for text, _ in told if text[0] in "qv"]
        assert sorted(questions) == ["q", "q2", "v0", "v1"], (seed, ends)
        answers = Counter(text[0] for text, broken in told if not broken and text[0] in "TU")
        assert all(count == 1 for count in answers.values()), (seed, ends, told)
        assert ("T" in answers) == any(end == "stored" for end in ends[:-4]), (seed, ends, told)

    async def run() -> None:
        for seed in range(SCHEDULES // 3):
            async with before(open_store()) as backend:
                await schedule(backend, seed)
                await backend.backend.clear("k")

    asyncio.run(run())


def test_an_attempt_that_succeeds_while_another_is_kept_stores_its_answer_alone(before: Any, open_store: Any) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request")
            session = history.session("k")

            async def another_fails(_: str) -> None:
                failed = InvokedContext.failed(None, session, [USER("q")], LookupError(), turn_id="T")
                await StoredChatHistoryProvider(backend.backend, on_failure="request").invoked(failed)

            async with history.turn(session, [USER("q")], turn_id="T") as turn:
                turn.add(ASSISTANT("a"))
                backend.before_append = another_fails
            assert [message.text for message in await history.messages(session)] == ["q", "a"]

    asyncio.run(run())


def test_an_attempt_that_fails_while_another_succeeds_keeps_nothing(before: Any, open_store: Any) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            session = history.session("k")

            async def another_succeeds(_: str) -> None:
                succeeded = InvokedContext.succeeded(None, session, [USER("q")], [ASSISTANT("a")], turn_id="T")
                await StoredChatHistoryProvider(backend.backend, on_failure="partial").invoked(succeeded)

            with pytest.raises(LookupError):
                async with history.turn(session, [USER("q")], turn_id="T") as turn:
                    turn.add(ASSISTANT("half"))
                    backend.before_append = another_succeeds
                    raise LookupError
            assert [message.text for message in await history.messages(session)] == ["q", "a"]

    asyncio.run(run())


def test_a_turn_of_no_name_costs_one_load_and_one_append_whatever_the_policy(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            for policy in ("discard", "request", "partial"):
                history = StoredChatHistoryProvider(backend, on_failure=policy)
                for _ in range(2):
                    backend.calls.clear()
                    async with history.turn(history.session("k"), [USER("q")]) as turn:
                        turn.add(ASSISTANT("a"))
                    assert backend.calls == ["get", "append"]

    asyncio.run(run())


def test_a_turn_of_a_name_is_asked_for_where_there_is_something_to_find(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request")
            for turn_id, calls in (
                ("new conversation", ["get", "append"]),
                ("new turn", ["get", "append", "append", "append"]),
            ):
                backend.calls.clear()
                async with history.turn(history.session("k"), [USER("q")], turn_id=turn_id) as turn:
                    turn.add(ASSISTANT("a"))
                assert backend.calls == calls

    asyncio.run(run())
