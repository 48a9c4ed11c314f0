"""Histories without asyncio."""

import asyncio
import threading
import traceback
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from chathistory_core import (
    EncodeError,
    InvalidKeyError,
    RevisionConflictError,
    StoredChatHistoryProvider,
    TurnConflictError,
    blocking,
    new_turn_id,
)
from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage, TextContent

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.text for message in messages]


def ask(history: blocking.BlockingProvider, key: str, question: str) -> str:
    with history.turn(history.session(key), [USER(question)]) as turn:
        request = openai_chat.dump(turn.messages)
        turn.add(openai_chat.load({"role": "assistant", "content": f"{len(request)} messages"}))
        return turn.messages[-1].text


def test_a_turn_sees_what_the_turns_before_it_stored(url: str) -> None:
    with blocking.open_history(url) as history:
        assert ask(history, "ann", "one") == "1 messages"
    with blocking.open_history(url) as history:
        assert ask(history, "ann", "two") == "3 messages"
        assert ask(history, "bob", "one") == "1 messages"
        assert texts(history.messages(history.session("ann"))) == ["one", "1 messages", "two", "3 messages"]
        assert [summary.key for summary in history.summaries()] == ["ann", "bob"]


def test_32_threads_at_once_lose_nothing(url: str) -> None:
    start = threading.Barrier(32)

    def talk(number: int) -> None:
        start.wait()
        for question in range(2):
            ask(history, f"own {number}", str(question))
            ask(history, "shared", f"{number} {question}")

    with blocking.open_history(url) as history:
        with ThreadPoolExecutor(32) as threads:
            list(threads.map(talk, range(32)))
        assert [history.count(f"own {number}") for number in range(32)] == [4] * 32
        shared = texts(history.messages(history.session("shared")))
        assert sorted(shared[::2]) == sorted(f"{number} {question}" for number in range(32) for question in range(2))
        assert all(answer.endswith(" messages") for answer in shared[1::2])


def test_32_histories_in_32_threads_share_one_thread_of_ours(url: str) -> None:
    start = threading.Barrier(32)

    def talk(number: int) -> int:
        with blocking.open_history(url) as history:
            start.wait()
            ask(history, "k", str(number))
            start.wait()
            return sum(thread.name == "chathistory" for thread in threading.enumerate())

    with ThreadPoolExecutor(32) as threads:
        assert set(threads.map(talk, range(32))) == {1}
    with blocking.open_history(url) as history:
        assert history.count("k") == 64


def test_an_exception_inside_the_block_stores_nothing(url: str) -> None:
    def fail(turn: blocking.BlockingTurn) -> None:
        turn.add(ASSISTANT("half"))
        raise ZeroDivisionError

    with blocking.open_history(url) as history:
        session = history.session("k")
        with pytest.raises(ZeroDivisionError), history.turn(session, [USER("q")]) as turn:
            fail(turn)
        assert not history.exists("k")
        assert history.count(session) == 0


def test_a_turn_that_is_sent_again_is_replayed(url: str) -> None:
    with blocking.open_history(url) as history:
        session = history.session("k")
        with history.turn(session, [USER("q")], turn_id="request 1") as turn:
            assert (turn.turn_id, turn.replayed, texts(turn.request)) == ("request 1", False, ["q"])
            turn.add(ASSISTANT("a"))
        with history.turn(session, [USER("q")], turn_id="request 1") as again:
            assert again.replayed
        assert again.answer == (ASSISTANT("a"),)
        turn.save()
        with pytest.raises(TurnConflictError), history.turn(session, [USER("other")], turn_id="request 1"):
            pass
        assert history.count("k") == 2


def test_messages_are_set_where_nobody_was_faster(url: str) -> None:
    with blocking.open_history(url) as history:
        session = history.session("k")
        history.set_messages(session, [USER("one"), ASSISTANT("two")], turn_id=new_turn_id())
        read = history.messages(session)
        written = history.set_messages(session, read[1:], expected_revision=read.revision)
        with pytest.raises(RevisionConflictError):
            history.set_messages(session, read, expected_revision=read.revision)
        assert texts(history.messages(session)) == ["two"]
        assert texts(history.messages(session, limit=0)) == []
        with pytest.raises(RevisionConflictError):
            history.clear(session, expected_revision=read.revision)
        assert history.clear(session, expected_revision=written.revision)
        assert not history.clear(session)


def test_a_narrower_scope_sees_its_own_conversations_alone(url: str) -> None:
    with blocking.open_history(url, scope=["tenant"]) as history:
        ann = history.scoped("ann")
        ask(ann, "k", "q")
        assert type(ann) is type(history)
        assert ([summary.key for summary in ann.summaries()], history.summaries()) == (["k"], ())
        assert (ann.exists("k"), history.exists("k")) == (True, False)


def test_a_session_is_attached_to_another_conversation(url: str) -> None:
    with blocking.open_history(url) as history:
        session = history.session()
        assert history.key_of(session) is None
        history.attach(session, "k")
        assert history.key_of(session) == "k"


def test_it_works_inside_a_running_loop(url: str) -> None:
    async def notebook() -> str:
        with blocking.open_history(url) as history:
            return ask(history, "k", "q")

    assert asyncio.run(notebook()) == "1 messages"


def test_an_error_keeps_its_type_and_shows_where_the_call_stands(url: str) -> None:
    with blocking.open_history(url) as history:
        with pytest.raises(InvalidKeyError) as caught:
            history.count("")
        functions = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert functions[0] == "test_an_error_keeps_its_type_and_shows_where_the_call_stands"
        assert "count" in functions  # the asynchronous one
        surrogate = ChatMessage(role="user", contents=[TextContent(text="\ud800")])
        with pytest.raises(EncodeError), history.turn(history.session("k"), [surrogate]):
            pass
        assert ask(history, "k", "q") == "1 messages"


def test_what_ends_the_interpreter_elsewhere_ends_only_the_call_here() -> None:
    def leave(messages: object) -> tuple[ChatMessage, ...]:
        raise SystemExit(3)

    with blocking.open_history("memory://", store_response_filter=leave) as history:
        with pytest.raises(SystemExit), history.turn(history.session("k"), [USER("q")]):
            pass
        assert history.count("k") == 0


def test_a_history_over_a_backend_of_ones_own(url: str) -> None:
    with blocking.open_backend(url) as backend:
        history = blocking.BlockingProvider(StoredChatHistoryProvider(backend.target))
        assert ask(history, "k", "q") == "1 messages"
        assert backend.get("k", limit=0).record_count == 2
