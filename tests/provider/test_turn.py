import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, cast

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    EncodeError,
    EpochChangedError,
    InvalidKeyError,
    Record,
    StoredRecord,
    TurnConflictError,
)
from chathistory_core.codec import MessageCodec
from chathistory_core.messages import CHAT_HISTORY, EXTERNAL, ChatMessage
from chathistory_core.provider import InvokedContext, InvokingContext
from chathistory_core.session import AgentSession
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.turn import Turn
from chathistory_memory import MemoryBackend

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant

Work = Callable[[StoredChatHistoryProvider], Coroutine[Any, Any, None]]


def on(backend: ChatHistoryBackend, work: Work) -> None:
    async def run() -> None:
        async with backend as opened:
            await work(StoredChatHistoryProvider(opened))

    asyncio.run(run())


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.text for message in messages]


async def ask(
    history: StoredChatHistoryProvider,
    session: AgentSession,
    question: str,
    *answer: str,
    turn_id: str | None = None,
) -> Turn:
    """A web request: it runs the model only where the turn is not stored yet."""
    async with history.turn(session, [USER(question)], turn_id=turn_id) as turn:
        if not turn.replayed:
            turn.add(ASSISTANT(text) for text in answer)
    return turn


def test_messages_are_history_request_and_what_was_added(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1")
        async with history.turn(session, [USER("q2")], agent="any") as turn:
            assert texts(turn.messages) == ["q1", "a1", "q2"]
            assert [message.source.type for message in turn.messages] == [CHAT_HISTORY, CHAT_HISTORY, EXTERNAL]
            assert texts(turn.request) == ["q2"]
            assert len(turn.answer or ()) == 0
            turn.add(ASSISTANT("call"))
            turn.add([ChatMessage.tool("c", "12:00"), ASSISTANT("a2")])
            assert texts(turn.messages) == ["q1", "a1", "q2", "call", "", "a2"]
            assert len(turn.answer or ()) == 3
        assert not turn.replayed
        assert texts(await history.messages(session)) == ["q1", "a1", "q2", "call", "", "a2"]
        stored = (await backend.get("k")).records
        assert [record.turn_id == turn.turn_id for record in stored] == [False] * 2 + [True] * 4
        assert stored[0].turn_id == stored[1].turn_id

    on(backend, work)


def test_without_an_answer_the_request_alone_is_stored(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "only")
        async with history.turn(session, []):
            pass
        assert texts(await history.messages(session)) == ["only"]

    on(backend, work)


def test_an_exception_inside_stores_nothing_and_is_what_is_raised(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        turn = history.turn(session, [USER("q")])

        async def fail() -> None:
            async with turn:
                turn.add(ASSISTANT("a"))
                raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            await fail()
        assert await history.count(session) == 0
        with pytest.raises(RuntimeError, match="saved when its block is left"):
            await turn.save()

    on(backend, work)


def test_a_failure_is_noted_and_what_goes_wrong_there_does_not_hide_it(caplog: pytest.LogCaptureFixture) -> None:
    class Noting(StoredChatHistoryProvider):
        noted: InvokedContext | None = None

        async def invoked_core(self, context: InvokedContext) -> None:
            self.noted = context
            raise OSError("canary-42")

    async def run() -> None:
        async with MemoryBackend() as backend:
            history = Noting(backend)
            failure = KeyError("mine")
            with pytest.raises(KeyError) as caught:
                async with history.turn(history.session("k"), [USER("q")], turn_id="request-7"):
                    raise failure
            assert caught.value is failure
            assert history.noted is not None
            assert history.noted.invoke_exception is failure
            assert history.noted.turn_id == "request-7"
            assert texts(history.noted.request_messages) == ["q"]

    with caplog.at_level(logging.WARNING, "chathistory"):
        asyncio.run(run())
    assert "OSError" in caplog.text
    assert "canary" not in caplog.text


def test_a_turn_takes_messages_alone_and_only_inside_its_block() -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        async with history.turn(history.session("k"), [USER("q")]) as turn:
            with pytest.raises(TypeError, match="dict"):
                turn.add(cast("ChatMessage", [{"role": "user", "content": "canary-42"}]))
            with pytest.raises(RuntimeError, match="block is left"):
                await turn.save()
        assert turn.answer == ()
        with pytest.raises(RuntimeError, match="inside its block"):
            turn.add(ASSISTANT("late"))
        with pytest.raises(RuntimeError, match="entered once"):
            async with turn:
                pass
        assert await history.count("k") == 1
        assert repr(turn) == f"<Turn {turn.turn_id!r}, 1 messages>"

    on(MemoryBackend(), work)


def test_a_turn_id_that_no_backend_keeps_is_refused_at_once() -> None:
    history = StoredChatHistoryProvider(MemoryBackend())
    with pytest.raises(InvalidKeyError, match="turn id"):
        history.turn(history.session("k"), [USER("q")], turn_id="")


def test_a_failed_save_is_repeated_under_the_same_id(backend: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        backend.failures = 2
        with pytest.raises(BackendUnavailableError) as failed:
            async with history.turn(session, [USER("paid")]) as turn:
                turn.add(ASSISTANT("dear"))
        assert failed.value.retryable
        with pytest.raises(BackendUnavailableError):
            await turn.save()
        await turn.save()
        await turn.save()
        assert texts(await history.messages(session)) == ["paid", "dear"]
        assert backend.calls.count("append") == 3

    on(backend, work)


def test_after_a_lost_reply_nothing_is_doubled_and_the_model_need_not_run_again(backend: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        backend.lost_replies = 1
        with pytest.raises(BackendUnavailableError):
            await ask(history, session, "q1", "a1", turn_id="T1")
        again = await ask(history, session, "q1", "another answer", turn_id="T1")
        assert again.replayed
        assert texts(again.answer or ()) == ["a1"]
        assert texts(again.messages) == ["q1", "a1"]
        assert await history.count(session) == 2

    on(backend, work)


def test_a_save_whose_reply_was_lost_is_repeated_without_doubling(backend: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q0", "a0")
        backend.lost_replies = 1
        with pytest.raises(BackendUnavailableError):
            async with history.turn(session, [USER("q")]) as turn:
                turn.add(ASSISTANT("a"))
        await history.set_messages(session, [ASSISTANT("summary")])
        await turn.save()
        assert texts(await history.messages(session)) == ["summary"]

    on(backend, work)


def test_a_stored_turn_sees_the_history_that_was_before_it(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1", turn_id="T1")
        await ask(history, session, "q2", "a2", turn_id="T2")
        await ask(history, session, "q3", turn_id="T3")
        second = await ask(history, session, "q2", turn_id="T2")
        assert texts(second.messages) == ["q1", "a1", "q2", "a2"]
        assert [message.source.type for message in second.messages] == [CHAT_HISTORY, CHAT_HISTORY, EXTERNAL, EXTERNAL]
        third = await ask(history, session, "q3", turn_id="T3")
        assert third.replayed
        assert third.answer == ()
        assert await history.count(session) == 5

    on(backend, work)


def test_another_request_under_a_stored_id_is_a_conflict_on_entry(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1", turn_id="T1")
        first = await backend.get("k", limit=0)
        second = await backend.append("k", [Record(b"x", "chathistory-note")], turn_id="T2")
        for turn_id, revision in ("T1", first.revision), ("T2", second.revision):
            with pytest.raises(TurnConflictError) as conflict:
                async with history.turn(session, [USER("another")], turn_id=turn_id):
                    pytest.fail("the model must not run")
            assert conflict.value.written.revision == revision
        assert await history.count(session) == 3

    on(backend, work)


def test_a_stored_turn_takes_its_own_answer_and_conflicts_with_another(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q", "a", turn_id="T")
        async with history.turn(session, [USER("q")], turn_id="T") as turn:
            turn.add(ASSISTANT("a"))
            assert texts(turn.messages) == ["q", "a"]
        with pytest.raises(TurnConflictError):
            async with history.turn(session, [USER("q")], turn_id="T") as turn:
                turn.add(ASSISTANT("another"))
        assert texts(await history.messages(session)) == ["q", "a"]

    on(backend, work)


def test_a_turn_that_was_replaced_since_is_known_but_its_answer_is_gone(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q", "a", turn_id="T")
        await ask(history, session, "alone", turn_id="A")
        await history.set_messages(session, [ASSISTANT("summary")])
        for question, turn_id in ("q", "T"), ("alone", "A"):
            turn = await ask(history, session, question, "run again", turn_id=turn_id)
            assert turn.replayed
            assert turn.answer is None
            assert texts(turn.messages) == ["summary", question]
        assert texts(await history.messages(session)) == ["summary"]

    on(backend, work)


def test_a_turn_that_was_cleared_is_new(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q", "a", turn_id="T")
        await history.clear(session)
        assert not (await ask(history, session, "q", "b", turn_id="T")).replayed
        assert texts(await history.messages(session)) == ["q", "b"]

    on(backend, work)


def test_a_turn_stored_between_load_and_probe_is_found(backend: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q0", "a0")
        twin = StoredChatHistoryProvider(backend.backend)
        backend.before_append = lambda: ask(twin, session, "q", "a", turn_id="T")
        turn = await ask(history, session, "q", "b", turn_id="T")
        assert turn.replayed
        assert texts(turn.answer or ()) == ["a"]
        backend.before_append = lambda: ask(twin, session, "q", "a", turn_id="U")
        with pytest.raises(TurnConflictError):
            await ask(history, session, "another", "b", turn_id="U")

    on(backend, work)


def test_two_requests_at_once_under_one_id_store_one_answer(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        both = asyncio.Barrier(2)

        async def request(answer: str) -> None:
            async with history.turn(session, [USER("q")], turn_id="W") as turn:
                assert not turn.replayed
                await both.wait()
                turn.add(ASSISTANT(answer))

        ends = await asyncio.gather(request("one"), request("two"), return_exceptions=True)
        assert sorted(type(end).__name__ for end in ends) == ["NoneType", "TurnConflictError"]
        assert await history.count(session) == 2

    on(backend, work)


def test_a_new_turn_of_an_id_costs_one_probe_where_there_is_a_conversation(between: Callable[[], Any]) -> None:
    backend = between()

    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        for turn_id, calls in ("T1", ["get", "append"]), ("T2", ["get", "append", "append"]), ("T1", ["get"]):
            backend.calls.clear()
            await ask(history, session, "q", "a", turn_id=turn_id)
            assert backend.calls == calls

    on(backend, work)


class Salted:
    """A codec that never writes the same bytes twice, as one that encrypts."""

    def __init__(self) -> None:
        self._inner = MessageCodec()

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [
            Record(token_bytes(8) + record.payload, f"{record.format}+salted", blake2b(record.payload).digest())
            for record in await self._inner.encode(key, messages)
        ]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        plain = [
            record._replace(payload=record.payload[8:], format=record.format.removesuffix("+salted"))
            for record in records
        ]
        return await self._inner.decode(key, plain)


def test_a_stored_turn_is_known_though_no_two_encodings_of_it_are_the_same(backend: ChatHistoryBackend) -> None:
    async def work(_: StoredChatHistoryProvider) -> None:
        history = StoredChatHistoryProvider(backend, codec=Salted())
        session = history.session("k")
        await ask(history, session, "q0", "a0", turn_id="T0")
        await ask(history, session, "q", "a", turn_id="T")
        again = await ask(history, session, "q", turn_id="T")
        assert again.replayed
        assert texts(again.messages) == ["q0", "a0", "q", "a"]
        with pytest.raises(TurnConflictError):
            await ask(history, session, "another", turn_id="T")
        assert await history.count(session) == 4

    on(backend, work)


def test_filters_apply_to_the_request_that_is_looked_for(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        silent = StoredChatHistoryProvider(backend, store_request_filter=lambda messages: [])
        session = silent.session("k")
        await ask(silent, session, "never stored", "a0", turn_id="T0")
        await ask(silent, session, "never stored", "a1", turn_id="T1")
        for turn_id, answer in ("T0", "a0"), ("T1", "a1"):
            turn = await ask(silent, session, "never stored", turn_id=turn_id)
            assert turn.replayed
            assert texts(turn.answer or ()) == [answer]
        assert not (await ask(silent, session, "never stored", "a2", turn_id="T2")).replayed

    on(backend, work)


def test_a_request_that_cannot_be_stored_is_refused_before_the_model_runs() -> None:
    naive = ChatMessage.user("q").model_copy(update={"role": "\ud800"})

    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q", "a")
        with pytest.raises(EncodeError):
            async with history.turn(session, [naive], turn_id="T"):
                pytest.fail("the model must not run")

    on(MemoryBackend(), work)


def test_a_conversation_cleared_while_the_model_runs_does_not_come_back(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "private", "very")
        turn = history.turn(session, [USER("q")])

        async def clear_meanwhile() -> None:
            async with turn:
                await history.clear(session)
                turn.add(ASSISTANT("a"))

        with pytest.raises(EpochChangedError, match="cleared") as gone:
            await clear_meanwhile()
        assert not gone.value.retryable
        assert not await history.exists("k")
        with pytest.raises(EpochChangedError):
            await turn.save()
        assert not await history.exists("k")

    on(backend, work)


def test_a_conversation_begun_anew_while_the_model_runs_gets_nothing_of_the_old(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "private", "very")

        async def begin_anew_meanwhile() -> None:
            async with history.turn(session, [USER("q")]) as turn:
                await history.clear(session)
                await ask(history, session, "new", "start")
                turn.add(ASSISTANT("a"))

        with pytest.raises(EpochChangedError, match="cleared"):
            await begin_anew_meanwhile()
        assert texts(await history.messages(session)) == ["new", "start"]

    on(backend, work)


def test_an_expired_conversation_does_not_come_back() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)

    async def run() -> None:
        nonlocal now
        async with MemoryBackend(ttl=timedelta(hours=1), clock=lambda: now) as backend:
            history = StoredChatHistoryProvider(backend)
            session = history.session("k")
            await ask(history, session, "q0", "a0")
            with pytest.raises(EpochChangedError, match="expired"):
                async with history.turn(session, [USER("q")]):
                    now += timedelta(hours=2)

    asyncio.run(run())


def test_a_conversation_replaced_while_the_model_runs_gets_the_turn(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1")
        async with history.turn(session, [USER("q2")]) as turn:
            await history.set_messages(session, [ASSISTANT("summary")])
            turn.add(ASSISTANT("a2"))
        assert texts(await history.messages(session)) == ["summary", "q2", "a2"]

    on(backend, work)


def test_a_conversation_replaced_and_then_cleared_during_the_save_does_not_come_back(backend: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1")

        async def replace() -> None:
            await history.set_messages(session, [ASSISTANT("summary")])
            backend.before_append = lambda: history.clear(session)

        backend.before_append = replace
        with pytest.raises(EpochChangedError, match="cleared"):
            await ask(history, session, "q2", "a2")
        assert not await history.exists("k")

    on(backend, work)


def test_a_conversation_that_others_began_meanwhile_gets_the_turn(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        async with history.turn(session, [USER("q2")]) as turn:
            await ask(history, session, "q1", "a1")
            await history.set_messages(session, [ASSISTANT("summary")])
            turn.add(ASSISTANT("a2"))
        assert texts(await history.messages(session)) == ["summary", "q2", "a2"]

    on(backend, work)


def test_a_framework_that_names_the_beginning_brings_back_nothing_either(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await ask(history, session, "q1", "a1")
        one, two = (InvokingContext(None, session, [USER(text)]) for text in ("one", "two"))
        given = await history.invoking(one)
        await history.clear(session)
        await history.invoking(two)
        with pytest.raises(EpochChangedError):
            await history.invoked(InvokedContext.succeeded(None, session, given, [ASSISTANT("a")], invoking=one))
        await history.invoked(InvokedContext.succeeded(None, session, two.request_messages, [], invoking=two))
        assert texts(await history.messages(session)) == ["two"]

    on(backend, work)


@pytest.mark.parametrize("begun", [False, True])
def test_sixteen_turns_of_one_session_at_once_cost_one_append_each(backend: Any, begun: bool) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        if begun:
            await ask(history, session, "q", "a")
        backend.calls.clear()
        all_of_them = asyncio.Barrier(16)

        async def one(number: int) -> None:
            async with history.turn(session, [USER(f"q{number}")]) as turn:
                await all_of_them.wait()
                turn.add(ASSISTANT(f"a{number}"))

        await asyncio.gather(*(one(number) for number in range(16)))
        assert sorted(backend.calls) == ["append"] * 16 + ["get"] * 16
        read = texts((await history.messages(session))[2 * begun :])
        assert sorted(read) == sorted(f"{role}{number}" for role in "qa" for number in range(16))
        assert all(read[n + 1] == read[n].replace("q", "a") for n in range(0, 32, 2))

    on(backend, work)
