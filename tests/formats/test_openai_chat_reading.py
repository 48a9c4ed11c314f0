import json
from typing import Any

import pytest

from chathistory_core import DecodeError, EncodeError
from chathistory_core.formats import openai_chat
from chathistory_core.messages import (
    AIAnnotation,
    AIContent,
    ChatMessage,
    CitationAnnotation,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    TextContent,
    TextReasoningContent,
    TextSpanAnnotatedRegion,
    UriContent,
)

KEY = "openai-chat"
PIXEL = "data:image/png;base64,iVBORw0KGgo="


def one(given: Any) -> ChatMessage:
    (message,) = openai_chat.load(given)
    return message


def function(name: str, arguments: Any, call_id: str = "call_1", **more: Any) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def assistant(**members: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, **members}


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant"])
def test_text_is_one_text_and_the_role_stays_what_it_is(role: str) -> None:
    message = one({"role": role, "content": "hé", "name": "ann"})
    assert message == ChatMessage(role=role, contents=[TextContent(text="hé")], author_name="ann")
    assert str(message.role) == role


def test_the_origin_is_the_compact_text_of_the_object_in_its_own_order() -> None:
    message = one({"content": "zażółć 😀\u2028", "role": "user"})
    assert message.origin is not None
    assert message.origin.format == "openai-chat"
    assert message.origin.payload == '{"content":"zażółć 😀\u2028","role":"user"}'.encode()
    assert (message.origin.index, message.origin.count) == (0, 1)


@pytest.mark.parametrize("kind", [str, str.encode])
def test_text_that_is_given_is_the_origin_byte_for_byte(kind: Any) -> None:
    text = ' {"role": "user",\n "content": "\\u00e9", "score": 1.10, "role": "user"} '
    message = one(kind(text))
    assert message.origin is not None
    assert message.origin.payload == text.encode()
    assert message.text == "é"


def test_each_message_of_a_list_in_text_keeps_its_own_stretch_of_the_text() -> None:
    text = ' [ {"role":"user", "content":"a", "n":1.10} ,\n{"role":"user","content":"]"}\t] '
    messages = openai_chat.load(text)
    assert [message.origin.payload for message in messages if message.origin] == [
        b'{"role":"user", "content":"a", "n":1.10}',
        b'{"role":"user","content":"]"}',
    ]
    assert openai_chat.load("[]") == []


def test_a_list_may_hold_dicts_texts_and_bytes() -> None:
    messages = openai_chat.load(
        [{"role": "user", "content": "a"}, '{"role":"user","content":"b"}', b'[{"role":"user","content":"c"}]']
    )
    assert [message.text for message in messages] == ["a", "b", "c"]


def test_a_request_gives_its_messages_and_a_response_the_message_of_its_choice() -> None:
    request = {"model": "m", "messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}
    response = {"id": "chatcmpl-1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "c"}}]}
    for given in ([request, response], [json.dumps(request), json.dumps(response)]):
        messages = openai_chat.load(given)
        assert [message.text for message in messages] == ["a", "b", "c"]
        assert messages[2].origin is not None
        assert messages[2].origin.payload == b'{"role":"assistant","content":"c"}'


def test_null_absent_and_empty_content_are_three_things() -> None:
    null, absent, empty = (
        one({"role": "assistant", "tool_calls": [function("f", "{}")], **content})
        for content in ({"content": None}, {}, {"content": ""})
    )
    assert len({null, absent, empty}) == 3
    assert empty.contents[0] == TextContent(text="")
    assert len(null.contents) == len(absent.contents) == 1


def test_a_text_a_list_of_it_and_an_empty_list_are_three_things() -> None:
    text, listed, nothing = (
        one({"role": "user", "content": content}) for content in ("a", [{"type": "text", "text": "a"}], [])
    )
    assert len({text, listed, nothing}) == 3
    assert text.contents == listed.contents


def test_parts_are_contents_in_their_order() -> None:
    message = one(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
                {"type": "image_url", "image_url": {"url": PIXEL}},
                {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                {"type": "input_audio", "input_audio": {"data": "BBBB", "format": "mp3"}},
                {"type": "file", "file": {"file_id": "file-1"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
            ],
        }
    )
    assert list(message.contents) == [
        TextContent(text="look"),
        UriContent(uri="https://x.test/a.png", media_type="image/*"),
        DataContent(uri=PIXEL),
        DataContent(uri="data:audio/wav;base64,AAAA"),
        DataContent(uri="data:audio/mpeg;base64,BBBB"),
        HostedFileContent(file_id="file-1"),
        DataContent(uri="data:application/pdf;base64,JVBERg==", name="a.pdf"),
    ]


def test_what_a_part_holds_beyond_the_model_is_left_over_in_its_own_shape() -> None:
    message = one(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "image_url", "image_url": {"url": PIXEL, "detail": "low"}},
            ],
        }
    )
    assert list(message.contents) == [
        TextContent(text="a", additional_properties={KEY: {"cache_control": {"type": "ephemeral"}}}),
        DataContent(uri=PIXEL, additional_properties={KEY: {"image_url": {"detail": "low"}}}),
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "video_url", "video_url": {"url": "https://x.test/a.mp4"}},
        {"type": "text", "text": 1},
        {"type": "image_url", "image_url": "https://x.test/a.png"},
        {"type": "file", "file": {"file_data": "JVBERg=="}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "x-wav"}},
        {"no": "type"},
        {"type": ["text"], "text": "a"},
        "text",
        None,
        [],
    ],
)
def test_a_part_of_no_known_kind_is_kept_whole(part: Any) -> None:
    message = one({"role": "user", "content": [{"type": "text", "text": "a"}, part]})
    assert message.contents[1] == AIContent(additional_properties={KEY: {"content": part}})


def test_a_refusal_is_an_error_as_a_member_and_as_a_part() -> None:
    member = one(assistant(refusal="no"))
    part = one({"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]})
    for message in (member, part):
        (content,) = message.contents
        assert isinstance(content, ErrorContent)
        assert (content.message, content.error_code) == ("no", "Refusal")
    assert member != part


def test_calls_keep_their_order_and_the_text_of_their_arguments() -> None:
    message = one(
        assistant(
            content="wait",
            tool_calls=[
                function("a", '{"x": 1.10}', "c1"),
                function("b", "", "c2"),
                function("c", '{"broken', "c3"),
                function("d", "[1]", "c1"),
            ],
        )
    )
    text, *calls = message.contents
    assert text == TextContent(text="wait")
    assert calls == [
        FunctionCallContent(call_id="c1", name="a", arguments_text='{"x": 1.10}'),
        FunctionCallContent(call_id="c2", name="b", arguments_text=""),
        FunctionCallContent(call_id="c3", name="c", arguments_text='{"broken'),
        FunctionCallContent(call_id="c1", name="d", arguments_text="[1]"),
    ]


def test_what_a_call_lacks_is_empty_and_arguments_that_are_an_object_are_read() -> None:
    message = one(
        assistant(
            tool_calls=[
                {"function": {"name": "a", "arguments": {"x": 1}}},
                {"id": None, "type": None, "function": {"name": "b"}},
            ]
        )
    )
    assert list(message.contents) == [
        FunctionCallContent(call_id="", name="a", arguments={"x": 1}),
        FunctionCallContent(call_id="", name="b"),
    ]


def test_a_vendors_members_of_a_call_are_left_over() -> None:
    signature = {"google": {"thought_signature": "abc"}}
    call = function("a", "{}", index=0, extra_content=signature)
    call["function"]["strict"] = True
    (content,) = one(assistant(tool_calls=[call])).contents
    assert isinstance(content, FunctionCallContent)
    assert content.additional_properties == {
        KEY: {"index": 0, "extra_content": signature, "function": {"strict": True}}
    }


def test_a_custom_call_is_a_call_with_free_text() -> None:
    message = one(assistant(tool_calls=[{"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}]))
    (content,) = message.contents
    assert content == FunctionCallContent(
        call_id="c", name="sh", arguments_text="ls -l", additional_properties={KEY: {"type": "custom"}}
    )
    assert isinstance(content, FunctionCallContent)
    assert content.arguments is None


@pytest.mark.parametrize(
    "call",
    [
        {"id": "c", "type": "web_search", "web_search": {}},
        {"id": 1, "type": "function", "function": {"name": "a", "arguments": "{}"}},
        {"id": "c", "type": "function", "function": {"arguments": "{}"}},
        {"id": "c", "type": "function", "function": {"name": "a", "arguments": [1]}},
        {"id": "c", "type": "function", "function": None},
        "call",
        None,
    ],
)
def test_a_call_of_no_known_kind_is_kept_whole(call: Any) -> None:
    assert list(one(assistant(tool_calls=[call])).contents) == [
        AIContent(additional_properties={KEY: {"tool_calls": call}})
    ]


def test_results_keep_text_and_parts() -> None:
    text, parts, nothing = (
        one({"role": "tool", "tool_call_id": "c", "content": content})
        for content in ("12:00", [{"type": "text", "text": "12:00"}], None)
    )
    assert text == ChatMessage.tool("c", "12:00")
    assert parts == ChatMessage.tool("c", [{"type": "text", "text": "12:00"}])
    assert nothing == ChatMessage.tool("c", None)


def test_a_result_may_lack_its_id_and_bring_members_of_its_own() -> None:
    message = one({"role": "tool", "content": "x", "name": "get_time", "cache": {"a": 1}})
    assert list(message.contents) == [
        FunctionResultContent(
            call_id="", result="x", additional_properties={KEY: {"name": "get_time", "cache": {"a": 1}}}
        )
    ]
    assert message.author_name is None


def test_a_legacy_call_and_its_result_meet_by_the_name() -> None:
    call, result = openai_chat.load(
        [
            assistant(function_call={"name": "get_time", "arguments": "{}"}),
            {"role": "function", "name": "get_time", "content": "12:00"},
        ]
    )
    (made,), (given,) = call.contents, result.contents
    assert isinstance(made, FunctionCallContent)
    assert isinstance(given, FunctionResultContent)
    assert (made.call_id, made.name, made.arguments) == ("get_time", "get_time", {})
    assert (given.call_id, given.result) == ("get_time", "12:00")
    assert result.role == "tool"


def test_citations_point_into_the_text() -> None:
    citation: dict[str, Any] = {"url": "https://x.test", "title": "X", "start_index": 0, "end_index": 2}
    odd: dict[str, Any] = {"type": "url_citation", "url_citation": {**citation, "start_index": True}}
    message = one(
        assistant(
            content="so",
            annotations=[
                {"type": "url_citation", "url_citation": {**citation, "score": 1}},
                {"type": "file_citation", "file_id": "f"},
                odd,
                None,
            ],
        )
    )
    (content,) = message.contents
    assert isinstance(content, TextContent)
    assert list(content.annotations or ()) == [
        CitationAnnotation(
            title="X",
            url="https://x.test",
            annotated_regions=(TextSpanAnnotatedRegion(start_index=0, end_index=2),),
            additional_properties={KEY: {"url_citation": {"score": 1}}},
        ),
        AIAnnotation(additional_properties={KEY: {"annotations": {"type": "file_citation", "file_id": "f"}}}),
        AIAnnotation(additional_properties={KEY: {"annotations": odd}}),
        AIAnnotation(additional_properties={KEY: {"annotations": None}}),
    ]
    assert message.additional_properties is None


def test_the_sound_of_an_answer_is_data_and_what_it_says_is_text() -> None:
    message = one(assistant(audio={"id": "audio_1", "data": "UklGRg==", "expires_at": 9, "transcript": "hello"}))
    data, text = message.contents
    assert isinstance(data, DataContent)
    assert data.uri == "data:audio/wav;base64,UklGRg=="
    assert data.additional_properties == {KEY: {"audio": {"id": "audio_1", "expires_at": 9}}}
    assert message.text == "hello"
    assert isinstance(text, TextContent)


def test_an_audio_that_is_only_named_is_left_over() -> None:
    message = one(assistant(audio={"id": "audio_1"}))
    assert message.contents == ()
    assert message.additional_properties == {KEY: {"audio": {"id": "audio_1"}, "content": None}}


@pytest.mark.parametrize("member", ["reasoning_content", "reasoning"])
def test_thoughts_that_vendors_send_as_text_are_reasoning(member: str) -> None:
    message = one(assistant(content="4", **{member: "2 and 2", "reasoning_details": [{"type": "reasoning.text"}]}))
    assert list(message.contents) == [
        TextReasoningContent(text="2 and 2", additional_properties={KEY: {"member": member}}),
        TextContent(text="4"),
    ]
    assert message.additional_properties == {KEY: {"reasoning_details": [{"type": "reasoning.text"}]}}


def test_members_of_unknown_names_and_odd_types_are_left_over() -> None:
    odd = {"refusal": 1, "name": ["x"], "function_call": "auto", "audio": "no", "annotations": 3, "reasoning": {}}
    message = one({"role": "critic", "content": "a", "weight": 0, **odd})
    assert message.contents == (TextContent(text="a"),)
    assert message.additional_properties == {KEY: {"weight": 0, **odd}}


def test_members_that_say_nothing_and_only_answers_have_leave_no_trace() -> None:
    message = one(assistant(content="a", tool_calls=None, function_call=None, annotations=[]))
    assert message == ChatMessage.assistant("a")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ([{"role": "user", "content": "secret"}, "[1]"], "message 1 is no object"),
        ({"content": "secret"}, "message 0 has no role"),
        ({"role": " ", "content": "secret"}, "message 0 has no role"),
        ({"role": 3, "content": "secret"}, "message 0 has no role"),
        ({"role": "user", "content": 3}, "message 0 has content that is neither text nor a list nor null"),
        ({"role": "tool", "content": {"secret": 1}}, "message 0 has content that is neither text nor a list nor null"),
        ({"role": "assistant", "tool_calls": {"secret": 1}}, "message 0 has tool_calls that are no list"),
        ({"role": "tool", "content": "secret", "tool_call_id": 7}, "message 0 has a tool_call_id that is no text"),
        ("secret", "message 0 is no JSON"),
        ("", "message 0 is no JSON"),
        (b"\xff", "message 0 is not in UTF-8"),
        ('{"role":"user","content":"\ud83d secret"}', "message 0 is not in UTF-8"),
        ('{"role":"user","n":NaN}', "message 0 holds NaN, an infinity or a number of more than 4,300 digits"),
        ("[" * 100_000, "message 0 is nested too deep"),
        ({"choices": [{"message": {}}, {"message": {}}]}, "a response with 2 choices"),
        ({"choices": [{"delta": {"content": "secret"}}]}, "a part of a stream"),
        (None, "message 0 is no object"),
        ([[{"role": "user"}]], "message 0 is no object"),
    ],
)
def test_what_is_no_message_is_refused_by_its_place_and_without_its_content(given: Any, reason: str) -> None:
    with pytest.raises(DecodeError) as caught:
        openai_chat.load(given)
    assert caught.value.format == "openai-chat"
    assert reason in caught.value.reason
    assert "secret" not in str(caught.value)


def nested(levels: int) -> dict[str, Any]:
    value: Any = []
    for _ in range(levels - 2):
        value = [value]
    return {"role": "user", "content": "a", "deep": value}


@pytest.mark.parametrize(
    ("given", "path", "reason"),
    [
        ({"role": "user", "content": "a", "x": {"a/b": [1, float("nan")]}}, "0/x/…/1", "NaN"),
        ({"role": "user", "content": "a", "x": {"of secret": {"s" * 41: {1}}}}, "0/x/…/…", "set is no JSON value"),
        ({"role": "user", "content": "a", "x": float("inf")}, "0/x", "infinite"),
        ('{"role":"user","content":"a","x":1E400}', "0/x", "infinite"),
        ([{"role": "user", "content": "a"}, {"role": "user", "content": "secret \ud83d"}], "1/content", "surrogate"),
        ('{"role":"user","content":"secret \\ud83d"}', "0/content", "surrogate"),
        ({"role": "user", "content": "a", "\udc00": 1}, "0", "surrogate"),
        ({"role": "user", 1: "secret"}, "0", "a key of int"),
        ({"role": "user", "content": {"secret"}}, "0/content", "set is no JSON value"),
        ({"role": "user", "content": b"secret"}, "0/content", "bytes is no JSON value"),
        ({"role": "user", "content": iter("secret")}, "0/content", "iterator is no JSON value"),
        ({"role": "user", "content": "a", "n": 10**5000}, "0/n", "more than 4,300 digits"),
        (nested(201), "0/deep" + "/0" * 198 + "/0", "more than 200 levels"),
        (json.dumps(nested(201)), "0/deep" + "/0" * 198 + "/0", "more than 200 levels"),
    ],
)
def test_what_no_record_can_hold_is_refused_by_its_place_and_without_its_content(
    given: Any, path: str, reason: str
) -> None:
    with pytest.raises(EncodeError) as caught:
        openai_chat.load(given)
    assert caught.value.path == path
    assert reason in caught.value.reason
    assert "secret" not in str(caught.value)


def test_200_levels_are_taken() -> None:
    assert one(nested(200)) == one(json.dumps(nested(200)))


def test_stored_objects_are_read_with_their_origin() -> None:
    payload = b'{"role":"user","content":"a"}'
    (message,) = openai_chat.decode(payload)
    assert message == ChatMessage.user("a")
    assert message.origin is not None
    assert message.origin.payload is payload


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b"1",
        b"{}",
        b"\xff",
        b'{"role":"user","content":' + b"[" * 700 + b"]" * 700 + b"}",
        b"[" * 100_000,
        b'{"role":"user","n":' + b"9" * 5000 + b"}",
    ],
)
def test_a_stored_object_that_is_none_is_an_error_of_its_format(payload: bytes) -> None:
    with pytest.raises(DecodeError):
        openai_chat.decode(payload)


def test_a_stored_half_of_a_character_is_read_and_goes_back_as_it_was() -> None:
    payload = b'{"role":"user","content":"\\ud83d"}'
    (message,) = openai_chat.decode(payload)
    assert message.text == "\ud83d"
    assert openai_chat.dump([message]) == [{"role": "user", "content": "\ud83d"}]


def test_what_the_caller_does_to_its_objects_later_changes_nothing() -> None:
    call = function("f", "{}", extra={"a": [1]})
    given = assistant(content=[{"type": "text", "text": "a", "extra": {"b": [1]}}], tool_calls=[call], extra=[1])
    message, untouched = one(given), one(json.dumps(given))
    call["extra"]["a"].append(2)
    given["content"][0]["extra"]["b"].append(2)
    given["extra"].append(2)
    assert message == untouched
    assert openai_chat.dump([message]) == openai_chat.dump([untouched])
