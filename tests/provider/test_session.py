import asyncio
import copy
import json
from pathlib import Path
from typing import cast

import pytest

from chathistory_core.messages import ChatMessage, Json
from chathistory_core.session import AgentSession, ProviderSessionState, StateBag
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_memory import MemoryBackend

RECORDED = Path(__file__).resolve().parents[1] / "golden/session.json"
STATE_KEY = "RemoteChatHistoryProvider"


def test_the_json_of_a_session_is_the_one_that_dotnet_writes() -> None:
    text = RECORDED.read_text().strip()
    key = json.loads(text)["stateBag"][STATE_KEY]["externalConversationKey"]

    async def take_a_turn() -> AgentSession:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, new_key=lambda session: key)
            session = history.session()
            async with history.turn(session, [ChatMessage.user("time")]):
                pass
            assert history.key_of(AgentSession.from_json(json.loads(text))) == key
            return session

    session = asyncio.run(take_a_turn())
    assert json.dumps(session.to_json(), separators=(",", ":")) == text


def test_the_services_conversation_comes_before_the_state() -> None:
    session = AgentSession(conversation_id="resp_1", state=StateBag({"k": 1}))
    assert json.dumps(session.to_json()) == '{"conversationId": "resp_1", "stateBag": {"k": 1}}'


def test_a_session_comes_back_from_its_json() -> None:
    session = AgentSession("web-7", conversation_id="resp_1", state=StateBag({"k": {"a": None}}))
    again = AgentSession.from_json(json.loads(json.dumps(session.to_json())))
    assert (again.id, again.conversation_id, again.state.to_json()) == ("web-7", "resp_1", {"k": {"a": None}})


def test_an_id_is_made_where_none_is_given_and_not_kept() -> None:
    session = AgentSession()
    assert session.id
    assert session.id != AgentSession().id
    assert session.to_json() == {"stateBag": {}}


@pytest.mark.parametrize("text", ['{"stateBag":{}}', '{"stateBag":null}', "{}", '{"other":1,"conversationId":null}'])
def test_a_session_without_state_has_an_empty_bag(text: str) -> None:
    session = AgentSession.from_json(json.loads(text))
    assert len(session.state) == 0
    assert session.conversation_id is None


@pytest.mark.parametrize(
    "value", ["text", [], {"stateBag": []}, {"conversationId": 7}, {"id": 7}, {"stateBag": {" ": 1}}]
)
def test_the_json_of_no_session_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"session|state key"):
        AgentSession.from_json(cast("dict[str, Json]", value))


def test_a_services_conversation_is_not_taken_away_and_blank_is_none() -> None:
    session = AgentSession(conversation_id=" ")
    assert session.conversation_id is None
    session.conversation_id = ""
    session.conversation_id = "resp_1"
    session.conversation_id = "resp_2"
    for nothing in (None, "", " "):
        with pytest.raises(ValueError, match="taken away"):
            session.conversation_id = nothing
    assert session.conversation_id == "resp_2"


def test_a_session_can_be_copied_and_shows_no_state() -> None:
    session = AgentSession("s", state=StateBag({"k": "canary-42"}))
    copy.deepcopy(session).state.set("k", 1)
    assert session.state.get("k") == "canary-42"
    assert "canary" not in repr(session)


def counted(calls: list[AgentSession | None]) -> ProviderSessionState[dict[str, Json]]:
    def initial(session: AgentSession | None) -> dict[str, Json]:
        calls.append(session)
        return {"n": len(calls)}

    return ProviderSessionState[dict[str, Json]](initial, "mine", kind=dict)


def test_an_initial_state_is_made_on_first_use_and_kept() -> None:
    calls: list[AgentSession | None] = []
    state, session = counted(calls), AgentSession()
    assert state.get(session) is None
    assert state.get_or_initialise(session) == {"n": 1}
    assert state.get_or_initialise(session) == {"n": 1}
    assert calls == [session]
    assert session.state.to_json() == {"mine": {"n": 1}}


def test_without_a_session_the_state_is_made_each_time() -> None:
    state = counted([])
    assert [state.get_or_initialise(None), state.get_or_initialise(None)] == [{"n": 1}, {"n": 2}]
    state.save(None, {"n": 9})
    assert state.get(None) is None


def test_a_saved_state_is_what_is_read() -> None:
    state, session = counted([]), AgentSession()
    state.save(session, {"n": 9})
    assert state.get_or_initialise(session) == {"n": 9}


def test_a_state_of_null_is_made_anew() -> None:
    session = AgentSession(state=StateBag({"mine": None}))
    assert counted([]).get_or_initialise(session) == {"n": 1}


def test_states_are_apart_by_key_and_by_session() -> None:
    one, two = AgentSession(), AgentSession()
    first, second = counted([]), ProviderSessionState(lambda session: "text", "other", kind=str)
    assert first.get_or_initialise(one) == {"n": 1}
    assert second.get_or_initialise(one) == "text"
    assert first.get_or_initialise(two) == {"n": 2}
    assert one.state.to_json() == {"mine": {"n": 1}, "other": "text"}


def test_a_state_of_another_kind_is_an_error() -> None:
    with pytest.raises(TypeError, match="str, not dict"):
        counted([]).get_or_initialise(AgentSession(state=StateBag({"mine": "text"})))


def test_an_initial_value_and_a_key_are_needed() -> None:
    with pytest.raises(TypeError, match="initial"):
        ProviderSessionState(cast("type[str]", None), "k", kind=str)
    with pytest.raises(ValueError, match="blank"):
        ProviderSessionState(lambda session: "", " ", kind=str)
    with pytest.raises(TypeError, match="text"):
        ProviderSessionState(lambda session: "", cast("str", None), kind=str)
