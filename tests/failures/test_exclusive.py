"""Runs of one session at the same time: whole turns one after another, or the second to finish is refused."""

import asyncio
from typing import Any

import pytest

from chathistory_core import (
    EpochChangedError,
    InvokedContext,
    InvokingContext,
    Record,
    RevisionConflictError,
    StoredChatHistoryProvider,
)
from chathistory_core.messages import ChatMessage

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


async def texts(history: StoredChatHistoryProvider) -> list[str]:
    return [message.text for message in await history.messages(history.session("k"))]


async def ask(history: StoredChatHistoryProvider, question: str, *, turn_id: str | None = None) -> None:
    async with history.turn(history.session("k"), [USER(question)], turn_id=turn_id) as turn:
        turn.add(ASSISTANT(question.replace("q", "a")))


@pytest.mark.parametrize("begun", [False, True])
def test_of_runs_that_began_together_the_first_to_finish_is_stored(open_store: Any, begun: bool) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            if begun:
                await ask(history, "q")
            all_of_them = asyncio.Barrier(8)

            async def one(number: int) -> None:
                async with history.turn(history.session("k"), [USER(f"q{number}")]) as turn:
                    await all_of_them.wait()
                    turn.add(ASSISTANT(f"a{number}"))

            ends = await asyncio.gather(*(one(number) for number in range(8)), return_exceptions=True)
            refused = [end for end in ends if isinstance(end, RevisionConflictError)]
            assert len(refused) == 7
            assert all(len(error.unsaved) == 1 for error in refused)
            winner = ends.index(None)
            assert (await texts(history))[-2:] == [f"q{winner}", f"a{winner}"]
            assert len(await texts(history)) == 2 * begun + 2
            await ask(history, "q9")
            assert (await texts(history))[-2:] == ["q9", "a9"]

    asyncio.run(run())


def test_without_it_whole_turns_follow_one_another(open_store: Any) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend)
            both = asyncio.Barrier(2)

            async def one(number: int) -> None:
                async with history.turn(history.session("k"), [USER(f"q{number}")]) as turn:
                    await both.wait()
                    turn.add(ASSISTANT(f"a{number}"))

            await asyncio.gather(one(0), one(1))
            assert await texts(history) in (["q0", "a0", "q1", "a1"], ["q1", "a1", "q0", "a0"])

    asyncio.run(run())


def test_a_note_that_is_written_meanwhile_is_no_conflict(open_store: Any) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            await ask(history, "q1")
            for number in (2, 3):
                async with history.turn(history.session("k"), [USER(f"q{number}")]) as turn:
                    for each in range(number):
                        await backend.append("k", [Record(b"{}", "chathistory-note")], turn_id=f"n{number}{each}")
                    turn.add(ASSISTANT(f"a{number}"))
            assert await texts(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]
            turn = history.turn(history.session("k"), [USER("q4")])
            await turn.__aenter__()
            await backend.append("k", [Record(b"{}", "chathistory-note")], turn_id="n4")
            await ask(StoredChatHistoryProvider(backend), "q")
            await backend.append("k", [Record(b"{}", "chathistory-note")], turn_id="n5")
            with pytest.raises(RevisionConflictError):
                await turn.__aexit__(None, None, None)

    asyncio.run(run())


@pytest.mark.parametrize("begun", [False, True])
def test_a_run_that_is_saved_again_after_a_lost_reply_is_no_conflict_with_itself(
    open_store: Any, before: Any, begun: bool
) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            if begun:
                await ask(history, "q1")
            turn = history.turn(history.session("k"), [USER("q2")])
            backend.lost_replies = 1
            with pytest.raises(Exception, match="lost"):
                async with turn:
                    turn.add(ASSISTANT("a2"))
            await ask(StoredChatHistoryProvider(backend), "q3")
            await turn.save()
            assert (await texts(history))[-4:] == ["q2", "a2", "q3", "a3"]

    asyncio.run(run())


def test_what_took_messages_away_meanwhile_is_a_conflict_and_a_cleared_conversation_does_not_come_back(
    open_store: Any,
) -> None:
    async def end(history: StoredChatHistoryProvider, meanwhile: Any, expected: type[Exception]) -> None:
        turn = history.turn(history.session("k"), [USER("q2")])
        await turn.__aenter__()
        await meanwhile()
        turn.add(ASSISTANT("a2"))
        with pytest.raises(expected):
            await turn.__aexit__(None, None, None)

    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            session = history.session("k")
            await ask(history, "q1")
            await end(history, lambda: history.set_messages(session, [ASSISTANT("other")]), RevisionConflictError)
            assert await texts(history) == ["other"]
            await end(history, lambda: history.clear(session), EpochChangedError)
            assert not await history.exists("k")

    asyncio.run(run())


def test_a_run_that_failed_is_kept_though_others_wrote_meanwhile(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True, on_failure="request")
            turn = history.turn(history.session("k"), [USER("q2")])
            await turn.__aenter__()
            await ask(history, "q1")
            await turn.__aexit__(LookupError, LookupError(), None)
            assert await texts(history) == ["q1", "a1", "q2"]

    asyncio.run(run())


def test_an_attempt_after_a_failed_one_is_exclusive_too(open_store: Any) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True, on_failure="partial")
            with pytest.raises(LookupError):
                async with history.turn(history.session("k"), [USER("q")], turn_id="T"):
                    raise LookupError
            await ask(history, "q", turn_id="T")
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_an_exclusive_run_says_what_it_is_an_answer_to(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            session = history.session("k")
            with pytest.raises(ValueError, match="`exclusive` run ends with its `invoking`"):
                await history.invoked(InvokedContext.succeeded(None, session, [USER("q")], []))
            never_loaded = InvokingContext(None, session, [USER("q")])
            with pytest.raises(RevisionConflictError):
                await history.invoked(InvokedContext.succeeded(None, session, [USER("q")], [], invoking=never_loaded))

    asyncio.run(run())


def test_a_quiet_exclusive_run_costs_what_any_other_does(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend, exclusive=True)
            for number in range(3):
                backend.calls.clear()
                await ask(history, f"q{number}")
                assert backend.calls == ["get", "append"]

    asyncio.run(run())
