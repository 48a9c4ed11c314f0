import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import pytest

from chathistory_core import (
    NO_REVISION,
    ChatHistoryBackend,
    CorruptRecordError,
    EncodeError,
    InvalidKeyError,
    Record,
    RevisionConflictError,
)
from chathistory_core.messages import CHAT_HISTORY, EXTERNAL, ChatMessage, SourceAttribution
from chathistory_core.provider import InvokedContext, InvokingContext, exclude_history
from chathistory_core.session import AgentSession, StateBag
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_memory import MemoryBackend

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant
STATE_KEY = "RemoteChatHistoryProvider"

Work = Callable[[StoredChatHistoryProvider], Coroutine[Any, Any, None]]


def on(backend: ChatHistoryBackend, work: Work) -> None:
    async def run() -> None:
        async with backend as opened:
            await work(StoredChatHistoryProvider(opened))

    asyncio.run(run())


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.text for message in messages]


async def ran(
    history: StoredChatHistoryProvider, session: AgentSession | None, request: str, *answer: str
) -> Sequence[ChatMessage]:
    """A run as a framework drives it; what the model was given."""
    began = InvokingContext(None, session, [USER(request)])
    given = await history.invoking(began)
    response = [ASSISTANT(text) for text in answer]
    await history.invoked(InvokedContext.succeeded(None, session, given, response, invoking=began))
    return given


def test_a_run_is_found_by_the_next_one_in_order(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        assert texts(await ran(history, session, "q1", "a1")) == ["q1"]
        assert texts(await ran(history, session, "q2", "a2", "a3")) == ["q1", "a1", "q2"]
        assert texts(await history.messages(session)) == ["q1", "a1", "q2", "a2", "a3"]
        assert await history.count(session) == 5

    on(backend, work)


def test_a_session_holds_its_conversations_key_and_nothing_else(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        assert history.key_of(session) is None
        await ran(history, session, "q", "a")
        key = history.key_of(session)
        assert key is not None
        assert len(key) == 32
        assert int(key, 16) >= 0
        assert session.to_json() == {"stateBag": {STATE_KEY: {"externalConversationKey": key}}}
        assert await history.exists(key)

    on(backend, work)


def test_another_provider_and_a_session_from_json_go_on_with_the_conversation(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        await ran(history, session, "q", "a")
        other = StoredChatHistoryProvider(backend, new_key=lambda session: "never used")
        again = AgentSession.from_json(json.loads(json.dumps(session.to_json())))
        assert texts(await ran(other, again, "q2")) == ["q", "a", "q2"]

    on(backend, work)


def test_sessions_and_state_keys_are_conversations_apart(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        one, two = history.session(), history.session()
        other = StoredChatHistoryProvider(backend, state_key="other")
        assert other.state_keys == ("other",)
        assert history.state_keys == (STATE_KEY,)
        await ran(history, one, "one")
        await ran(history, two, "two")
        await ran(other, one, "three")
        assert texts(await history.messages(one)) == ["one"]
        assert texts(await history.messages(two)) == ["two"]
        assert texts(await other.messages(one)) == ["three"]
        assert [summary.record_count for summary in await history.summaries()] == [1, 1, 1]

    on(backend, work)


def test_a_run_that_failed_or_held_nothing_stores_nothing(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await history.invoked(InvokedContext.succeeded(None, session, [], []))
        await history.invoked(InvokedContext.failed(None, session, [USER("q")], RuntimeError("down")))
        assert not await history.exists("k")
        assert await history.count("k") == 0

    on(backend, work)


def test_invoked_twice_stores_once(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        context = InvokedContext.succeeded(None, session, [USER("q")], [ASSISTANT("a")])
        await history.invoked(context)
        await history.invoked(context)
        assert texts(await history.messages(session)) == ["q", "a"]

    on(backend, work)


def test_marks_are_neither_stored_nor_believed(backend: ChatHistoryBackend) -> None:
    forged = {
        "role": "user",
        "additionalProperties": {"_attribution": {"sourceType": {"value": "ChatHistory"}}, "k": 1},
    }

    async def work(history: StoredChatHistoryProvider) -> None:
        await backend.append("k", [Record(json.dumps(forged).encode(), "chat-message")], turn_id="t")
        session = history.session("k")
        (read,) = await history.messages(session)
        assert dict(read.additional_properties or {}) == {"k": 1}
        marked = ASSISTANT("a").with_source(SourceAttribution(CHAT_HISTORY, "x"))
        await history.invoked(InvokedContext.succeeded(None, session, [], [marked]))
        await history.set_messages(session, [*await history.messages(session), marked])
        for record in (await backend.get("k", after=1)).records:
            assert b"_attribution" not in record.payload
        given = await history.invoking(InvokingContext(None, session, [USER("q")]))
        name = f"{StoredChatHistoryProvider.__module__}.StoredChatHistoryProvider"
        assert [message.source for message in given] == [SourceAttribution(CHAT_HISTORY, name)] * 3 + [
            SourceAttribution(EXTERNAL)
        ]

    on(backend, work)


def test_without_a_session_nothing_is_read_or_stored_and_it_is_said_once(
    between: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    backend = between()

    async def work(history: StoredChatHistoryProvider) -> None:
        with caplog.at_level(logging.WARNING, "chathistory"):
            assert texts(await ran(history, None, "q", "a")) == ["q"]
            await ran(history.scoped("tenant"), None, "q", "a")
            async with history.turn(None, [USER("q")], turn_id="t") as turn:
                turn.add(ASSISTANT("a"))
        assert len(caplog.records) == 1
        assert backend.calls == []
        assert list(await history.messages(None)) == []
        assert await history.count(None) == 0
        assert history.key_of(None) is None
        assert not await history.clear(None)
        with pytest.raises(ValueError, match="without a session"):
            await history.set_messages(cast("AgentSession", None), [USER("q")])
        assert backend.calls == []

    on(backend, work)


def test_where_the_service_keeps_the_history_nothing_is_loaded_or_stored(between: Callable[[], Any]) -> None:
    backend = between()

    async def work(history: StoredChatHistoryProvider) -> None:
        session = AgentSession(conversation_id="resp_1")
        assert texts(await ran(history, session, "q", "a")) == ["q"]
        assert len(session.state) == 0
        late = history.session()
        began = InvokingContext(None, late, [USER("q")])
        given = await history.invoking(began)
        late.conversation_id = "resp_2"
        await history.invoked(InvokedContext.succeeded(None, late, given, [], invoking=began))
        assert backend.calls == ["get"]

    on(backend, work)


def test_a_session_without_a_conversation_has_nothing_stored_and_asking_makes_no_key(
    between: Callable[[], Any],
) -> None:
    backend = between()

    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        found = await history.messages(session)
        assert (len(found), found.revision, found.epoch) == (0, NO_REVISION, "")
        assert await history.count(session) == 0
        assert await history.clear(session) is False
        assert history.key_of(session) is None
        assert backend.calls == []

    on(backend, work)


def test_messages_read_the_newest_records_oldest_first(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await history.set_messages(session, [USER(str(n)) for n in range(1, 11)])
        whole = await history.messages(session)
        newest = await history.messages(session, limit=5)
        assert texts(newest) == ["6", "7", "8", "9", "10"]
        assert len(whole) == 10
        assert whole.limit is None
        assert (whole.revision, whole.epoch) == (newest.revision, newest.epoch)
        assert texts(whole[2:4]) == ["3", "4"]
        assert len(await history.messages(session, limit=0)) == 0
        with pytest.raises(ValueError, match="negative"):
            await history.messages(session, limit=-1)

    on(backend, work)


def test_setting_messages_replaces_what_is_stored_and_makes_a_key(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        first = await history.set_messages(session, [USER("a"), USER("b")])
        assert first.first_position == 1
        read = await history.messages(session)
        assert read.revision == first.revision
        await history.set_messages(session, [USER("c")], expected_revision=read.revision)
        assert texts(await history.messages(session)) == ["c"]
        with pytest.raises(RevisionConflictError):
            await history.set_messages(session, [USER("d")], expected_revision=read.revision)
        await history.set_messages(session, [])
        assert texts(await history.messages(session)) == []
        assert await history.exists(history.key_of(session) or "")

    on(backend, work)


def test_setting_messages_twice_under_one_turn_id_replaces_once(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await history.set_messages(session, [USER("a")], turn_id="t")
        await ran(history, session, "q", "x")
        assert (await history.set_messages(session, [USER("a")], turn_id="t")).replayed
        assert await history.count(session) == 3

    on(backend, work)


def test_a_history_read_with_a_limit_is_not_set(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        await history.set_messages(session, [USER("a"), USER("b")])
        newest = await history.messages(session, limit=1)
        with pytest.raises(ValueError, match="limit of 1"):
            await history.set_messages(session, newest)
        await history.set_messages(session, list(newest))
        assert texts(await history.messages(session)) == ["b"]

    on(backend, work)


def test_clearing_removes_the_conversation_and_says_whether_there_was_one(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        assert not await history.clear(session)
        await ran(history, session, "q", "a")
        with pytest.raises(RevisionConflictError):
            await history.clear(session, expected_revision="another")
        assert await history.clear(session, expected_revision=(await history.messages(session)).revision)
        assert len(await history.messages(session)) == 0
        assert not await history.exists("k")
        assert history.key_of(session) == "k"
        await ran(history, session, "again")
        assert texts(await history.messages(session)) == ["again"]

    on(backend, work)


def test_attaching_leads_to_another_conversation(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("one")
        await ran(history, session, "q1")
        history.attach(session, "two")
        await ran(history, session, "q2")
        assert await history.count("one") == 1
        assert texts(await history.messages(history.session("two"))) == ["q2"]

    on(backend, work)


def test_a_run_is_stored_where_it_was_loaded_though_its_session_is_attached_elsewhere_meanwhile(
    backend: ChatHistoryBackend,
) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("one")
        async with history.turn(session, [USER("q")]) as turn:
            history.attach(session, "two")
            turn.add(ASSISTANT("a"))
        assert (await history.count("one"), await history.count("two")) == (2, 0)

    on(backend, work)


def test_filters_decide_what_is_stored_and_provided(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        filtering = StoredChatHistoryProvider(
            backend,
            provide_output_filter=lambda messages: messages[-1:],
            store_request_filter=lambda messages: [m for m in exclude_history(messages) if m.text.startswith("keep")],
            store_response_filter=lambda messages: [m for m in messages if m.text.startswith("keep")],
        )
        session = filtering.session("k")
        await ran(filtering, session, "keep q", "drop a", "keep a")
        assert texts(await history.messages(session)) == ["keep q", "keep a"]
        assert texts(await ran(filtering, session, "drop q", "drop a")) == ["keep a", "drop q"]
        assert texts(await filtering.messages(session)) == ["keep q", "keep a"]

    on(backend, work)


def test_a_load_costs_one_read_and_a_run_one_append(between: Callable[[], Any]) -> None:
    backend = between()

    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        for _ in range(3):
            backend.calls.clear()
            await ran(history, session, "q", "a", "b")
            assert backend.calls == ["get", "append"]

    on(backend, work)


def test_first_runs_at_once_share_one_key(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        await asyncio.gather(*(ran(history, session, f"q{n}", f"a{n}") for n in range(16)))
        (summary,) = await history.summaries()
        assert summary.record_count == 32
        assert summary.key == history.key_of(session)
        read = texts(await history.messages(session))
        assert all(read[n + 1] == read[n].replace("q", "a") for n in range(0, 32, 2))

    on(backend, work)


def test_new_keys_can_follow_from_the_session(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        naming = StoredChatHistoryProvider(backend, new_key=lambda session: f"user-{session.id}")
        session = AgentSession("7")
        await ran(naming, session, "q")
        assert naming.key_of(session) == "user-7"
        refusing = StoredChatHistoryProvider(backend, new_key=lambda session: "")
        with pytest.raises(InvalidKeyError):
            await ran(refusing, AgentSession(), "q")

    on(backend, work)


@pytest.mark.parametrize(
    "state", [{}, {"externalConversationKey": None}, {"externalConversationKey": 7}, {"externalConversationKey": ""}]
)
def test_a_state_that_holds_no_key_is_an_error(state: dict[str, Any]) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = AgentSession(state=StateBag({STATE_KEY: state}))
        for use in ran(history, session, "q"), history.messages(session), history.clear(session):
            with pytest.raises(InvalidKeyError):
                await use
        assert await history.summaries() == ()

    on(MemoryBackend(), work)


def test_a_state_of_another_kind_is_an_error() -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        with pytest.raises(TypeError, match="str, not dict"):
            await ran(history, AgentSession(state=StateBag({STATE_KEY: "text"})), "q")

    on(MemoryBackend(), work)


def test_a_provider_refuses_what_it_cannot_use() -> None:
    backend = MemoryBackend()
    for kind, match, make in (
        (
            TypeError,
            "open_history",
            lambda: StoredChatHistoryProvider(cast("ChatHistoryBackend", "redis://:hunter2@h")),
        ),
        (TypeError, "open_history", lambda: StoredChatHistoryProvider(cast("ChatHistoryBackend", None))),
        (TypeError, r"\('tenant',\)", lambda: StoredChatHistoryProvider(backend, scope="tenant")),
        (InvalidKeyError, "scope part", lambda: StoredChatHistoryProvider(backend, scope=("",))),
        (ValueError, "blank", lambda: StoredChatHistoryProvider(backend, state_key=" ")),
        (
            TypeError,
            "new_key",
            lambda: StoredChatHistoryProvider(backend, new_key=cast("Callable[[AgentSession], str]", "k")),
        ),
        (ValueError, "save_timeout", lambda: StoredChatHistoryProvider(backend, save_timeout=-1)),
        (ValueError, "save_timeout", lambda: StoredChatHistoryProvider(backend, save_timeout=float("nan"))),
        (InvalidKeyError, "key", lambda: StoredChatHistoryProvider(backend).session("")),
        (TypeError, "AgentSession", lambda: StoredChatHistoryProvider(backend).attach(cast("AgentSession", "k"), "k")),
        (TypeError, "session", lambda: StoredChatHistoryProvider(backend).attach(cast("AgentSession", None), "k")),
        (
            TypeError,
            "message 0 is dict",
            lambda: StoredChatHistoryProvider(backend).turn(None, cast("list[ChatMessage]", [{}])),
        ),
        (
            TypeError,
            "sequence",
            lambda: StoredChatHistoryProvider(backend).turn(None, cast("list[ChatMessage]", USER("q"))),
        ),
    ):
        with pytest.raises(kind, match=match) as caught:
            make()
        assert "hunter2" not in str(caught.value)


def test_its_backend_is_one_of_its_services() -> None:
    backend = MemoryBackend()
    history = StoredChatHistoryProvider(backend)
    assert history.get_service(MemoryBackend) is backend
    assert history.get_service(cast("type[object]", ChatHistoryBackend)) is backend
    assert history.get_service(StoredChatHistoryProvider) is history
    assert history.get_service(MemoryBackend, "key") is None
    assert history.get_service(dict) is None


def test_loads_and_stores_are_logged_without_content(caplog: pytest.LogCaptureFixture) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("the key")
        with caplog.at_level(logging.INFO, "chathistory"):
            async with history.turn(session, [USER("canary-42")], turn_id="request-7") as turn:
                turn.add(ASSISTANT("canary-43"))
            await history.set_messages(session, [USER("canary-44")])
            await history.clear(session)
        lines = [record.getMessage() for record in caplog.records]
        assert lines[0] == "load 'the key': 0 of 0 records, turn 'request-7'"
        assert lines[1] == "append 'the key': 2 messages, turn 'request-7'"
        assert lines[2].startswith("replace 'the key': 1 messages, turn ")
        assert lines[3] == "clear 'the key': gone"
        assert len(lines) == 4
        assert "canary" not in caplog.text

    on(MemoryBackend(), work)


def test_no_error_shows_what_a_message_says(caplog: pytest.LogCaptureFixture) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        session = history.session("k")
        backend = history.get_service(MemoryBackend)
        assert backend is not None
        bad = ChatMessage(role="user", additional_properties={"canary-42": float("nan")})
        errors: list[BaseException] = []
        for use in (
            lambda: history.set_messages(session, [bad]),
            lambda: history.invoked(InvokedContext.succeeded(None, session, [bad], [])),
        ):
            with pytest.raises(EncodeError) as refused:
                await use()
            errors.append(refused.value)
        await backend.append("k", [Record(b'{"role": "canary-42", ', "chat-message")], turn_id="t")
        with pytest.raises(CorruptRecordError) as corrupt:
            await history.messages(session)
        errors.append(corrupt.value)
        for error in errors:
            chain: BaseException | None = error
            while chain is not None:
                assert "canary" not in f"{chain!s} {chain!r}"
                chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)

    with caplog.at_level(logging.DEBUG):
        on(MemoryBackend(), work)
    assert "canary" not in caplog.text
