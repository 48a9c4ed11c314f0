"""One conversation of two languages, through the service."""

import asyncio
import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import Agent, AgentSession, Content, Message, tool

from chathistory_core.faces.agent_framework import StoredHistoryProvider

ORACLE = Path(__file__).resolve().parents[2] / "../shared/tools/dotnet-oracle/dotnet-oracle"

CALL = Content.from_function_call("call_1", "get_time", arguments="{}")
THOUGHT = Content.from_text_reasoning(text="I look at the clock", protected_data="sig", id="r1")
IMAGE = Content.from_uri("https://example.org/clock.png", media_type="image/png")

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="the .NET oracle is not here")


@tool(approval_mode="never_require")
def get_time() -> str:
    """The time."""
    return "12:00"


def dotnet(*arguments: str, given: str | None = None) -> list[str]:
    """The lines that the .NET side prints; fails where it refuses anything."""
    found = subprocess.run([ORACLE, *arguments], input=given, capture_output=True, text=True, encoding="utf-8")
    assert found.returncode == 0, found.stderr
    return found.stdout.splitlines()


async def continued(url: str, state: Mapping[str, Any], clock: Any) -> list[Message]:
    """A turn of the Python agent in the conversation that the state names; the conversation as it reads it then."""
    async with StoredHistoryProvider(url) as history:
        session = AgentSession.from_dict({"session_id": "mine", "state": dict(state)})
        agent = Agent(clock, name="Clock", tools=[get_time], context_providers=[history])
        await agent.run([Message("user", ["And now?", IMAGE])], session=session)
        return await history.get_messages("mine", state=session.state[history.source_id])


def calls_and_results(messages: Sequence[Message]) -> tuple[list[str | None], list[str | None]]:
    contents = [content for message in messages for content in message.contents]
    return (
        [content.call_id for content in contents if content.type == "function_call"],
        [content.call_id for content in contents if content.type == "function_result"],
    )


def test_dotnet_and_python_go_on_with_one_conversation_in_turn(service: str, model: Callable[..., Any]) -> None:
    (text,) = dotnet("session", service)
    state = json.loads(text)["stateBag"]
    key = state["RemoteChatHistoryProvider"]["externalConversationKey"]
    expected = 4
    for _ in range(2):
        clock = model([THOUGHT, CALL], ["It is 12:00"])
        messages = asyncio.run(continued(service, state, clock))
        expected += 4
        assert len(messages) == expected
        calls, results = calls_and_results(clock.seen[-1])
        assert calls == results  # the model saw whole rounds, those of .NET too
        assert len(calls) > 1
        read = [json.loads(line) for line in dotnet("read", service, key)]
        assert [message["role"] for message in read] == [message.role for message in messages]
        resumed = dotnet("resume", service, given=text)
        expected += 2
        assert resumed[0].split() == [key, str(expected)]
        text = resumed[1]
    kinds = {content["$type"] for line in dotnet("read", service, key) for content in json.loads(line)["contents"]}
    assert kinds == {"text", "uri", "reasoning", "functionCall", "functionResult"}


def test_what_the_python_agent_stored_dotnet_reads_as_the_same_content(service: str, model: Callable[..., Any]) -> None:
    state = {"RemoteChatHistoryProvider": {"externalConversationKey": "ann"}}
    asyncio.run(continued(service, state, model([THOUGHT, CALL], ["It is 12:00"])))
    user, call, result, answer = (json.loads(line) for line in dotnet("read", service, "ann"))
    assert user["contents"][1] == {"$type": "uri", "uri": "https://example.org/clock.png", "mediaType": "image/png"}
    assert call["contents"][0]["protectedData"] == "sig"
    assert (call["contents"][1]["name"], call["contents"][1]["callId"]) == ("get_time", "call_1")
    assert call["contents"][1]["arguments"] == {}
    assert (result["role"], result["contents"][0]["result"]) == ("tool", "12:00")
    assert (answer["authorName"], answer["contents"][0]["text"]) == ("Clock", "It is 12:00")
