import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from openai.types.chat import ChatCompletionMessageParam
from pydantic import TypeAdapter

from chathistory_core import EncodeError
from chathistory_core.formats import openai_chat
from chathistory_core.messages import (
    AIContent,
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    HostedVectorStoreContent,
    Origin,
    SourceAttribution,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    UnknownContent,
    UriContent,
    UsageContent,
    UsageDetails,
    WebSearchToolCallContent,
)

KEY = "openai-chat"
PIXEL = "data:image/png;base64,iVBORw0KGgo="
PARAM: TypeAdapter[Any] = TypeAdapter(ChatCompletionMessageParam)


def dump(*messages: ChatMessage) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", openai_chat.dump(messages))


def said(role: str, *contents: Content, **more: Any) -> list[dict[str, Any]]:
    return dump(ChatMessage(role=role, contents=contents, **more))


def changed(given: Any) -> list[dict[str, Any]]:
    """What is sent of messages that are no longer what the client gave."""
    return dump(*(message.with_origin(None) for message in openai_chat.load(given)))


def check_types(written: Sequence[dict[str, Any]]) -> None:
    """The SDK's own types take the messages, their lazily checked parts too."""
    for message in written:
        exhaust(PARAM.validate_python(message))


def exhaust(value: object) -> None:
    if isinstance(value, dict):
        exhaust(value.values())
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            exhaust(item)


def function(name: str, arguments: Any, call_id: str = "c", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


PARSED = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}", "parsed_arguments": {}}}

REQUESTS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "developer", "content": "Be brief.", "name": "boss"},
    {"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    {"role": "user", "content": ""},
    {"role": "user", "content": "a", "name": "ann"},
    {"role": "user", "content": [{"type": "text", "text": "a"}]},
    {"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]},
    {"role": "user", "content": [{"type": "text", "text": "a", "prompt_cache_breakpoint": {"mode": "explicit"}}]},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "a"},
            {"type": "image_url", "image_url": {"url": "https://x.test/a.png", "detail": "high"}},
            {"type": "image_url", "image_url": {"url": PIXEL}},
            {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,JVBERg=="}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
            {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
            {"type": "file", "file": {"filename": "a.png", "file_data": PIXEL}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,JVBERg=="}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "JVBERg=="}},
        ],
    },
    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
    {"role": "assistant", "content": "a"},
    {"role": "assistant", "content": "a", "refusal": None, "audio": None},
    {"role": "assistant", "content": None, "refusal": "no"},
    {"role": "assistant", "refusal": "no", "content": ""},
    {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "refusal", "refusal": "no"}]},
    {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    {"role": "assistant", "content": None, "audio": {"id": "audio_1"}},
    {"role": "assistant", "audio": {"id": "audio_1"}},
    {"role": "assistant", "content": None, "tool_calls": [function("f", "{}")]},
    {"role": "assistant", "content": "", "tool_calls": [function("f", "")]},
    {"role": "assistant", "tool_calls": [function("f", '{"a": 1}', "c1"), function("f", '{"broken', "c1")]},
    {
        "role": "assistant",
        "content": "a",
        "tool_calls": [
            function("f", '{"a":1.10}', "c1"),
            {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": '{"a":1}'}},
            {"id": "c3", "type": "custom", "custom": {"name": "sh", "input": "ls", "x": 1}},
            function("g", "{}", "c4", extra_content={"google": {"thought_signature": "abc"}}),
        ],
    },
    {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
    {"role": "assistant", "function_call": {"name": "f", "arguments": "", "x": 1}},
    {"role": "function", "name": "f", "content": "12:00"},
    {"role": "function", "name": "f", "content": None},
    {"role": "tool", "tool_call_id": "c", "content": "12:00"},
    {"role": "tool", "tool_call_id": "c", "content": ""},
    {"role": "tool", "tool_call_id": "c", "content": "[]"},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "12:00"}], "name": "f"},
    {"role": "assistant", "content": "4", "reasoning_content": "2 and 2", "prefix": True},
    {"role": "assistant", "content": "4", "reasoning": "2 and 2", "reasoning_details": [{"type": "reasoning.text"}]},
    {"role": "user", "content": []},
]
"""What the API takes, and members of vendors beside it."""

VENDORS: list[dict[str, Any]] = [
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": [{"type": "text", "text": "x"}]}]},
    {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]},
    {"role": "user", "content": [None, "text", {"type": "video_url", "video_url": {"url": "x"}}]},
    {"role": "critic", "content": "a", "weight": 0, "name": None},
    {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "later", "later": {"x": None}}]},
]
"""What only other servers take."""


@pytest.mark.parametrize("given", REQUESTS + VENDORS)
def test_what_nobody_changed_is_sent_as_it_came_in_its_own_order(given: dict[str, Any]) -> None:
    for order in (given, dict(reversed(given.items()))):
        (written,) = dump(*openai_chat.load(order))
        assert json.dumps(written) == json.dumps(order)


@pytest.mark.parametrize("given", REQUESTS + VENDORS)
def test_written_from_the_model_it_says_the_same(given: dict[str, Any]) -> None:
    assert changed(given) == [given]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"content": "a", "annotations": [{"type": "url_citation", "url_citation": {"url": "u"}}]}, {"content": "a"}),
        ({"content": None, "annotations": None}, {"content": None}),
        ({"content": "a", "function_call": None}, {"content": "a"}),
        ({"content": "a", "tool_calls": None}, {"content": "a"}),
        ({"content": "a", "tool_calls": []}, {"content": "a"}),
        ({"content": "{}", "parsed": {}}, {"content": "{}"}),
        (
            {"content": None, "audio": {"id": "a", "data": "UklGRg==", "expires_at": 1, "transcript": "hi"}},
            {"content": None, "audio": {"id": "a"}},
        ),
        (
            {"content": None, "tool_calls": [PARSED]},
            {"content": None, "tool_calls": [function("f", "{}")]},
        ),
    ],
)
def test_what_only_answers_have_is_stored_but_not_sent(given: dict[str, Any], sent: dict[str, Any]) -> None:
    given = {"role": "assistant", "refusal": None, **given}
    sent = {"role": "assistant", "refusal": None, **sent}
    (message,) = openai_chat.load(given)
    assert message.origin is not None
    assert json.loads(message.origin.payload) == given
    assert dump(message) == [sent]
    assert changed(given) == [sent]


def test_a_mark_is_not_sent_and_keeps_the_origin() -> None:
    (message,) = openai_chat.load({"content": "a", "role": "user", "x": 1})
    marked = message.with_source(SourceAttribution("ChatHistory", "p"))
    assert json.dumps(dump(marked)) == '[{"content": "a", "role": "user", "x": 1}]'
    assert dump(marked.with_origin(None)) == [{"role": "user", "content": "a", "x": 1}]


def test_nothing_but_its_own_leftovers_is_sent() -> None:
    properties = {"anthropic": {"cache": 1}, "x": 2, KEY: {"y": 3}}
    assert said("user", TextContent(text="a", additional_properties={"x": 1}), additional_properties=properties) == [
        {"role": "user", "content": "a", "y": 3}
    ]


def test_leftovers_never_stand_over_what_the_message_says() -> None:
    (message,) = openai_chat.load({"role": "assistant", "content": None, "refusal": None, "x": 1})
    copy = message.model_copy(
        update={"contents": [TextContent(text="a"), ErrorContent(message="no", error_code="refusal")]}
    )
    assert dump(copy) == [{"role": "assistant", "content": "a", "refusal": "no", "x": 1}]
    odd = {"content": "stale", "role": "system", "x": {"a": [1]}}
    assert said("user", TextContent(text="a"), additional_properties={KEY: odd}) == [
        {"role": "user", "content": "a", "x": {"a": [1]}}
    ]


def test_a_changed_copy_takes_its_leftovers_along() -> None:
    call = function("f", "{}", extra_content={"google": {"thought_signature": "abc"}})
    (message,) = openai_chat.load({"role": "assistant", "content": "a", "tool_calls": [call], "reasoning_details": [1]})
    copy = message.model_copy(update={"contents": message.contents[1:]})
    assert dump(copy) == [{"role": "assistant", "tool_calls": [call], "reasoning_details": [1]}]
    (asked,) = copy.contents
    other = {**call, "function": {"name": "f", "arguments": '{"x":1}'}}
    assert said("assistant", asked.model_copy(update={"arguments": {"x": 1}})) == [
        {"role": "assistant", "content": None, "tool_calls": [other]}
    ]


def test_what_the_caller_does_to_what_was_dumped_changes_nothing() -> None:
    given = {"role": "user", "content": [{"type": "text", "text": "a", "x": [1]}], "y": {"z": [1]}}
    (message,) = openai_chat.load(given)
    result = ChatMessage.tool("c", [{"type": "text", "text": "a"}])
    for kept in (message, message.with_origin(None), result):
        before = dump(kept)
        (mine,) = dump(kept)
        mine["content"][0]["text"] = "b"
        mine["content"].clear()
        mine.setdefault("y", {}).clear()
        assert dump(kept) == before


def test_messages_built_by_hand_are_what_the_sdk_takes() -> None:
    written = dump(
        ChatMessage.system("Be brief."),
        ChatMessage(role="developer", contents=[TextContent(text="a"), TextContent(text="b")]),
        ChatMessage(role="user", author_name="Ann Lee/x", contents=[TextContent(text="a"), DataContent(uri=PIXEL)]),
        ChatMessage(role="User", contents=[UriContent(uri="https://x.test/a.png", media_type="image/png")]),
        ChatMessage(
            role="user",
            contents=[
                DataContent(uri="data:audio/x-wav;base64,AAAA"),
                DataContent(uri="data:application/pdf;base64,JVBERg=="),
                DataContent(uri="data:text/plain;base64,YQ==", name="a.txt"),
                HostedFileContent(file_id="file-1", media_type="application/pdf"),
            ],
        ),
        ChatMessage.assistant("a"),
        ChatMessage(
            role="assistant",
            contents=[
                FunctionCallContent(call_id="c1", name="f", arguments={"x": [1, "é"]}),
                FunctionCallContent(call_id="c2", name="f", arguments_text="{ }"),
                FunctionCallContent(call_id="c3", name="f"),
            ],
        ),
        ChatMessage(
            role="tool",
            contents=[
                FunctionResultContent(call_id="c1", result="12:00"),
                FunctionResultContent(call_id="c2", result={"é": [None, True, 1.5]}),
                FunctionResultContent(call_id="c3"),
            ],
        ),
        ChatMessage(role="assistant", contents=[ErrorContent(message="no", error_code="Refusal")]),
        ChatMessage(role="assistant"),
    )
    assert written == [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": PIXEL}}],
            "name": "Ann_Lee_x",
        },
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]},
        {
            "role": "user",
            "content": [
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "file", "file": {"filename": "file.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
                {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,YQ=="}},
                {"type": "file", "file": {"file_id": "file-1"}},
            ],
        },
        {"role": "assistant", "content": "a"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [function("f", '{"x":[1,"é"]}', "c1"), function("f", "{ }", "c2"), function("f", "{}", "c3")],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12:00"},
        {"role": "tool", "tool_call_id": "c2", "content": '{"é":[null,true,1.5]}'},
        {"role": "tool", "tool_call_id": "c3", "content": ""},
        {"role": "assistant", "content": None, "refusal": "no"},
        {"role": "assistant", "content": ""},
    ]
    check_types(written)


def test_requests_written_from_the_model_are_what_the_sdk_takes() -> None:
    check_types(changed(REQUESTS))


def test_what_the_api_does_not_take_is_left_out() -> None:
    call = WebSearchToolCallContent(call_id="w")
    foreign: list[Content] = [
        TextReasoningContent(text="secret", protected_data="x"),
        ErrorContent(message="oops", error_code="500"),
        UsageContent(details=UsageDetails(total_token_count=1)),
        HostedVectorStoreContent(vector_store_id="v"),
        call,
        ToolApprovalRequestContent(request_id="r", tool_call=call),
        UriContent(uri="https://x.test/a.pdf", media_type="application/pdf"),
        UnknownContent(raw={"type": "text", "text": "secret"}),
        AIContent(additional_properties={"other": 1}),
    ]
    assert said("user", *foreign, TextContent(text="a"), message_id="m", created_at=datetime.now(UTC)) == [
        {"role": "user", "content": "a"}
    ]
    assert said("assistant", *foreign, author_name="ann") == []
    for role in ("assistant", "system", "developer"):
        assert said(role, TextContent(text="a"), DataContent(uri=PIXEL), HostedFileContent(file_id="f")) == [
            {"role": role, "content": "a"}
        ]


def test_several_results_in_one_message_are_several_messages() -> None:
    message = ChatMessage(
        role="tool",
        contents=[FunctionResultContent(call_id="c", result=1), FunctionResultContent(call_id="c", result=2)],
    )
    assert dump(message) == [
        {"role": "tool", "tool_call_id": "c", "content": "1"},
        {"role": "tool", "tool_call_id": "c", "content": "2"},
    ]


def test_nothing_stands_between_the_results_of_a_turn() -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}
    written = dump(
        ChatMessage(role="tool", contents=[FunctionResultContent(call_id="a", result="1"), DataContent(uri=PIXEL)]),
        *openai_chat.load({"role": "tool", "tool_call_id": "b", "content": "2"}),
        ChatMessage(role="user", contents=[TextContent(text="and?"), FunctionResultContent(call_id="c", result="3")]),
        ChatMessage.assistant("so"),
        ChatMessage(role="tool", contents=[TextContent(text="no id")]),
        ChatMessage(role="tool", contents=[TextContent(text="last"), FunctionResultContent(call_id="d", result="4")]),
    )
    assert written == [
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "c", "content": "3"},
        image,
        {"role": "user", "content": "and?"},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "no id"},
        {"role": "tool", "tool_call_id": "d", "content": "4"},
        {"role": "user", "content": "last"},
    ]


def test_an_assistant_calls_before_its_results() -> None:
    call, result = FunctionCallContent(call_id="c", name="f"), FunctionResultContent(call_id="c", result="1")
    assert said("assistant", result, call) == [
        {"role": "assistant", "content": None, "tool_calls": [function("f", "{}")]},
        {"role": "tool", "tool_call_id": "c", "content": "1"},
    ]


def test_a_transcript_whose_sound_is_gone_is_sent_as_text() -> None:
    audio = {"id": "a", "data": "UklGRg==", "transcript": "hello"}
    (message,) = openai_chat.load({"role": "assistant", "content": None, "audio": audio})
    assert dump(message.model_copy(update={"contents": message.contents[1:]})) == [
        {"role": "assistant", "content": "hello"}
    ]


def test_several_refusals_are_one() -> None:
    no = ErrorContent(message="no", error_code="Refusal")
    assert said("assistant", no, no) == [{"role": "assistant", "content": None, "refusal": "no\nno"}]


@pytest.mark.parametrize(("name", "sent"), [("a b<|>c\\d/e", "a_b_c_d_e"), ("é" * 70, "é" * 64), ("Ann", "Ann")])
def test_a_name_is_sent_in_the_characters_that_the_api_takes(name: str, sent: str) -> None:
    assert said("user", TextContent(text="a"), author_name=name) == [{"role": "user", "content": "a", "name": sent}]


@pytest.mark.parametrize("junk", [1, "x", [1], None, {"content": {"a": 1}}, {"type": 5}, {"function_call": 1}])
def test_odd_values_in_the_place_of_leftovers_break_nothing(junk: Any) -> None:
    properties = {KEY: junk}
    contents: list[Content] = [
        TextContent(text="a", additional_properties=properties),
        FunctionCallContent(call_id="c", name="f", additional_properties=properties),
        FunctionResultContent(call_id="c", result="r", additional_properties=properties),
        DataContent(uri="data:,x", additional_properties=properties),
        AIContent(additional_properties=properties),
        TextReasoningContent(text="t", additional_properties=properties),
    ]
    written = said("user", *contents, additional_properties=properties)
    assert [message["role"] for message in written] == ["tool", "user"]


def test_the_origin_of_another_format_is_not_sent() -> None:
    message = ChatMessage.user("a").with_origin(Origin("anthropic", b"{}"))
    assert dump(message) == [{"role": "user", "content": "a"}]


def test_what_is_no_message_is_a_type_error_that_does_not_show_it() -> None:
    for given, text in (
        ([ChatMessage.user("a"), {"role": "user", "content": "canary"}], "message 1 is dict: what is the client's"),
        (ChatMessage.user("canary"), "message 0 is tuple: "),
    ):
        with pytest.raises(TypeError, match=text) as caught:
            openai_chat.dump(given)  # type: ignore[arg-type] # what the test is about
        assert "canary" not in str(caught.value)


def test_no_messages_are_no_messages() -> None:
    assert dump() == []


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_could_not_be_stored_is_refused_before_the_model_is_asked(number: float) -> None:
    messages = [ChatMessage.user("q"), ChatMessage.tool("c", {"t": number})]
    with pytest.raises(EncodeError, match="message 1 cannot be stored: NaN or an infinity"):
        openai_chat.dump(messages)
