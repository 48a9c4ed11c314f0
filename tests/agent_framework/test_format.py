"""The format: the framework's objects through the store and through `ChatMessage`, and every message the other way."""

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_type_hints

import httpx2
import pytest
from agent_framework import AgentResponse, Content, Message
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from chathistory_core import DecodeError, EncodeError, StoredRecord
from chathistory_core.codec import MessageCodec
from chathistory_core.formats import agent_framework, chat_message
from chathistory_core.messages import (
    AIContent,
    ChatMessage,
    FunctionCallContent,
    FunctionResultContent,
    SourceAttribution,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
)

SHARED = Path(__file__).resolve().parents[2] / "../shared"
ORACLE = SHARED / "tools/dotnet-oracle/dotnet-oracle"
GOLDEN = Path(__file__).resolve().parents[1] / "golden"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)

CITATION: dict[str, Any] = {
    "type": "citation",
    "title": "A page",
    "url": "https://example.org/p",
    "file_id": "f1",
    "tool_name": "search",
    "snippet": "so it is",
    "annotated_regions": [{"type": "text_span", "start_index": 0, "end_index": 5}],
    "additional_properties": {"rank": 1},
}

CALL = Content.from_function_call("call_1", "get_time", arguments='{"zone": "UTC"}', id="fc_1")
MCP_CALL = Content.from_mcp_server_tool_call("mcp_1", "find", server_name="docs", arguments={"q": "x"})

CONTENTS = [
    Content.from_text("Grüße 🎉"),
    Content.from_text("", merge_mode="append"),
    Content.from_text("cited", annotations=[CITATION], additional_properties={"a": {"b": [1, None]}}),  # type: ignore[list-item] # what a client reads from JSON
    Content("text", text="x", annotations=[{"type": "citation"}, {"type": "footnote", "x": 1}]),  # type: ignore[typeddict-item,typeddict-unknown-key] # of a newer version
    Content("text", text="x", annotations=[]),
    Content.from_text_reasoning(text="hm", protected_data='[{"a": 1}]', id="r1"),
    Content.from_text_reasoning(protected_data="only"),
    Content("text_reasoning", text="", status="completed"),
    Content.from_data(b"\x00\x01", "image/png"),
    Content.from_uri("data:text/plain,hello%20there"),
    Content.from_uri("data:;base64,AA=="),
    Content("data", uri="data:image/png;base64,AA==", media_type="image/jpeg", name="a.png", file_id="f"),
    Content.from_uri("https://example.org/a.png", media_type="image/png"),
    Content("uri", uri="https://example.org/a"),
    Content.from_error(message="no", error_code="429", error_details="slow down"),
    Content("error"),
    CALL,
    Content.from_function_call("call_2", "none"),
    Content.from_function_call("call_3", "object", arguments={"b": 1, "a": [1.5, True, None]}),
    Content.from_function_call("call_4", "broken", arguments='{"a": ', exception="oops", status="incomplete"),
    Content.from_function_call("call_5", "hosted", hosted=True, server_name="s", informational_only=True),
    Content("function_call", name="no id", arguments=""),
    Content.from_function_result("call_1", result="12:00", id="fc_1"),
    Content.from_function_result("call_1", result={"time": "12:00", "n": 1.0}),
    Content.from_function_result("call_1", result=None, exception="KeyError('k')"),
    Content.from_function_result("call_1", result=[Content.from_text("a"), Content.from_data(b"p", "image/png")]),
    Content.from_function_result("call_1", result=[]),
    Content("function_result", call_id="call_1", result={"plain": [1, 2.0]}),
    Content("function_result", call_id="call_1", result="one", items=[Content.from_text("another")]),
    Content("function_result", call_id="call_1"),
    Content.from_usage({"input_token_count": 1, "output_token_count": 2, "total_token_count": 3}),
    Content.from_usage(
        {"cache_read_input_token_count": 4, "reasoning_output_token_count": 5, "openai.audio": 6, "x": None}  # type: ignore[typeddict-unknown-key] # a vendor's own counts
    ),
    Content("usage", usage_details={}),
    Content.from_hosted_file("file_1", media_type="text/plain", name="a.txt"),
    Content.from_hosted_vector_store("vs_1"),
    Content.from_code_interpreter_tool_call(call_id="ci_1", inputs=[Content.from_text("print(1)")], status="done"),
    Content.from_code_interpreter_tool_call(),
    Content.from_code_interpreter_tool_result(call_id="ci_1", outputs=[Content.from_text("1"), Content("error")]),
    Content.from_image_generation_tool_call(image_id="ig_1"),
    Content.from_image_generation_tool_result(image_id="ig_1", outputs=Content.from_data(b"i", "image/png")),
    Content.from_image_generation_tool_result(outputs=[Content.from_uri("data:image/png;base64,AA==")]),
    MCP_CALL,
    Content.from_mcp_server_tool_call("mcp_2", "find", arguments='{"q":  "x"}'),
    Content.from_mcp_server_tool_call("", "", arguments="no object"),
    Content.from_mcp_server_tool_result("mcp_1", output=[Content.from_text("found"), {"type": "text", "text": "raw"}]),
    Content.from_mcp_server_tool_result("mcp_1", output={"any": ["JSON", None]}),
    Content.from_mcp_server_tool_result("mcp_1", output="text"),
    Content.from_mcp_server_tool_result("mcp_1", output=[None, 1, [2.0]]),
    Content.from_search_tool_call("ws_1", tool_name="web_search", arguments={"type": "search", "query": "weather"}),
    Content.from_search_tool_call("ws_2", tool_name="web_search", arguments={"queries": ["a", "b"]}),
    Content.from_search_tool_call("fs_1", tool_name="file_search", arguments='{"queries": ["a"]}', status="completed"),
    Content.from_search_tool_result("ws_1", tool_name="web_search", result={"n": 1}, items=[Content.from_text("it")]),
    Content.from_search_tool_result("fs_1", tool_name="file_search", result=["a"]),
    Content.from_shell_tool_call(call_id="sh_1", commands=["ls", "pwd"], timeout_ms=1000, max_output_length=10),
    Content.from_shell_tool_result(
        call_id="sh_1", outputs=[Content.from_shell_command_output(stdout="a", stderr="", exit_code=0, timed_out=False)]
    ),
    Content.from_shell_command_output(stdout="alone"),
    Content(
        "computer_tool_call",
        id="cu_1",
        call_id="call_9",
        actions=[{"type": "click", "x": 1}],
        pending_safety_checks=[{"id": "s", "code": "c", "message": "m"}],
        user_input_request=True,
        informational_only=True,
    ),
    Content(
        "computer_tool_result",
        call_id="call_9",
        screenshot=Content.from_data(b"s", "image/png"),
        acknowledged_safety_checks=[{"id": "s"}],
    ),
    Content.from_function_approval_request("fc_1", CALL),
    Content.from_function_approval_request("m", MCP_CALL, additional_properties={"why": "asked"}),
    Content.from_function_approval_response(approved=True, id="fc_1", function_call=CALL),
    Content.from_function_approval_response(approved=False, id="x", function_call=Content.from_text("no call")),
    Content("function_approval_request", id="without a call"),
    Content.from_oauth_consent_request("https://example.org/consent"),
    Content("hologram", text="of a newer version"),  # type: ignore[arg-type] # a type that nobody knows
    Content.from_text("x", additional_properties={"agent-framework": 1, "chat-message": {"createdAt": "never"}}),
    Content.from_text("x", additional_properties={"_attribution": {"source_id": "rag"}, "A": 1, "a": 2}),
]


def store(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What a backend gives back of them."""
    codec = MessageCodec((chat_message, agent_framework))

    async def there_and_back() -> list[ChatMessage]:
        records = await codec.encode("k", messages)
        stored = [
            StoredRecord(record.payload, record.format, place, "t", WHEN) for place, record in enumerate(records, 1)
        ]
        return [message for group in await codec.decode("k", stored) for message in group]

    return asyncio.run(there_and_back())


def as_model(message: ChatMessage) -> ChatMessage:
    """The message as the canonical format alone carries it."""
    (read,) = chat_message.decode(chat_message.encode(message))
    return read.with_origin(None)


def text(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def one(content: Content) -> Message:
    return Message("assistant", [content])


MESSAGES = [
    *map(one, CONTENTS),
    Message("user", ["Hello", "there"]),
    Message("system", [], additional_properties={"k": [1, {"a": None}], "agent-framework": {"role": "user"}}),
    Message("assistant", CONTENTS, author_name="Ann", message_id="m1"),
    Message("developer", ["x"], author_name=" ", message_id=""),
    Message("tool", [Content.from_function_result("c", result="r")], additional_properties={"_excluded": True}),
]


def test_every_kind_of_content_of_the_framework_is_among_those_tested() -> None:
    kinds = set(get_args(get_type_hints(Content.__init__)["type"]))
    assert len(kinds) > 20
    assert kinds - {content.type for content in CONTENTS} == set()


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: "-".join(one.type for one in message.contents)[:40])
def test_the_framework_gets_its_own_object_back(message: Message) -> None:
    given = message.to_dict()
    stored = store(agent_framework.load(message))
    assert text(agent_framework.dump(stored)) == text([given])
    assert text(Message.from_dict(agent_framework.dump(stored)[0]).to_dict()) == text(given)
    assert [one.origin.format for one in stored if one.origin is not None] == ["agent-framework"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: "-".join(one.type for one in message.contents)[:40])
def test_the_framework_gets_an_equal_object_back_through_the_model(message: Message) -> None:
    (loaded,) = agent_framework.load(message)
    (written,) = agent_framework.dump([as_model(loaded)])
    given = message.to_dict()
    for content in given["contents"]:  # a null in an annotation is nothing to the framework
        assert isinstance(content, dict)
    assert text(written) == text(given)


def test_what_the_framework_says_reads_as_what_it_is() -> None:
    call, result, thought = agent_framework.load(
        [
            one(CALL),
            one(Content.from_function_result("call_1", result="12:00")),
            one(Content.from_text_reasoning(text="hm")),
        ]
    )
    assert isinstance(call.contents[0], FunctionCallContent)
    assert (call.contents[0].call_id, call.contents[0].name) == ("call_1", "get_time")
    assert call.contents[0].arguments == {"zone": "UTC"}
    assert isinstance(result.contents[0], FunctionResultContent)
    assert (result.contents[0].call_id, result.contents[0].result) == ("call_1", "12:00")
    assert isinstance(thought.contents[0], TextReasoningContent)
    (request,) = agent_framework.load(one(Content.from_function_approval_request("fc_1", CALL)))
    assert isinstance(request.contents[0], ToolApprovalRequestContent)
    assert request.contents[0].request_id == "fc_1"
    assert isinstance(request.contents[0].tool_call, FunctionCallContent)


def test_a_changed_copy_says_what_was_changed_and_keeps_the_rest() -> None:
    call, result = agent_framework.load(
        [
            one(Content.from_function_call("c", "f", arguments='{"a":  1}', id="fc", server_name="s")),
            one(Content.from_function_result("c", result=[Content.from_text("long"), Content.from_data(b"x", "a/b")])),
        ]
    )
    changed = [
        message.model_copy(update={"contents": [message.contents[0].model_copy(update=update)]})
        for message, update in ((call, {"arguments": {"a": 2}}), (result, {"result": "short"}))
    ]
    written_call, written_result = (written["contents"][0] for written in agent_framework.dump(changed))
    assert written_call["arguments"] == {"a": 2}
    assert (written_call["id"], written_call["server_name"], written_call["hosted"]) == ("fc", "s", False)
    assert written_result["result"] == "short"
    assert [item["text"] for item in written_result["items"]] == ["short"]


def test_json_text_a_dict_a_list_and_a_response_give_the_same_messages() -> None:
    messages = [Message("user", ["a"]), Message("assistant", ["b"])]
    dicts = [message.to_dict() for message in messages]
    expected = agent_framework.load(messages)
    assert agent_framework.load(dicts) == expected
    assert agent_framework.load(json.dumps(dicts)) == expected
    assert agent_framework.load([json.dumps(one) for one in dicts]) == expected
    assert agent_framework.load([json.dumps(one).encode() for one in dicts]) == expected
    assert agent_framework.load(AgentResponse(messages=messages)) == expected


def test_text_is_stored_as_it_was_given() -> None:
    given = '{"role": "user",  "contents": ["hi"], "type": "message", "n": 1.10}'
    (message,) = store(agent_framework.load(given))
    assert message.origin is not None
    assert message.origin.payload == given.encode()
    assert message == ChatMessage.user("hi").model_copy(update={"additional_properties": message.additional_properties})


def test_older_names_and_shapes_are_read() -> None:
    (message,) = agent_framework.load({"type": "chat_message", "role": "user", "contents": ["hi", None]})
    assert message.text == "hi"
    (written,) = agent_framework.dump([message])
    assert Message.from_dict(written).text == "hi"


def test_members_and_kinds_of_a_newer_version_are_kept() -> None:
    given = {
        "type": "message",
        "role": "assistant",
        "contents": [
            {"type": "text", "text": "hi", "glow": {"x": [1]}, "additional_properties": {}},
            {"type": "hologram", "shape": "cube", "additional_properties": {}},
        ],
        "mood": "fine",
        "additional_properties": {},
    }
    (message,) = agent_framework.load(given)
    assert message.text == "hi"
    assert text(agent_framework.dump([message])) == text([given])
    assert text(agent_framework.dump([as_model(message)])) == text([given])


def test_what_another_client_left_and_marks_of_source_are_not_sent() -> None:
    message = ChatMessage.user("hi").model_copy(update={"additional_properties": {"mine": 1}})
    marked = message.with_source(SourceAttribution("ChatHistory", "x"))
    (written,) = agent_framework.dump([marked])
    assert written["additional_properties"] == {"mine": 1}


def test_nobody_elses_change_shows_in_what_was_loaded_or_dumped() -> None:
    message = Message("user", [Content.from_function_call("c", "f", arguments={"a": [1]})])
    loaded = agent_framework.load(message)
    arguments = message.contents[0].arguments
    assert isinstance(arguments, dict)
    arguments["a"].append(2)
    first = agent_framework.dump(loaded)
    first[0]["contents"][0]["arguments"]["a"].append(3)
    assert agent_framework.dump(loaded)[0]["contents"][0]["arguments"] == {"a": [1]}
    changed = [loaded[0].with_origin(None)]
    agent_framework.dump(changed)[0]["contents"][0]["arguments"]["a"].append(3)
    assert agent_framework.dump(changed)[0]["contents"][0]["arguments"] == {"a": [1]}


@pytest.mark.parametrize(
    "given",
    [
        "no JSON: secret",
        '{"type": "message", "contents": ["secret"]}',
        '{"role": " ", "contents": ["secret"]}',
        '{"role": "user", "contents": {"secret": 1}}',
        '{"type": "agent_session", "role": "user", "secret": 1}',
        '{"role": "user", "contents": ["secret"], "n": NaN}',
        '["secret"]',
        b"\xff secret",
        '{"role": "user", "contents": ' + "[" * 300 + '"secret"' + "]" * 300 + "}",
    ],
)
def test_what_is_no_message_is_refused_without_showing_it(given: str | bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        agent_framework.load(given)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    payload = given if isinstance(given, bytes) else given.encode()
    with pytest.raises(DecodeError):
        agent_framework.decode(payload)


@pytest.mark.parametrize(
    "content",
    [
        Content.from_function_call("c", "f", arguments={"secret": float("nan")}),
        Content.from_text("\ud83d secret"),
    ],
)
def test_what_no_record_can_hold_is_refused_without_showing_it(content: Content) -> None:
    with pytest.raises(EncodeError) as caught:
        agent_framework.load([Message("user", ["fine"]), one(content)])
    if content.type == "text":
        with pytest.raises(EncodeError):
            agent_framework.load(['{"role": "user", "contents": ["fine"]}', one(content).to_json()])
    assert str(caught.value.path).startswith("1")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_value_that_is_no_json_is_refused_by_its_type() -> None:
    with pytest.raises(EncodeError, match="datetime") as caught:
        agent_framework.load({"role": "user", "contents": ["secret"], "at": {"secret": WHEN}})
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_what_is_neither_message_nor_text_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="int"):
        agent_framework.load(7)  # type: ignore[arg-type] # what the test is about
    with pytest.raises(TypeError, match="dump"):
        agent_framework.dump([Message("user", ["hi"])])  # type: ignore[list-item] # what the test is about


def golden() -> list[ChatMessage]:
    """Every message that .NET wrote."""
    messages: list[ChatMessage] = []
    for line in (GOLDEN / "writing.jsonl").read_text(encoding="utf-8").splitlines():
        written = json.loads(line).get("agents")
        if written is not None:
            messages += chat_message.load(written)
    return messages


def test_every_message_that_dotnet_wrote_survives_the_framework() -> None:
    messages = golden()
    assert len(messages) > 50
    for message in messages:
        (written,) = agent_framework.dump([message])
        framework_object = Message.from_dict(json.loads(json.dumps(written)))
        (back,) = agent_framework.load(framework_object)
        assert chat_message.encode(back) == chat_message.encode(message)


def test_an_executed_round_of_dotnet_is_a_round_of_the_framework() -> None:
    call = FunctionCallContent(call_id="c", name="f", arguments=None, informational_only=True)
    result = FunctionResultContent(call_id="c", result={"time": [1, None]})
    written = agent_framework.dump(
        [ChatMessage(role="assistant", contents=[call]), ChatMessage(role="tool", contents=[result])]
    )
    asked, answered = (Message.from_dict(one).contents[0] for one in written)
    assert (asked.call_id, asked.name, asked.parse_arguments()) == ("c", "f", {})
    assert (answered.call_id, answered.result) == ("c", '{"time":[1,null]}')


def test_a_content_that_the_framework_has_no_kind_for_is_out_of_its_sight_and_not_lost() -> None:
    strange = AIContent(additional_properties={"x": 1})
    message = ChatMessage(role="user", contents=[strange, TextContent(text="hi"), strange])
    (written,) = agent_framework.dump([message])
    assert [content["type"] for content in written["contents"]] == ["text"]
    (back,) = agent_framework.load(Message.from_dict(written))
    assert back == message


class Oracle:
    """The serializer of .NET: a message's JSON a line in, its verdict a line out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def takes(self, message: ChatMessage) -> bool:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(chat_message.encode(message).decode() + "\n")
        self._process.stdin.flush()
        return bool(json.loads(self._process.stdout.readline())["ok"])


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    if not ORACLE.exists():
        pytest.skip("the .NET oracle is not here")
    with subprocess.Popen(
        [ORACLE, "check"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        yield Oracle(process)
        assert process.stdin is not None
        process.stdin.close()


def test_dotnet_takes_whatever_the_framework_said(oracle: Oracle) -> None:
    refused = [message.to_dict() for message in MESSAGES if not oracle.takes(agent_framework.load(message)[0])]
    assert refused == []


generated = settings(
    max_examples=int(os.environ.get("EXAMPLES", "40")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-9, 9),
    st.just(2**63),
    st.sampled_from([1.0, -0.0, 2.5]),
    st.sampled_from(["", "x", "{}", "ü🎉", '{"a": 1}']),
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["a", "A", "type", "text", "$type", "agent-framework", "chat-message"]), inner, max_size=2
        )
    ),
    max_leaves=4,
)
own = st.dictionaries(
    st.sampled_from(["a", "A", "agent-framework", "chathistory.extra", "_attribution"]),
    values.filter(lambda value: value is not None),
    max_size=2,
)
KINDS = sorted({content.type for content in CONTENTS} | {"hologram"})
MEMBERS = sorted({key for content in CONTENTS for key in content.to_dict()} - {"type", "additional_properties"})
contents = st.recursive(
    st.sampled_from(CONTENTS).map(Content.to_dict),
    lambda inner: st.builds(
        lambda kind, members, held, properties: {
            "type": kind,
            **{key: value for key, value in {**members, **held}.items() if value is not None},
            "additional_properties": properties,
        },
        st.sampled_from(KINDS),
        st.dictionaries(st.sampled_from([*MEMBERS, "glow"]), values, max_size=5),
        st.fixed_dictionaries(
            {},
            optional={
                "outputs": st.lists(inner, max_size=2),
                "function_call": inner,
                "output": inner,
                "items": st.lists(inner, max_size=2),
            },
        ),
        own,
    ),
    max_leaves=3,
)
dicts = st.builds(
    lambda role, inside, members, properties: {
        "type": "message",
        "role": role,
        "contents": inside,
        **{key: value for key, value in members.items() if value is not None},
        "additional_properties": properties,
    },
    st.sampled_from(["user", "assistant", "Tool"]),
    st.lists(contents, max_size=2),
    st.dictionaries(st.sampled_from(["author_name", "message_id", "glow"]), values, max_size=2),
    own,
)


@generated
@given(dicts)
def test_whatever_the_framework_may_write_survives_the_model(given: dict[str, Any]) -> None:
    (message,) = agent_framework.load(given)
    assert text(agent_framework.dump([message])) == text([given])
    assert text(agent_framework.dump([as_model(message)])) == text([given])


@generated
@given(dicts)
def test_whatever_the_framework_may_write_is_taken_by_dotnet(oracle: Oracle, given: dict[str, Any]) -> None:
    assert oracle.takes(agent_framework.load(given)[0])


def strategies() -> ModuleType:
    """The messages that the canonical format is tested with."""
    path = Path(__file__).resolve().parents[1] / "formats/test_chat_message_generated.py"
    spec = spec_from_file_location("generated_chat_messages", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


chat_messages = strategies()


@generated
@given(chat_messages.messages)
def test_every_message_survives_the_framework(message: ChatMessage) -> None:
    expected = chat_messages.encoded(message)
    (written,) = agent_framework.dump([message])
    framework_object = Message.from_dict(json.loads(json.dumps(written)))
    (back,) = agent_framework.load(framework_object)
    assert hash(chat_message.encode(back)) == hash(expected)


TRACES = {
    OpenAIChatCompletionClient: "openai_chat/agentframework_chatcompletions_traces.json",
    OpenAIChatClient: "openai_responses/agentframework_conversations_traces.json",
}


def recorded(file: str) -> list[tuple[str, bool]]:
    """The answers of a real server in the file, and whether each is a stream."""
    items = json.loads((SHARED / "data" / file).read_text(encoding="utf-8"))["items"].values()
    whole = [one for one in items if isinstance(one, dict) and one.get("object") in ("chat.completion", "response")]
    streamed = [one for one in items if isinstance(one, str) and "data: {" in one]
    return [(json.dumps(one), False) for one in whole] + [(one, True) for one in streamed]


async def answered(
    kind: type[OpenAIChatClient] | type[OpenAIChatCompletionClient], body: str, *, stream: bool
) -> list[Message]:
    """What the framework's client makes of the answer."""
    media_type = "text/event-stream" if stream else "application/json"
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200, headers={"content-type": media_type}, text=body))
    async with AsyncOpenAI(
        api_key="k", base_url="http://model.test/v1", http_client=DefaultAsyncHttpxClient(transport=transport)
    ) as server:
        client = kind("model", async_client=server)
        question = [Message("user", ["?"])]
        if stream:
            response = await client.get_response(question, stream=True).get_final_response()
        else:
            response = await client.get_response(question)
        return list(response.messages)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared folder of real conversations is not beside the project")
@pytest.mark.parametrize("kind", TRACES)
def test_what_clients_make_of_real_answers_survives(
    kind: type[OpenAIChatClient] | type[OpenAIChatCompletionClient],
) -> None:
    answers = recorded(TRACES[kind])
    assert {stream for _, stream in answers} == {False, True}
    for body, stream in answers:
        messages = asyncio.run(answered(kind, body, stream=stream))
        assert messages
        given = [message.to_dict() for message in messages]
        loaded = agent_framework.load(messages)
        assert text(agent_framework.dump(store(loaded))) == text(given)
        assert text(agent_framework.dump([as_model(message) for message in loaded])) == text(given)
        assert [message.text for message in loaded] == [message.text for message in messages]
