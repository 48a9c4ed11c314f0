"""The provider by itself: which conversation is a session's, what is read and saved, how it opens and closes."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentResponse,
    AgentSession,
    Content,
    HistoryProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from chathistory_core import (
    BackendStateError,
    ChatHistoryBackend,
    CorruptRecordError,
    EncodeError,
    InvalidKeyError,
    Record,
    StoredChatHistoryProvider,
    open_history,
)
from chathistory_core.faces.agent_framework import StoredHistoryProvider
from chathistory_core.messages import ChatMessage
from chathistory_memory import MemoryBackend
from chathistory_sqlite import SQLiteOptions

HELLO = [Message("user", ["Hi"]), Message("assistant", ["Hello"])]
NOBODY: Any = None  # an agent that nobody asks anything


def texts(messages: list[Message]) -> list[str]:
    return [message.text for message in messages]


async def turn(history: StoredHistoryProvider, session: AgentSession, question: str, answer: str) -> list[Message]:
    """A run as the framework makes it; what was loaded."""
    state = session.state.setdefault(history.source_id, {})
    context = SessionContext(session_id=session.session_id, input_messages=[Message("user", [question])])
    await history.before_run(agent=NOBODY, session=session, context=context, state=state)
    context._response = AgentResponse(messages=[Message("assistant", [answer])])
    await history.after_run(agent=NOBODY, session=session, context=context, state=state)
    return context.context_messages.get(history.source_id, [])


def test_it_is_a_history_provider_with_the_frameworks_defaults() -> None:
    provider = StoredHistoryProvider("memory://")
    assert isinstance(provider, HistoryProvider)
    assert provider.load_messages
    assert provider.store_inputs
    assert provider.store_outputs
    assert not provider.store_context_messages
    assert provider.store_context_from is None


def test_a_run_loads_what_runs_before_it_stored() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            session = AgentSession()
            assert await turn(history, session, "Hi", "Hello") == []
            loaded = await turn(history, session, "Again", "Hello again")
            assert texts(loaded) == ["Hi", "Hello"]
            mark = {"source_id": history.source_id, "source_type": "StoredHistoryProvider"}
            assert [message.additional_properties["_attribution"] for message in loaded] == [mark, mark]
            assert session.state == {history.source_id: {}}

    asyncio.run(run())


def test_a_sessions_conversation_is_that_of_the_key_in_its_state_else_of_its_id() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            session = AgentSession(session_id="S1")
            assert history.key_of(session) == "S1"
            await turn(history, session, "one", "1")
            history.attach(session, "ann/first")
            assert history.key_of(session) == "ann/first"
            await turn(history, session, "two", "2")
            assert [one.key for one in await history.history.summaries()] == ["S1", "ann/first"]
            state = json.loads(json.dumps(session.to_dict()))["state"]
            assert state == {"RemoteChatHistoryProvider": {"externalConversationKey": "ann/first"}}
            restored = AgentSession.from_dict({"session_id": "another", "state": state})
            assert texts(await turn(history, restored, "three", "3")) == ["two", "2"]

    asyncio.run(run())


def test_a_session_of_dotnet_names_its_conversation_in_the_same_place() -> None:
    text = (Path(__file__).resolve().parents[1] / "golden/session.json").read_text(encoding="utf-8")
    dotnet = json.loads(text)["stateBag"]
    session = AgentSession.from_dict({"session_id": "S1", "state": dotnet})
    expected = dotnet["RemoteChatHistoryProvider"]["externalConversationKey"]
    assert StoredHistoryProvider("memory://").key_of(session) == expected


def test_a_scope_keeps_sessions_inside_it() -> None:
    async def run() -> None:
        async with open_history("memory://", scope=("tenant",)) as whole:
            ann, bob = (StoredHistoryProvider(whole.scoped(user)) for user in ("ann", "bob"))
            session = AgentSession(session_id="same")
            await turn(ann, session, "Hi", "Hello, Ann")
            assert await turn(bob, AgentSession(session_id="same"), "Hi", "Hello, Bob") == []
            ann.attach(session, "../bob/same")
            assert await turn(ann, session, "Hi", "Hello") == []

    asyncio.run(run())


@pytest.mark.parametrize("session_id", ["a/b", "..", "CON", "日本", "a b", "🎉", "%2F", "x" * 500])
def test_any_session_id_is_a_conversation_of_its_own(url: str, session_id: str) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url) as history:
            await history.save_messages(session_id, HELLO)
            assert texts(await history.get_messages(session_id)) == ["Hi", "Hello"]
            assert await history.get_messages(session_id + "x") == []

    asyncio.run(run())


@pytest.mark.parametrize("state", [{"externalConversationKey": 7}, {"externalConversationKey": ""}, ["a key"]])
def test_a_key_that_is_none_is_refused(state: Any) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            with pytest.raises((InvalidKeyError, TypeError)):
                await history.get_messages("S1", state=state)

    asyncio.run(run())


def test_without_a_session_id_nothing_is_read_or_saved() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            await history.save_messages(None, HELLO)
            assert await history.get_messages(None) == []
            assert await history.history.summaries() == ()

    asyncio.run(run())


def test_saving_nothing_makes_no_conversation() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            await history.save_messages("S1", [])
            assert await history.history.summaries() == ()

    asyncio.run(run())


def test_one_save_is_one_turn_whatever_its_length(url: str) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url) as history:
            await history.save_messages("S1", HELLO * 150)
            backend = history.history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract] # the protocol stands for any
            assert backend is not None
            records = (await backend.get("S1")).records
            assert len(records) == 300
            assert len({record.turn_id for record in records}) == 1
            assert {record.format for record in records} == {"agent-framework"}

    asyncio.run(run())


def test_the_same_run_reported_twice_is_stored_once() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            session, state = AgentSession(session_id="S1"), dict[str, Any]()
            context = SessionContext(session_id="S1", input_messages=[Message("user", ["Hi"])])
            context._response = AgentResponse(messages=[Message("assistant", ["Hello"])])
            for _ in range(2):
                await history.after_run(agent=NOBODY, session=session, context=context, state=state)
            assert texts(await history.get_messages("S1")) == ["Hi", "Hello"]

    asyncio.run(run())


def test_a_transcript_that_is_saved_again_adds_only_what_is_new() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            await history.save_messages("S1", HELLO)
            await history.save_messages("S1", [*HELLO, *HELLO])
            assert texts(await history.get_messages("S1")) == ["Hi", "Hello"] * 2
            await history.save_messages("S1", HELLO)  # nothing new behind it: a turn like those before
            assert texts(await history.get_messages("S1")) == ["Hi", "Hello"] * 3

    asyncio.run(run())


def test_a_transcript_without_anything_new_is_another_turn() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            for _ in range(2):
                await history.save_messages("S1", [*HELLO, Message("user", ["Bye"])])
            assert texts(await history.get_messages("S1")) == ["Hi", "Hello", "Bye"] * 2

    asyncio.run(run())


def test_questions_alone_are_not_what_a_transcript_is_known_by() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            await history.save_messages("S1", HELLO[:1])
            await history.save_messages("S1", [*HELLO, Message("user", ["Bye"])])
            assert texts(await history.get_messages("S1")) == ["Hi", "Hi", "Hello", "Bye"]

    asyncio.run(run())


@pytest.mark.parametrize(
    "given",
    [
        [Message("user", ["Hi"]), Message("assistant", ["Good day"]), Message("user", ["And now?"])],
        [Message("assistant", ["Hello"]), Message("user", ["And now?"])],
        [Message("user", ["Hi"], message_id="m2"), Message("assistant", ["Hello"]), Message("user", ["And now?"])],
    ],
    ids=["another answer", "the end alone", "another id"],
)
def test_what_is_not_the_whole_conversation_from_its_beginning_is_no_transcript(given: list[Message]) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            await history.save_messages("S1", [Message("user", ["Hi"], message_id="m1"), HELLO[1]])
            await history.save_messages("S1", given)
            assert len(await history.get_messages("S1")) == 2 + len(given)

    asyncio.run(run())


def test_saves_at_once_lose_nothing_and_mix_nothing(url: str) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url) as history:
            await asyncio.gather(
                *(
                    history.save_messages("S1", [Message("user", [str(n)]), Message("assistant", [str(n)])])
                    for n in range(12)
                )
            )
            said = texts(await history.get_messages("S1"))
            assert said[::2] == said[1::2]
            assert sorted(said[::2], key=int) == [str(n) for n in range(12)]

    asyncio.run(run())


def test_what_a_newer_version_wrote_is_readable_and_stays_as_it_is() -> None:
    payload = {
        "type": "message",
        "role": "assistant",
        "mood": "fine",
        "contents": [
            {"type": "text", "text": "hi", "glow": 1, "additional_properties": {}},
            {"type": "hologram", "shape": "cube", "additional_properties": {}},
            {"type": "function_approval_request", "id": "r", "function_call": {"type": "function_call", "glow": 2}},
            {"type": "data", "merge_mode": "blend", "uri": "data:,x", "additional_properties": {}},
        ],
        "additional_properties": {},
    }

    async def run() -> None:
        async with MemoryBackend() as backend:
            record = Record(json.dumps(payload).encode(), "agent-framework")
            await backend.append("S1", [record], turn_id="t")
            history = StoredHistoryProvider(StoredChatHistoryProvider(backend))
            (message,) = await history.get_messages("S1")
            assert message.text == "hi"
            assert [content.type for content in message.contents][:3] == [
                "text",
                "hologram",
                "function_approval_request",
            ]
            assert message.additional_properties["agent-framework"] == {"mood": "fine"}
            assert (await backend.get("S1")).records[0].payload == record.payload

    asyncio.run(run())


@pytest.mark.parametrize(
    "payload",
    [
        {"role": "user", "contents": ["hi", {"type": "text", "text": 5, "additional_properties": [1]}]},
        {"role": "user", "contents": ["hi", {"no": "type"}, 7, [8]], "additional_properties": [1]},
        {
            "role": "user",
            "contents": ["hi", {"type": "usage", "outputs": {"type": "data", "data": 1, "media_type": 2}}],
        },
        {"role": "user", "contents": ["hi", {"type": "function_call", "hosted": "yes"}], "author_name": {"a": 1}},
    ],
)
def test_what_no_version_wrote_does_not_make_the_rest_unreadable(payload: dict[str, Any]) -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            await backend.append("S1", [Record(json.dumps(payload).encode(), "agent-framework")], turn_id="t")
            (message,) = await StoredHistoryProvider(StoredChatHistoryProvider(backend)).get_messages("S1")
            assert message.contents[0].text == "hi"

    asyncio.run(run())


def test_messages_of_other_formats_are_the_frameworks_too() -> None:
    async def run() -> None:
        async with open_history("memory://") as ours:
            await ours.set_messages(ours.session("S1"), [ChatMessage.user("Hi"), ChatMessage.tool("c", {"n": 1})])
            user, result = await StoredHistoryProvider(ours).get_messages("S1")
            assert (user.role, user.text) == ("user", "Hi")
            assert result.contents[0].result == '{"n":1}'

    asyncio.run(run())


def test_a_corrupt_record_is_an_error_that_names_its_place() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            await backend.append("S1", [Record(b"{", "agent-framework")], turn_id="t")
            with pytest.raises(CorruptRecordError) as caught:
                await StoredHistoryProvider(StoredChatHistoryProvider(backend)).get_messages("S1")
            assert caught.value.position == 1

    asyncio.run(run())


def test_what_cannot_be_stored_is_refused_before_the_model_is_asked() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            session = AgentSession()
            call = Content.from_function_call("c", "f", arguments={"x": float("nan")})
            context = SessionContext(session_id=session.session_id, input_messages=[Message("user", [call])])
            with pytest.raises(EncodeError):
                await history.before_run(agent=NOBODY, session=session, context=context, state={})

    asyncio.run(run())


def test_it_opens_and_closes_what_it_made(sqlite: str, tmp_path: Path) -> None:
    async def run() -> None:
        history = StoredHistoryProvider(sqlite)
        with pytest.raises(BackendStateError, match="async with"):
            await history.get_messages("S1")
        for number in range(2):
            async with history:
                await history.save_messages("S1", [Message("user", [str(number)])])
        with pytest.raises(BackendStateError, match="async with"):
            await history.get_messages("S1")
        async with StoredHistoryProvider(SQLiteOptions(url=sqlite)) as again:
            assert texts(await again.get_messages("S1")) == ["0", "1"]
        async with StoredHistoryProvider(open_history(sqlite, state_key="k")) as again:
            assert again.history.state_keys == ("k",)

    asyncio.run(run())


def test_what_it_was_given_it_leaves_open() -> None:
    async def run() -> None:
        async with open_history("memory://") as ours:
            async with StoredHistoryProvider(ours) as history:
                await history.save_messages("S1", HELLO)
            assert texts(await history.get_messages("S1")) == ["Hi", "Hello"]
            assert history.history is ours

    asyncio.run(run())


def test_leaving_the_block_keeps_the_error_that_ended_it() -> None:
    async def run() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with StoredHistoryProvider("memory://"):
                raise KeyError("mine")

    asyncio.run(run())


def test_another_process_goes_on_with_a_conversation_by_its_key(sqlite: str) -> None:
    script = f"""
import asyncio
from agent_framework import AgentSession
from chathistory_core.faces.agent_framework import StoredHistoryProvider
async def run():
    async with StoredHistoryProvider({sqlite!r}) as history:
        print([message.text for message in await history.get_messages("S1")])
asyncio.run(run())
"""

    async def run() -> None:
        async with StoredHistoryProvider(sqlite) as history:
            await history.save_messages("S1", HELLO)

    asyncio.run(run())
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['Hi', 'Hello']"


def test_nothing_of_ours_loads_the_framework_but_the_face() -> None:
    script = """
import sys
import chathistory_core, chathistory_core.faces, chathistory_core.formats.agent_framework
print("agent_framework" in sys.modules)
sys.modules["agent_framework"] = None
try:
    import chathistory_core.faces.agent_framework
except ModuleNotFoundError as error:
    print(error)
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    loaded, missing = found.stdout.splitlines()
    assert loaded == "False"
    assert 'pip install "chathistory-core[agent-framework]"' in missing


def test_an_agent_takes_it_for_its_history_provider() -> None:
    async def run() -> None:
        async with open_history("memory://") as ours:
            provider: HistoryProvider = StoredHistoryProvider(ours)
            agent: SupportsAgentRun = Agent(NOBODY, context_providers=[provider])
            assert agent.name is None

    asyncio.run(run())


def test_a_session_is_attached_only_to_what_is_a_key() -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            session = AgentSession()
            with pytest.raises(InvalidKeyError):
                history.attach(session, "")
            assert session.state == {}

    asyncio.run(run())
