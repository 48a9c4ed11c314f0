"""Messages of every kind, generated: what is written reads as the same message, here and in .NET."""

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats import chat_message
from chathistory_core.messages import (
    AIAnnotation,
    AIContent,
    AnnotatedRegion,
    ChatMessage,
    CitationAnnotation,
    CodeInterpreterToolCallContent,
    CodeInterpreterToolResultContent,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    HostedVectorStoreContent,
    ImageGenerationToolCallContent,
    ImageGenerationToolResultContent,
    McpServerToolCallContent,
    McpServerToolResultContent,
    TextContent,
    TextReasoningContent,
    TextSpanAnnotatedRegion,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    ToolCallContent,
    ToolResultContent,
    UnknownAnnotatedRegion,
    UnknownAnnotation,
    UnknownContent,
    UriContent,
    UsageContent,
    UsageDetails,
    WebSearchToolCallContent,
    WebSearchToolResultContent,
)

EXAMPLES = int(os.environ.get("EXAMPLES", "200"))
ORACLE = Path(__file__).resolve().parents[2] / "../shared/tools/dotnet-oracle/dotnet-oracle"

generated = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)

AWKWARD = (
    "aZ \t\n\x00\x1c\x1f\x7f\x85\xa0\u00e9\u00df\u0130\u0131\u017f\u0301\u200b\u2028\u3000\ufeff\ufffe\ufffd\ue000"
    "\u65e5\U0001f600"
    "\"\\/~$<&'.:[%#?@"
)
NAMES = (
    *("a", "A", "b", "", "/", "~1", "~", "$type", "$id", "$Type", "id", "ID", "\u0131d", "_attribution"),
    *("chathistory.extra", "chathistory.content", "chathistory.x", "CHATHISTORY.EXTRA", "chathistory"),
    *("text", "Text", "role", "additionalProperties", "annotations", "callId", "arguments", "type", "extra"),
)

texts = st.text(st.one_of(st.sampled_from(AWKWARD), st.characters(exclude_categories=["Cs"])), max_size=6)
names = st.one_of(st.sampled_from(NAMES), texts)
integers = st.one_of(st.integers(-9, 9), st.sampled_from([2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**40]))
scalars = st.one_of(
    st.none(), st.booleans(), integers, st.floats(allow_nan=False, allow_infinity=False), texts
)  # fmt: skip


def nested(levels: int, *, in_objects: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"k": value} if in_objects else [value]
    return value


deep = st.builds(
    nested, st.sampled_from([2, 30, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 100, 150]), in_objects=st.booleans()
)
values = st.one_of(
    scalars,
    st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
    ),
    deep,
)
objects = st.one_of(st.dictionaries(names, values, max_size=4), st.builds(lambda value: {"a": value}, deep))


def fixed(offset: timedelta) -> timezone:
    return timezone(offset)


offsets = st.one_of(
    st.sampled_from(
        [timedelta(), timedelta(hours=9), timedelta(hours=-3, minutes=-30), timedelta(hours=14), timedelta(hours=15)]
    ),
    st.timedeltas(timedelta(hours=-23, minutes=-59), timedelta(hours=23, minutes=59)),
)
moments = st.one_of(
    st.datetimes(timezones=offsets.map(fixed)),
    st.builds(
        lambda moment, offset: moment.replace(tzinfo=timezone(offset)),
        st.sampled_from([datetime.min, datetime.max, datetime.max.replace(microsecond=0)]),  # noqa: DTZ901 - gets its offset
        offsets,
    ),
)

MEDIA_TYPES = [
    "a/b",
    "text/plain; charset=utf-8",
    'a/b; c="d, e;f"',
    "a/b ;c",
    "*/*",
    "image/svg+xml",
    "png",
    "text/\u00e9",
    "",
    "a/b;",
    "a/b;c=",
    "a/b;c=(d)",
    'a/b;c="\\',
    "a/{b",
    "a/b, c/d",
]
DATA_URIS = [
    "data:image/png;base64,AAEC",
    "data:;base64,AA==",
    "DATA:A/B;BASE64,",
    "data:,x",
    "data:,",
    "data:text/plain,hi%20\u00e9%zz",
    "data:a/b;base64,AB==",
    "data:a/b;base64,A-_=",
    "data:a/b;base64,AA",
    "data:a/b;base64,AA==,",
    "data:a/b;base64,A A=",
    "data:text;base64,AA==",
    'data:a/b;c="d";base64,AA==',
    'data:a/b;c="d,e";base64,AA==',
    "data:a/b;base64;c=d,AA==",
    "http://x",
    "data:",
    "data:image/svg+xml;utf8,<svg/>",
]
SCHEMES = [
    "http://",
    "https://",
    "ftp://",
    "gs://",
    "s3://",
    "file://",
    "file:///",
    "urn:",
    "data:",
    "mailto:",
    "x:",
    "ab:",
    "sandbox:/",
    "blob:",
    "//",
    "/",
    "",
    "ws://",
    "tel:",
    "cid:",
    "about:",
    "news:",
    "ldap://",
    "net.tcp://",
    "telnet://",
    "gopher://",
    "vsmacros://",
    "uuid:",
    "\\\\",
]
HOSTS = [
    "a",
    "a.b",
    "a_b",
    "-a",
    "a-",
    "a..b",
    "1.2.3.400",
    "[::1]",
    "a:80",
    "a:65535",
    "a:65536",
    "u@h",
    "\u00e9.com",
    "*",
    "a%41",
    "",
    ".",
    "xn--a",
    "0x1",
    "1",
]
PATHS = [
    "",
    "/b.png",
    "?q=\u00e9#f",
    "/ b",
    "/%zz",
    "\\c",
    "/..",
    "#",
    "/a.tar.GZ",
]

media_types = st.sampled_from(MEDIA_TYPES) | texts
data_uris = st.one_of(
    st.sampled_from(DATA_URIS),
    st.binary(max_size=8).map(lambda raw: "data:a/b;base64," + base64.b64encode(raw).decode()),
    texts.map(lambda text: "data:text/plain," + text),
    texts.map(lambda text: f"data:{text};base64,AA=="),
    texts,
)
uris = st.one_of(
    st.builds(
        lambda scheme, host, rest: scheme + host + rest,
        st.sampled_from(SCHEMES),
        st.sampled_from([*HOSTS, "a" * 64]) | texts,
        st.sampled_from(PATHS) | texts.map(lambda text: "/" + text),
    ),
    texts,
)


def built(kind: type[Any], required: dict[str, Any], **optional: Any) -> st.SearchStrategy[Any]:
    """Values of a class, with unknown members in `extra`."""
    known = {str(field.validation_alias).lower() for field in kind.model_fields.values()}
    if kind is not ChatMessage:
        known.add("$type")
        optional["annotations"] = st.lists(annotations, max_size=2)
    optional["additional_properties"] = objects
    members = st.dictionaries(names, values, max_size=2).map(
        lambda found: {pointer(name): value for name, value in found.items() if name.lower() not in known}
    )
    fields = st.fixed_dictionaries(required, optional=optional)
    return st.builds(
        lambda chosen, extra: kind(**chosen, **({"extra": extra} if extra else {})), fields, st.just({}) | members
    )


def pointer(name: str) -> str:
    return "/" + name.replace("~", "~0").replace("/", "~1")


regions = st.one_of(
    st.builds(TextSpanAnnotatedRegion, start_index=st.none() | integers, end_index=st.none() | integers),
    st.builds(AnnotatedRegion),
    st.builds(
        UnknownAnnotatedRegion,
        raw=st.sampled_from([None, 1, "x", [], {"$type": "box", "x": 1}, {"$type": 1}, {"start": 1, "$type": "box"}]),
    ),
)
some_regions = st.none() | st.lists(regions, max_size=2)
annotations = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(["title", "url", "file_id", "tool_name", "snippet"], texts),
            "annotated_regions": some_regions,
            "additional_properties": objects,
        },
    ).map(lambda fields: CitationAnnotation(**fields)),
    st.builds(AIAnnotation, annotated_regions=some_regions, additional_properties=st.none() | objects),
    st.builds(
        UnknownAnnotation,
        raw=st.sampled_from(
            [None, 1, "x", [], {"$type": "weird"}, {"$type": "citation", "url": 5}, {"annotatedRegions": 1}]
        ),
    ),
)

ARGUMENTS = ['{"a": 1E400}', '{"a":NaN}', '{"a":"\\ud83d"}', "[1]", '{"a":1,"a":2}', "{"]
call_ids = {"call_id": texts}
function_calls = st.one_of(
    built(FunctionCallContent, {"name": texts, **call_ids}, arguments=objects, informational_only=st.booleans()),
    built(
        FunctionCallContent,
        {"name": texts, **call_ids, "arguments_text": texts | objects.map(json.dumps) | st.sampled_from(ARGUMENTS)},
        informational_only=st.booleans(),
    ),
)  # fmt: skip
mcp_calls = built(McpServerToolCallContent, {"name": texts, **call_ids}, server_name=texts, arguments=objects)
tool_calls = built(ToolCallContent, call_ids)
searches = built(WebSearchToolCallContent, call_ids, queries=st.lists(st.none() | texts, max_size=2))
image_calls = built(ImageGenerationToolCallContent, call_ids)
unknown = st.builds(
    UnknownContent,
    raw=st.one_of(
        st.none(),
        scalars,
        st.builds(lambda value: {"$type": "hologram", "x": value}, values),
        st.builds(lambda value: {"x": value}, values),
        st.sampled_from(
            [
                {"$type": "text", "text": 5},
                {"$type": None},
                {"$type": "uri", "uri": "a", "mediaType": 1},
                {"$type": "toolCall"},
                {"additionalProperties": {"chathistory.content": '{"$type":"text"}'}},
                {"annotations": 1},
                {"$type": "text", "$Type": "text"},
            ]
        ),
    ),
)  # fmt: skip
plain = st.one_of(
    built(TextContent, {}, text=texts),
    built(TextReasoningContent, {}, text=texts, protected_data=texts),
    built(DataContent, {"uri": data_uris}, name=texts),
    built(UriContent, {"uri": uris}, media_type=media_types),
    built(ErrorContent, {}, message=texts, error_code=texts, details=texts),
    function_calls,
    built(FunctionResultContent, call_ids, result=values),
    built(
        UsageContent,
        {
            "details": st.builds(
                UsageDetails,
                input_token_count=st.none() | integers,
                output_text_token_count=st.none() | integers,
                additional_counts=st.none() | st.dictionaries(names, integers, max_size=3),
            )
        },
    ),
    built(
        HostedFileContent,
        {"file_id": texts},
        media_type=media_types,
        name=texts,
        size_in_bytes=integers,
        created_at=moments,
        purpose=texts,
        scope=texts,
    ),
    built(HostedVectorStoreContent, {"vector_store_id": texts}),
    tool_calls,
    built(ToolResultContent, call_ids),
    mcp_calls,
    image_calls,
    searches,
    built(AIContent, {}),
    unknown,
)


def towers(levels: int, inner: Any, call_id: str) -> Any:
    for _ in range(levels):
        inner = McpServerToolResultContent(call_id=call_id, outputs=[inner])
    return inner


def holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.none() | st.lists(inner, max_size=2)
    calls = st.one_of(
        function_calls, mcp_calls, tool_calls, searches, image_calls,
        built(CodeInterpreterToolCallContent, call_ids, inputs=several),
    )  # fmt: skip
    return st.one_of(
        built(CodeInterpreterToolCallContent, call_ids, inputs=several),
        built(CodeInterpreterToolResultContent, call_ids, outputs=several),
        built(McpServerToolResultContent, call_ids, outputs=several),
        built(ImageGenerationToolResultContent, call_ids, outputs=several),
        built(WebSearchToolResultContent, call_ids, outputs=several),
        built(
            ToolApprovalRequestContent, {"tool_call": calls, "request_id": texts}, requires_confirmation=st.booleans()
        ),
        built(
            ToolApprovalResponseContent,
            {"tool_call": calls, "request_id": texts},
            approved=st.booleans(),
            reason=texts,
        ),
        st.builds(towers, st.sampled_from([1, 26, 27, 28, 29, 30, 60]), plain, st.sampled_from(["c", " "])),
    )


contents = st.one_of(plain, st.recursive(plain, holding, max_leaves=4))
messages = built(
    ChatMessage,
    {
        "role": st.sampled_from(["user", "assistant", "tool", "System", "\x1c", "\u00e9"]),
        "contents": st.lists(contents, max_size=3),
    },
    author_name=texts,
    message_id=texts,
    created_at=moments,
)


class Oracle:
    """The serializer of .NET: a message's JSON a line in, its verdict a line out."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def read(self, payload: bytes) -> str:
        """The message as .NET writes what it read; fails where it refuses it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(payload.decode() + "\n")
        self._process.stdin.flush()
        verdict = json.loads(self._process.stdout.readline())
        assert verdict["ok"], (verdict["error"], payload)
        return str(verdict["json"])


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


def encoded(message: ChatMessage) -> bytes:
    """Its payload; the example is passed over where it holds more than records can."""
    try:
        return chat_message.encode(message)
    except EncodeError as error:
        if error.reason == "more than 200 levels":
            reject()
        raise


def same(message: ChatMessage, other: ChatMessage) -> bool:
    """Equal, and so with the kinds of numbers and the order of keys."""
    return message == other and chat_message.encode(message) == chat_message.encode(other)


@generated
@given(messages)
def test_what_is_written_reads_as_the_same_message(message: ChatMessage) -> None:
    payload = encoded(message)
    (read,) = chat_message.decode(payload)
    assert same(read, message)
    assert chat_message.load(payload) == [message]
    assert chat_message.load(chat_message.dump([message])) == [message]


@generated
@given(messages)
def test_dotnet_takes_what_is_written_and_gives_the_same_message_back(oracle: Oracle, message: ChatMessage) -> None:
    (read,) = chat_message.decode(oracle.read(encoded(message)).encode())
    assert same(read, message)


@generated
@given(messages)
def test_extras_change_nothing_of_what_dotnet_sees(oracle: Oracle, message: ChatMessage) -> None:
    contents = [one.model_copy(update={"extra": {}}) if isinstance(one, AIContent) else one for one in message.contents]
    bare = message.model_copy(update={"extra": {}, "contents": contents})
    assert seen(oracle.read(encoded(bare))) == seen(oracle.read(encoded(message)))


def seen(text: str) -> Any:
    """What .NET makes of a message, without our texts."""

    def without(value: Any) -> Any:
        if isinstance(value, list):
            return [without(item) for item in value]
        if not isinstance(value, dict):
            return value
        kept = {key: without(item) for key, item in value.items()}
        properties = kept.get("additionalProperties")
        if isinstance(properties, dict):
            properties.pop("chathistory.extra", None)
            if "chathistory.content" in properties:
                properties["chathistory.content"] = ""
            if not properties:
                del kept["additionalProperties"]
        return kept

    return without(json.loads(text))


def mutated(draw: st.DrawFn, text: str) -> str:
    """The text with what other writers do to it: nulls, other cases, other order, escapes, strange members."""

    def change(value: Any) -> Any:
        if isinstance(value, list):
            return [change(item) for item in value]
        if not isinstance(value, dict):
            return draw(scalars) if draw(st.integers(0, 30)) == 0 else value
        members = [(key, change(item)) for key, item in value.items()]
        match draw(st.integers(0, 12)):
            case 0:
                members.append((draw(names), draw(scalars)))
            case 1:
                members.append(
                    (draw(st.sampled_from(["annotations", "createdAt", "informationalOnly", "mediaType"])), None)
                )
            case 2 if members:
                members = draw(st.permutations(members))
            case 3 if members:
                key, item = members.pop()
                members.append((key.upper(), item))
            case 4 if members:
                members.pop(draw(st.integers(0, len(members) - 1)))
            case 5:
                members.append(
                    draw(
                        st.sampled_from(
                            [
                                ("$extra", {"/x": 1}),
                                ("extra", {"/x": 1}),
                                ("$raw", 1),
                                ("raw", 1),
                                ("type", "text"),
                                ("arguments", "{}"),
                                ("arguments_text", "{}"),
                                ("$text", "x"),
                                ("contents", [{"$raw": 1}]),
                                ("annotations", [{}, {"title": "t"}, {"$type": "citation"}, {"$raw": 1}]),
                            ]
                        )
                    )
                )
        return dict(members)

    result = json.dumps(change(json.loads(text)), ensure_ascii=draw(st.booleans()))
    return result.replace("a", "\\u0061") if draw(st.integers(0, 9)) == 0 else result


@st.composite
def strange_payloads(draw: st.DrawFn) -> bytes:
    return mutated(draw, encoded(draw(messages)).decode()).encode()


@generated
@given(strange_payloads())
def test_a_payload_reads_as_with_a_byte_order_mark_which_is_read_the_exact_way(payload: bytes) -> None:
    try:
        (exact,) = chat_message.decode(b"\xef\xbb\xbf" + payload)
    except DecodeError:
        with pytest.raises(DecodeError):
            chat_message.decode(payload)
        return
    (read,) = chat_message.decode(payload)
    assert read == exact
    try:
        written = chat_message.encode(exact)
    except EncodeError:
        return
    assert chat_message.encode(read) == written
    assert chat_message.decode(written) == (exact,)


@generated
@given(strange_payloads())
def test_what_was_loaded_and_not_changed_is_taken_by_dotnet(oracle: Oracle, payload: bytes) -> None:
    try:
        (message,) = chat_message.load(payload)
        kept = message.origin.payload if message.origin is not None else chat_message.encode(message)
    except (DecodeError, EncodeError):
        return
    oracle.read(kept)
