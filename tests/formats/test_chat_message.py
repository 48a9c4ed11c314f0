"""The canonical format: what it takes, keeps aside and refuses."""

import json
import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats import chat_message
from chathistory_core.formats.format import Format
from chathistory_core.messages import (
    AIContent,
    ChatMessage,
    CitationAnnotation,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    McpServerToolCallContent,
    McpServerToolResultContent,
    Origin,
    SourceAttribution,
    TextContent,
    TextSpanAnnotatedRegion,
    ToolApprovalRequestContent,
    UnknownAnnotation,
    UnknownContent,
    UriContent,
    UsageContent,
    UsageDetails,
)

CANARY = "canary-7f3a"
FORMAT: Format = chat_message


def written(message: ChatMessage) -> Any:
    return json.loads(chat_message.encode(message))


def content(one: Any) -> Any:
    """The one content as it is written; it reads as the same."""
    message = ChatMessage(role="user", contents=[one])
    payload = chat_message.encode(message)
    assert chat_message.decode(payload) == (message,)
    return json.loads(payload)["contents"][0]


def read(text: str) -> ChatMessage:
    return chat_message.decode(text.encode())[0]


def read_content(text: str) -> Any:
    return read('{"role":"user","contents":[' + text + "]}").contents[0]


def aside(value: Any) -> Any:
    return json.loads(value["additionalProperties"]["chathistory.extra"])


def tower(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_the_module_is_a_format() -> None:
    assert FORMAT.name == "chat-message"


def test_a_message_decodes_with_its_payload_as_origin() -> None:
    payload = b'{ "contents": [], "role": "user", "x": 2.50 }'
    (message,) = chat_message.decode(payload)
    assert message.origin == Origin("chat-message", payload)
    assert message.extra == {"/x": 2.5}


def test_encoding_is_anew_whatever_the_origin() -> None:
    (message,) = chat_message.decode(b'{ "role": "user", "contents": [] }')
    assert chat_message.encode(message) == b'{"role":"user","contents":[]}'


def test_unknown_members_are_kept_beside_what_dotnet_sees() -> None:
    text = '{"role":"user","contents":[{"$type":"text","text":"x","$id":"1","cache":{"a":1}}],"name":"bob"}'
    message = read(text)
    assert message.extra == {"/name": "bob"}
    assert written(message) == {
        "role": "user",
        "contents": [
            {
                "$type": "text",
                "text": "x",
                "additionalProperties": {"chathistory.extra": '{"/$id":"1","/cache":{"a":1}}'},
            }
        ],
        "additionalProperties": {"chathistory.extra": '{"/name":"bob"}'},
    }
    assert chat_message.decode(chat_message.encode(message)) == (message,)


def test_arguments_that_came_as_text_are_an_object_for_dotnet_and_text_for_us() -> None:
    value = content(FunctionCallContent(call_id="c", name="f", arguments_text='{"a": 1}'))
    assert value["arguments"] == {"a": 1}
    assert aside(value) == {"/arguments": '{"a": 1}'}


@pytest.mark.parametrize("text", ["", "[1]", '{"a":', '{"a":1E400}', '{"a":"\\ud83d"}'])
def test_arguments_text_without_an_object_that_dotnet_takes_stands_aside_alone(text: str) -> None:
    value = content(FunctionCallContent(call_id="c", name="f", arguments_text=text))
    assert "arguments" not in value
    assert aside(value) == {"/arguments": text}


def test_what_is_too_deep_for_dotnet_stands_aside() -> None:
    fits = content(FunctionCallContent(call_id="c", name="f", arguments={"a": tower(59)}))
    assert fits["arguments"] == {"a": tower(59)}
    deep = content(FunctionCallContent(call_id="c", name="f", arguments={"a": tower(60)}))
    assert "arguments" not in deep
    assert aside(deep) == {"/arguments": {"a": tower(60)}}
    assert aside(content(FunctionResultContent(call_id="c", result=tower(61)))) == {"/result": tower(61)}
    assert aside(content(TextContent(additional_properties={"a": tower(60)}))) == {
        "/additionalProperties": {"a": tower(60)}
    }


@pytest.mark.parametrize(
    "properties", [{"a": 1, "A": 2}, {"chathistory.x": 1}, {"Chathistory.Extra": 1}, {"\u00df": 1, "SS": 2}]
)
def test_properties_whose_keys_dotnet_would_mix_up_or_that_are_ours_stand_aside(properties: dict[str, Any]) -> None:
    assert aside(content(TextContent(text="x", additional_properties=properties))) == {
        "/additionalProperties": properties
    }


def test_empty_and_absent_properties_stay_apart_beside_an_extra() -> None:
    assert content(TextContent(additional_properties={}))["additionalProperties"] == {}
    assert aside(content(TextContent(additional_properties={}, extra={"/x": 1})))["/additionalProperties"] == {}
    assert "/additionalProperties" not in aside(content(TextContent(extra={"/x": 1})))


@pytest.mark.parametrize(
    ("one", "members"),
    [
        (HostedFileContent(file_id="f", size_in_bytes=2**63), {"/sizeInBytes": 2**63}),
        (HostedFileContent(file_id="f", media_type="csv"), {"/mediaType": "csv"}),
        (
            HostedFileContent(file_id="f", created_at=datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))),
            {"/createdAt": "0001-01-01T00:00:00+01:00"},
        ),
        (UsageContent(details=UsageDetails(total_token_count=2**63)), {"/details/totalTokenCount": 2**63}),
        (
            UsageContent(details=UsageDetails(additional_counts={"a": 1, "A": 2})),
            {"/details/additionalCounts": {"a": 1, "A": 2}},
        ),
        (
            TextContent(
                annotations=[CitationAnnotation(annotated_regions=[TextSpanAnnotatedRegion(start_index=2**31)])]
            ),
            {"/annotations/0/annotatedRegions/0/start": 2**31},
        ),
        (TextContent(annotations=[UnknownAnnotation(raw={"$type": "weird"})]), {"/annotations/0": {"$type": "weird"}}),
    ],
)
def test_members_beyond_what_dotnet_takes_stand_aside(one: Any, members: dict[str, Any]) -> None:
    assert aside(content(one)) == members


def test_a_refused_region_leaves_the_citation_to_dotnet() -> None:
    text = '{"$type":"text","annotations":[{"$type":"citation","url":"u","annotatedRegions":[{"$type":"box","x":1}]}]}'
    value = content(read_content(text))
    assert value["annotations"] == [{"$type": "citation", "url": "u", "annotatedRegions": [{}]}]
    assert aside(value) == {"/annotations/0/annotatedRegions/0": {"$type": "box", "x": 1}}


@pytest.mark.parametrize(
    "one",
    [
        UnknownContent(raw={"$type": "hologram", "x": [1]}),
        UnknownContent(raw={"x": 1}),
        UnknownContent(raw="x"),
        DataContent(uri="https://e.com/a.png"),
        DataContent(uri="data:image/png;base64,AB=="),
        UriContent(uri="http://["),
        UriContent(uri="a", media_type="png"),
        HostedFileContent(file_id="\x85"),
        McpServerToolCallContent(call_id="c", name=" "),
        ToolApprovalRequestContent(
            request_id="r", tool_call=McpServerToolCallContent(call_id="", name="n", extra={"/x": 1})
        ),
        McpServerToolResultContent(call_id="", outputs=[UnknownContent(raw={"x": 1}), TextContent(text="x")]),
    ],
)
def test_a_content_that_cannot_stand_is_carried_whole(one: Any) -> None:
    value = content(one)
    assert list(value) == ["additionalProperties"]
    assert list(value["additionalProperties"]) == ["chathistory.content"]


@pytest.mark.parametrize("levels", [1, *range(25, 35), 60])
def test_contents_nested_beyond_dotnet_are_carried_by_the_one_that_has_room(levels: int) -> None:
    citation = CitationAnnotation(annotated_regions=[TextSpanAnnotatedRegion(start_index=1)])
    one: Any = TextContent(text="x", annotations=[citation], extra={"/x": 1})
    for _ in range(levels):
        one = McpServerToolResultContent(call_id="c", outputs=[one])
    assert levels_of(content(one)) <= 61  # the list, the message and its contents are the other three


def levels_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(levels_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(levels_of, value), default=0)
    return 0


@pytest.mark.parametrize(
    "uri",
    [
        "https://e.com/a b.png?q=\u00e9#f",
        "http://a_b.c:65535",
        "gs://bucket/a.mp4",
        "file:///c:/x",
        "urn:x:y",
        "data:,x",
        "sandbox:/mnt/data/x.png",
        "a.png",
        "/a/b:c",
        "",
        "a b",
    ],
)
def test_a_uri_that_dotnet_takes_stands(uri: str) -> None:
    assert content(UriContent(uri=uri, media_type="a/b"))["uri"] == uri


@pytest.mark.parametrize(
    "uri",
    [
        "http://[",
        "http://a:65536",
        "http://a..b",
        "http://",
        "http://a b/",
        "x:y",
        "file://a:80/",
        "FILE://a:80/",
        "net.pipe://a:80",
        "vsmacros://a:80",
        "http://a%41",
        "z|x",
        f"http://{'a' * 64}.com",
    ],
)
def test_a_uri_that_dotnet_refuses_or_may_refuse_is_carried(uri: str) -> None:
    assert "uri" not in content(UriContent(uri=uri, media_type="a/b"))


def test_a_null_for_a_truth_value_is_neither_true_nor_false() -> None:
    call = {"$type": "functionCall", "name": "f", "callId": "c"}
    raw = {"$type": "toolApprovalResponse", "requestId": "r", "approved": None, "toolCall": call}
    assert read_content(json.dumps(raw)) == UnknownContent(raw=raw)


def test_a_null_among_the_contents_stays_one() -> None:
    assert content(UnknownContent(raw=None)) is None


def test_an_unknown_content_that_is_a_known_one_is_written_as_that() -> None:
    message = ChatMessage(role="user", contents=[UnknownContent(raw={"text": "x", "$type": "text"})])
    assert written(message)["contents"] == [{"$type": "text", "text": "x"}]


CALL = {"$type": "functionCall", "name": "f", "callId": "c"}
HIDDEN = {"$type": "text", "text": "hidden"}


@pytest.mark.parametrize(
    ("members", "extra"),
    [
        ({"$type": "text", "text": "seen"}, {"/text": "hidden"}),
        ({"$type": "text"}, {"/text": "hidden"}),
        ({"$type": "functionResult", "callId": "c"}, {"/result": "hidden"}),
        ({**CALL, "arguments": {"a": 1}}, {"/arguments": '{"a":"hidden"}'}),
        ({**CALL, "arguments": {"a": 1}}, {"/arguments": '{"a":true}'}),
        (CALL, {"/arguments": '{"a":"hidden"}'}),
        (CALL, {"/arguments": {"a": "hidden"}}),
        ({"$type": "hostedFile", "fileId": "f"}, {"/mediaType": "a/hidden"}),
        ({"$type": "text", "annotations": [{}]}, {"/annotations/0": {"$type": "citation", "title": "hidden"}}),
        ({"$type": "codeInterpreterToolResult", "callId": "c"}, {"/outputs": [HIDDEN]}),
        ({"$type": "hostedFile", "fileId": "f", "sizeInBytes": 5}, {"/sizeInBytes": 2**63}),
        ({"$type": "hostedFile", "fileId": "f", "mediaType": "a/b"}, {"/mediaType": "hidden"}),
        ({"$type": "usage", "details": {}}, {"/details/inputTokenCount": 666}),
    ],
)
def test_no_extra_shows_us_what_dotnet_could_see_and_does_not(members: dict[str, Any], extra: dict[str, Any]) -> None:
    text = json.dumps({**members, "additionalProperties": {"chathistory.extra": json.dumps(extra)}})
    assert read_content(text) == read_content(json.dumps(members))


def test_no_carried_content_shows_us_what_dotnet_could_see_and_does_not() -> None:
    one = read_content(json.dumps({"additionalProperties": {"chathistory.content": json.dumps(HIDDEN)}}))
    assert one == AIContent(additional_properties={"chathistory.content": json.dumps(HIDDEN)})


def test_no_text_shows_us_contents_that_dotnet_does_not_see() -> None:
    text = json.dumps({"/contents": [{"$type": "text", "text": "hidden"}], "/role": "system", "/messageId": "hidden"})
    message = read(json.dumps({"role": "user", "additionalProperties": {"chathistory.extra": text}}))
    assert message == ChatMessage(role="user")


@pytest.mark.parametrize("text", ["{", "[]", '{"x":1}', "null", "NaN"])
def test_a_text_that_is_not_ours_is_a_property_like_any_other(text: str) -> None:
    message = read(json.dumps({"role": "user", "additionalProperties": {"chathistory.extra": text}}))
    assert message.additional_properties == {"chathistory.extra": text}
    assert chat_message.decode(chat_message.encode(message)) == (message,)


def test_names_of_older_builds_are_read() -> None:
    call = {"$type": "functionCall", "name": "f", "callId": "c"}
    one = read_content(json.dumps({"$type": "functionApprovalRequest", "id": "r", "functionCall": call}))
    assert one == ToolApprovalRequestContent(request_id="r", tool_call=FunctionCallContent(name="f", call_id="c"))


def test_a_mark_is_encoded_as_dotnet_does() -> None:
    message = ChatMessage.user("x").with_source(SourceAttribution("ChatHistory", "Some.Provider"))
    assert written(message)["additionalProperties"] == {
        "_attribution": {"sourceType": {"value": "ChatHistory"}, "sourceId": "Some.Provider"}
    }
    assert written(ChatMessage.user("x").with_source(SourceAttribution()))["additionalProperties"] == {
        "_attribution": {"sourceType": {"value": "External"}}
    }


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2, 3, 4, 5, 120_000, UTC), "2026-01-02T03:04:05.12+00:00"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=-3, minutes=-30))), "2026-01-02T00:00:00-03:30"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=15))), "2026-01-01T09:00:00+00:00"),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(seconds=30))), "2026-01-01T23:59:30+00:00"),
    ],
)
def test_times_are_written_as_dotnet_does_and_odd_offsets_in_utc(moment: datetime, text: str) -> None:
    assert written(ChatMessage(role="user", created_at=moment))["createdAt"] == text


BAD = [
    (ChatMessage(role=" \u3000"), "7/role", "a blank role"),
    (ChatMessage.user(f"{CANARY}\ud83d"), "7/contents/0/text", "a lone surrogate"),
    (ChatMessage(role="\ud83d"), "7/role", "a lone surrogate"),
    (
        ChatMessage.tool("c", {CANARY: [{"name": math.nan}]}),
        "7/contents/0/result",
        "NaN or infinity",
    ),
    (ChatMessage.tool("c", {f"{CANARY}\ud83d": 1}), "7/contents/0/result", "a lone surrogate"),
    (ChatMessage.tool("c", 10**5000), "7/contents/0/result", "an integer of more than 4,300 digits"),
    (ChatMessage.tool("c", {CANARY: tower(200)}), "7/contents/0", "more than 200 levels"),
    (ChatMessage(role="user", extra={f"/{CANARY}": -math.inf}), "7", "NaN or infinity"),
    (ChatMessage(role="user", contents=[AIContent(extra={f"/{CANARY}": math.inf})]), "7/contents/0", "NaN or infinity"),
    (
        ChatMessage(role="user", contents=[TextContent(), UnknownContent(raw={"$type": CANARY, "x": math.nan})]),
        "7/contents/1",
        "NaN or infinity",
    ),
    (
        ChatMessage(
            role="user",
            contents=[
                McpServerToolResultContent(call_id="c", outputs=[TextContent(text=CANARY), TextContent(text="\ud83d")])
            ],
        ),
        "7/contents/0/outputs/1/text",
        "a lone surrogate",
    ),
    (
        ChatMessage(role="user", additional_properties={CANARY: {"text": math.inf}}),
        "7/additionalProperties",
        "NaN or infinity",
    ),
]


@pytest.mark.parametrize(("message", "path", "reason"), BAD)
def test_what_no_record_holds_is_refused_by_message_and_member_and_never_shown(
    message: ChatMessage, path: str, reason: str
) -> None:
    with pytest.raises(EncodeError) as refused:
        chat_message.encode(message, path="7")
    assert (refused.value.path, refused.value.reason) == (path, reason)
    chain: BaseException | None = refused.value
    while chain is not None:
        assert CANARY not in str(chain)
        chain = chain.__cause__ or (None if chain.__suppress_context__ else chain.__context__)


def test_two_hundred_levels_are_the_most() -> None:
    message = ChatMessage.tool("c", tower(197))
    assert chat_message.decode(chat_message.encode(message)) == (message,)
    with pytest.raises(EncodeError, match="more than 200 levels"):
        chat_message.encode(ChatMessage.tool("c", tower(198)))


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "no JSON at character 0"),
        (f'{{"role":"user","x":"{CANARY}'.encode(), "no JSON at character 19"),
        (b'"x"', "a message is a JSON object"),
        (b'{"role":"user","x":"\xff"}', "no UTF-8 at byte 20"),
        (b'{"role":"user","x":NaN}', "NaN and Infinity are no JSON"),
        (b'{"role":"user","additionalProperties":{"x":[NaN]}}', "NaN and Infinity are no JSON"),
        (b'{"role":"user","x":-Infinity}', "NaN and Infinity are no JSON"),
        (b'{"role":"user","x":' + b"9" * 4301 + b"}", "an integer has more than 4,300 digits"),
        (b'{"role":"user","x":' + b"[" * 200 + b"]" * 200 + b"}", "more than 200 levels"),
        (b'{"role":"user","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deep"),
        (f'{{"role":["{CANARY}"]}}'.encode(), "`role` is no text"),
        (f'{{"role":"\t","messageId":"{CANARY}"}}'.replace("\t", "\\t").encode(), "`role` is blank"),
        (f'{{"role":"user","createdAt":"{CANARY}"}}'.encode(), "`createdAt` is no time"),
        (f'{{"role":"user","additionalProperties":["{CANARY}"]}}'.encode(), "`additionalProperties` is no object"),
    ],
)
def test_what_is_no_message_is_refused_with_a_reason_and_never_shown(payload: bytes, reason: str) -> None:
    for read_it in (chat_message.decode, chat_message.load):
        with pytest.raises(DecodeError) as refused:
            read_it(payload)
        assert str(refused.value) == f"not chat-message: {reason}"
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__ or refused.value.__context__ is None


def test_a_byte_order_mark_is_passed_over() -> None:
    text = "\ufeff" + '{"role":"user"}'
    assert read(text) == ChatMessage(role="user")
    assert chat_message.load(text) == chat_message.load(text.encode()) == [ChatMessage(role="user")]


def test_a_value_nested_too_deep_is_no_message_at_any_depth() -> None:
    for levels in (300, 700, 950, 990, 2_000):
        with pytest.raises(DecodeError):
            chat_message.load({"role": "user", "x": tower(levels)})
        with pytest.raises(DecodeError):
            chat_message.decode(('{"role":"user","x":' + "[" * levels + "]" * levels + "}").encode())


def test_numbers_are_read_exactly_and_beyond_a_double_as_infinity() -> None:
    digits = "9" * 4300
    text = '{"$type":"functionResult","callId":"c","result":[' + digits + ",0.1,1E400,-0.0,18446744073709551617]}"
    assert read_content(text).result == [int(digits), 0.1, math.inf, -0.0, 18446744073709551617]


def test_a_list_is_loaded_with_the_text_of_each_message_as_its_origin() -> None:
    one = '{ "role":"user", "contents":[{"$type":"text","text":"a","x":2.50}] }'
    two = '{"createdAt":"2026-04-16T01:30:52.1234567+09:00","role":"assistant","contents":[]}'
    loaded = chat_message.load(f" [ {one} ,\n {two}]\n")
    assert [message.origin for message in loaded] == [
        Origin("chat-message", one.encode()),
        Origin("chat-message", two.encode()),
    ]
    assert chat_message.load("[]") == []


@pytest.mark.parametrize(
    "text",
    [
        '{"role":"user","contents":[{"text":"x","$type":"text"}]}',
        '{"role":"user","contents":[{"$type":"text","$id":"1"}]}',
        '{"role":"user","contents":[{"$type":"hologram"}]}',
        '{"role":"user","contents":[{"$type":"text","text":"a","text":"b"}]}',
        '{"role":"user","contents":[{"$type":"text","text":"a","Text":"b"}]}',
        '{"role":"user","createdAt":"2026-04-16 01:30:52Z"}',
        '{"role":"user","createdAt":"2026-04-16T01:30:52+15:00"}',
        '{"role":"user","x":"\\ud83d"}',
        '{"role":"user","additionalProperties":{"a":1,"A":2}}',
        '{"role":"user","contents":[{"$type":"functionCall","name":"f","callId":"c","arguments":"{}"}]}',
        '{"role":"user","contents":[{"$type":"usage","details":{"inputTokenCount":9223372036854775808}}]}',
        '{"role":"user","x":' + "[" * 63 + "]" * 63 + "}",
    ],
)
def test_a_text_that_dotnet_refuses_or_reads_otherwise_is_no_origin(text: str) -> None:
    (message,) = chat_message.load(text)
    assert message.origin is None


def test_json_values_are_loaded_too() -> None:
    value: Any = {"role": "user", "contents": [{"$type": "text", "text": "é"}]}
    assert chat_message.load(value) == [ChatMessage.user("é")]
    assert chat_message.load([value, value]) == [ChatMessage.user("é")] * 2
    (message,) = chat_message.load(value)
    assert message.origin == Origin("chat-message", '{"role":"user","contents":[{"$type":"text","text":"é"}]}'.encode())


@pytest.mark.parametrize("source", [[5], [None], {"role": {1, 2}}, [b"x"]])
def test_what_is_no_json_value_of_messages_is_no_source(source: Any) -> None:
    with pytest.raises(DecodeError, match="not chat-message"):
        chat_message.load(source)


@pytest.mark.parametrize("source", [5, None, ChatMessage.user("x")])
def test_another_source_is_a_type_error(source: Any) -> None:
    with pytest.raises(TypeError, match=f"not {type(source).__name__}"):
        chat_message.load(source)


def test_messages_are_dumped_as_the_objects_that_dotnet_takes() -> None:
    (loaded,) = chat_message.load('{"role":"user","contents":[],"x":1}')
    changed = loaded.model_copy(update={"message_id": "m"})
    marked = loaded.with_source(SourceAttribution("ChatHistory", "p"))
    assert chat_message.dump([loaded, changed, marked]) == [
        {"role": "user", "contents": [], "x": 1},
        {
            "role": "user",
            "contents": [],
            "messageId": "m",
            "additionalProperties": {"chathistory.extra": '{"/x":1}'},
        },
        {
            "role": "user",
            "contents": [],
            "additionalProperties": {
                "_attribution": {"sourceType": {"value": "ChatHistory"}, "sourceId": "p"},
                "chathistory.extra": '{"/x":1}',
            },
        },
    ]


def test_a_dump_of_what_no_json_holds_is_refused_by_its_index() -> None:
    with pytest.raises(EncodeError) as refused:
        chat_message.dump([ChatMessage.user("x"), ChatMessage.tool("c", math.nan)])
    assert refused.value.path == "1/contents/0/result"
