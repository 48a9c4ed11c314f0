"""Messages in and out: charsets, formats, what is kept, and what is refused with its place."""

import asyncio
import json
from collections.abc import Callable, Sequence

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import ASGIApp

from chathistory_core import (
    ChatHistoryBackend,
    ChatMessage,
    DecodeError,
    EncodeError,
    Record,
    StoredRecord,
    new_turn_id,
    open_backend,
)
from chathistory_core.formats import chat_message, openai_chat
from chathistory_core.messages import TextContent, UnknownContent
from chathistory_core.testing.cipher import EncryptingCodec
from chathistory_http.service import create_app
from chathistory_http.service.plain import plain_payloads

Serve = Callable[[ASGIApp | ChatHistoryBackend], str]

JSON = {"Content-Type": "application/json"}
TEXT = '{"role":"user","contents":[{"$type":"text","text":"Hello."}]}'


def body(*messages: str) -> str:
    return f'{{"messages":[{",".join(messages)}]}}'


def post(client: httpx.Client, content: str | bytes, kind: str = "application/json", key: str = "k") -> httpx.Response:
    return client.post(f"/chat-history/{key}", content=content, headers={"Content-Type": kind})


def kept(client: httpx.Client, key: str = "k") -> list[str]:
    """The payloads of the conversation."""
    return [record["payload"] for record in client.get(f"/records?key={key}").json()["records"]]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("application/json", body(TEXT).encode()),
        ("application/json; charset=utf-8", body(TEXT).encode()),
        ('Application/JSON;Charset="UTF-8"; odd', body(TEXT).encode()),
        ("application/vnd.x+json", body(TEXT).encode()),
        ("application/json", b"\xef\xbb\xbf" + body(TEXT).encode()),
        ("application/json; charset=utf-16", body(TEXT).encode("utf-16")),
        ("application/json; charset=utf-16", body(TEXT).encode("utf-16-le")),
        ("application/json; charset=utf-16be", body(TEXT).encode("utf-16-be")),
        ("application/json", body(TEXT).encode("utf-16")),
        ("application/json", b"\xfe\xff" + body(TEXT).encode("utf-16-be")),
        ("application/json; charset=utf-8", b"\xff\xfe" + body(TEXT).encode("utf-16-le")),
    ],
)
def test_a_body_is_read_in_its_charset(client: httpx.Client, kind: str, content: bytes) -> None:
    assert post(client, content, kind).status_code == 202
    assert client.get("/chat-history/k").text == f"[{TEXT}]"


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        (None, None),
        ("", None),
        ("text/plain", None),
        ("application/x-www-form-urlencoded", None),
        ("application/jsonp", None),
        ("text/x+json", None),
        ("application/json; charset=latin-1", None),
        ("application/json; charset=utf-7", None),
        ("application/json", "gzip"),
        ("application/json", "identity, br"),
    ],
)
def test_a_body_of_another_type_is_refused(client: httpx.Client, kind: str | None, encoding: str | None) -> None:
    headers = {
        name: value for name, value in (("Content-Type", kind), ("Content-Encoding", encoding)) if value is not None
    }
    for method in ("POST", "PUT"):
        assert client.request(method, "/chat-history/k", content=body(TEXT), headers=headers).status_code == 415
        records = client.request(
            method, "/records?key=k", content='{"records":[]}', headers={**headers, "Idempotency-Key": "t"}
        )
        assert records.status_code == 415


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" ",
        b"null",
        b"[]",
        b'"messages"',
        b"{}",
        b"{",
        b'{"messages"',
        b'{"messages":',
        b'{"messages":null}',
        b'{"messages":{}}',
        b'{"messages":[',
        b'{"messages":[]',
        b'{"messages":[]]',
        b'{"messages":[],}',
        b'{"messages":[,]}',
        b'{"messages":[{"role":"user"},]}',
        b'{"messages":[{"role":"user"} {"role":"user"}]}',
        b'{"messages":[]} x',
        b'{"messages":[]}{}',
        b'{"messages":[],"messages":[{"role":"user"},{"role":1}],"a":{}',
        b'{"messages":[],"messages":[{"role":"user","contents":[]}]}',
        b'{"a":1 "messages":[]}',
        b'{1:2,"messages":[]}',
        b'{"a":NaN,"messages":[]}',
        b'{"messages":[{"role":"user","additionalProperties":{"a":Infinity}}]}',
        b'{"messages":[{"role":"user","additionalProperties":{"a":' + b"9" * 5_000 + b"}}]}",
        b'{"messages":[' + b"[" * 100_000,
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b',"messages":[]}',
        b"{'messages':[]}",
        b'{"messages":[{"role":"user","contents":[{"$type":"text","text":"a\nb"}]}]}',
        b'{"messages":[{"role":"\xff"}]}',
        b"\xff\xfe{\x00",
    ],
)
def test_what_is_no_json_of_messages_is_refused_and_nothing_is_kept(client: httpx.Client, content: bytes) -> None:
    for method in ("POST", "PUT"):
        answer = client.request(method, "/chat-history/k", content=content, headers=JSON)
        assert answer.status_code == 400, answer.text
        assert answer.json()["type"] == "urn:chathistory:problem:bad-request"
    assert client.get("/chat-history").json() == []


@pytest.mark.parametrize(
    ("given_text", "kept_text"),
    [
        (TEXT, TEXT),
        (' {"Role" : "user" , "CONTENTS":[ {"$type":"text","Text":"Hello."} ] }\n', TEXT),
        ('{"contents":[{"text":"Hello.","$type":"text"}],"role":"user"}', TEXT),
        (
            (
                '{"authorName":null,"createdAt":null,"role":"user","contents":[{"$type":"text","text":"\\u0048ello.",'
                '"annotations":null,"additionalProperties":null}],"messageId":null,"additionalProperties":null}'
            ),
            TEXT,
        ),
        (
            '{"role":"user","contents":[{"$type":"text","text":null}]}',
            '{"role":"user","contents":[{"$type":"text","text":""}]}',
        ),
        ('{"role":"user"}', '{"role":"user","contents":[]}'),
        ('{"contents":[]}', '{"role":"user","contents":[]}'),
        ('{"role":"User","authorName":" ","contents":[]}', '{"role":"User","contents":[]}'),
        (
            '{"role":"assistant","contents":[{"$type":"functionCall","callId":"c","name":"f","arguments":{"a":[1.5,null]}}]}',
            (
                '{"role":"assistant","contents":[{"$type":"functionCall","name":"f","arguments":{"a":[1.5,null]},'
                '"informationalOnly":false,"callId":"c"}]}'
            ),
        ),
    ],
)
def test_a_message_is_kept_in_its_canonical_form(client: httpx.Client, given_text: str, kept_text: str) -> None:
    assert post(client, body(given_text)).status_code == 202
    assert kept(client) == [kept_text]


@pytest.mark.parametrize(
    "text",
    [
        '{"role":"user","contents":[],"additionalProperties":{"a":2.50,"b":1E400,"c":-0,"d":12345678901234567890.0}}',
        '{"role":"user","contents":[{"$type":"functionResult","result":-0,"callId":"c"}],"messageId":null}',
        '{"createdAt":"2026-04-16T01:30:52.1234567+09:00","role":"user","contents":[]}',
        '{"role":"assistant","contents":[{"$type":"functionCall","name":"f","arguments":{"a":-0},"callId":"c"}]}',
        '{"role":"assistant","contents":[{"$type":"functionCall","name":"f","arguments":{"a":0.10},"callId":"c"}]}',
    ],
)
def test_a_message_whose_numbers_or_times_would_be_spelled_anew_is_kept_as_it_is(
    client: httpx.Client, text: str
) -> None:
    assert post(client, body(text, TEXT)).status_code == 202
    assert kept(client) == [text, TEXT]


def test_what_dotnet_has_no_place_for_is_kept_and_comes_back(client: httpx.Client) -> None:
    odd = ChatMessage(
        role="assistant", contents=[UnknownContent(raw={"$type": "hologram"}), TextContent(text="x", extra={"/a": 1})]
    )
    text = chat_message.encode(odd).decode()
    assert post(client, body(text)).status_code == 202
    assert kept(client) == [text]
    assert chat_message.load(client.get("/chat-history/k").text) == [odd]


CALL = '{"$type":"functionCall","callId":"c","name":"f","arguments":%s}'


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("null", ""),
        ("1", ""),
        ("[]", ""),
        ('{"role":null}', ""),
        ('{"role":" "}', ""),
        ('{"role":1}', ""),
        ('{"role":"user","createdAt":"yesterday"}', ""),
        ('{"role":"user","contents":{}}', ""),
        ('{"role":"user","contents":[1]}', "/contents/0"),
        ('{"role":"user","contents":[{"$type":"text","text":"x"},{"$type":"hologram"}]}', "/contents/1"),
        ('{"role":"user","contents":[{"$type":"text","text":1}]}', "/contents/0"),
        ('{"role":"user","contents":[{"$type":"functionCall","name":"f"}]}', "/contents/0"),
        ('{"role":"user","contents":[%s]}' % (CALL % '"text"'), "/contents/0/arguments"),
        ('{"role":"user","contents":[%s]}' % (CALL % ("[" * 70 + "]" * 70)), "/contents/0"),
        ('{"role":"user","contents":[{"$type":"uri","uri":"http://[","mediaType":"a/b"}]}', "/contents/0"),
        ('{"role":"user","contents":[{"$type":"text","text":"\\ud800"}]}', "/contents/0/text"),
        (
            '{"role":"user","contents":[{"$type":"text","text":"x","annotations":[{"$type":"odd"}]}]}',
            "/contents/0/annotations/0",
        ),
        (
            (
                '{"role":"user","contents":[{"$type":"mcpServerToolResult","callId":"c","outputs":'
                '[{"$type":"text","text":"x"},{"$type":"hologram"}]}]}'
            ),
            "/contents/0/outputs/1",
        ),
        (
            '{"role":"user","contents":[{"$type":"usage","details":{"inputTokenCount":9223372036854775808}}]}',
            "/contents/0/details/inputTokenCount",
        ),
    ],
)
def test_a_message_that_dotnet_would_refuse_is_refused_with_its_place(
    client: httpx.Client, text: str, path: str
) -> None:
    for method in ("POST", "PUT"):
        answer = client.request(method, "/chat-history/k", content=body(TEXT, text), headers=JSON)
        assert answer.status_code == 422, answer.text
        problem = answer.json()
        assert problem["type"] == "urn:chathistory:problem:invalid-message"
        assert (problem["index"], problem["path"]) == (1, path)
        assert f"message 1{path} cannot be stored" in problem["detail"]
    assert client.get("/chat-history").json() == []


def test_a_refusal_shows_nothing_of_what_was_sent(client: httpx.Client) -> None:
    secret = "attack at dawn"
    for text in (
        f'{{"role":"user","contents":[{{"$type":"{secret}","{secret}":"{secret}"}}]}}',
        f'{{"role":"user","createdAt":"{secret}"}}',
        f'{{"role":"user","contents":[{{"$type":"text","text":{{"{secret}":"{secret}"}}}}]}}',
        f'{{"role":"user","additionalProperties":{{"{secret}":"\\ud800"}}}}',
        f'{{"role":"user" "{secret}"}}',
    ):
        answer = post(client, body(text))
        assert answer.status_code in (400, 422)
        assert secret not in answer.text
    sent = {"records": [{"format": "chat-message", "payload": secret}]}
    assert secret not in client.post("/records?key=k", json=sent, headers={"Idempotency-Key": "t"}).text


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.just("chathistory.extra"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "$type",
        "text",
        "name",
        "arguments",
        "callId",
        "result",
        "informationalOnly",
        "annotations",
        "additionalProperties",
        "x",
    ]
)
KINDS = st.sampled_from(["text", "functionCall", "functionResult", "reasoning", "Text"])
VALUES = (
    st.text(max_size=8)
    | st.booleans()
    | st.none()
    | st.dictionaries(st.text(max_size=3), st.text() | st.integers(), max_size=2)
)
CONTENTS = st.one_of(
    st.builds(lambda text: {"$type": "text", "text": text}, st.text()),
    st.builds(
        lambda name, arguments, known: {
            "$type": "functionCall",
            "name": name,
            "arguments": arguments,
            **known,
            "callId": name,
        },
        st.text(max_size=5),
        VALUES,
        st.sampled_from([{}, {"informationalOnly": True}, {"informationalOnly": None}]),
    ),
    st.builds(lambda kind, rest: {"$type": kind, **rest}, KINDS, st.dictionaries(NAMES, VALUES | PLAIN, max_size=4)),
)
TIMES = st.sampled_from(
    [
        "2026-04-16T01:30:52+00:00",
        "2026-04-16T01:30:52.5+00:00",
        "2026-02-31T01:30:52+00:00",
        "2026-04-16T01:30:52Z",
        "x",
    ]
)
SENT = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "tool", "User", " ", "odd", ["user"]]),
        "contents": st.lists(CONTENTS, max_size=3),
    },
    optional={
        "authorName": st.none() | st.text(max_size=5) | st.sampled_from([" ", "\x1c", "ann"]),
        "createdAt": st.none() | TIMES,
        "messageId": st.none() | st.text(max_size=5),
        "additionalProperties": st.none() | st.dictionaries(st.text(max_size=3), PLAIN, max_size=2),
        "odd": PLAIN,
    },
)


@settings(deadline=None, max_examples=300)
@given(SENT, st.booleans())
def test_a_message_is_kept_as_the_codec_writes_it_or_as_it_came(sent: dict[str, object], ascii: bool) -> None:  # noqa: A002
    text = json.dumps(sent, ensure_ascii=ascii)
    found = plain_payloads(body(text))
    if found is None:
        return
    try:
        (message,) = chat_message.decode(text.encode("utf-8", "surrogatepass"))
        expected = chat_message.encode(message)
    except (DecodeError, EncodeError):
        expected = b""
    assert found == [expected]
    assert chat_message.load(found[0])[0].origin is not None  # .NET takes it as it stands


def store(url: str, *records: Record, key: str = "k") -> None:
    async def main() -> None:
        async with open_backend(url) as backend:
            await backend.append(key, records, turn_id=new_turn_id())

    asyncio.run(main())


SHARED = "memory://of-all-tests"
OPENAI = json.dumps({"role": "user", "content": "Hi."}).encode()
NOTE = Record(b"\xff no message", "chathistory-note")


def test_a_conversation_in_other_formats_is_answered_as_messages(client: httpx.Client) -> None:
    store(SHARED, Record(OPENAI, openai_chat.name), NOTE, Record(TEXT.encode(), chat_message.name))
    answer = client.get("/chat-history/k")
    assert [message.text for message in chat_message.load(answer.text)] == ["Hi.", "Hello."]
    assert all(
        message.origin is not None for message in chat_message.load(answer.text)
    )  # .NET takes them as they stand
    assert answer.headers["Chat-History-Record-Count"] == "3"
    assert client.get("/chat-history").json() == [{"conversationKey": "k", "messageCount": 3}]


def test_limits_count_records(client: httpx.Client) -> None:
    store(SHARED, Record(OPENAI, openai_chat.name), NOTE, Record(TEXT.encode(), chat_message.name))
    assert len(client.get("/chat-history/k?limit=2").json()) == 1
    assert client.get("/chat-history/k?before=3&limit=1").json() == []


def test_stored_messages_are_passed_through_unread(client: httpx.Client) -> None:
    odd = b'{ "role":"user","contents":[], "odd": 1.50 }'
    store(SHARED, Record(TEXT.encode(), chat_message.name), Record(odd, chat_message.name))
    assert client.get("/chat-history/k").content == b"[%b,%b]" % (TEXT.encode(), odd)


@pytest.mark.parametrize(
    ("record", "told"),
    [
        (Record(b"?", "my-format"), {"position": 2, "format": "my-format"}),
        (Record(b"?", "chat-message+zstd"), {"position": 2, "format": "chat-message+zstd"}),
        (Record(b"secret", openai_chat.name), {"position": 2}),
    ],
)
def test_a_record_that_is_no_message_is_told_by_position_and_spoils_no_other_page(
    client: httpx.Client, record: Record, told: dict[str, object]
) -> None:
    store(SHARED, Record(TEXT.encode(), chat_message.name), record, Record(TEXT.encode(), chat_message.name))
    answer = client.get("/chat-history/k")
    assert answer.status_code == 406
    problem = answer.json()
    assert problem["type"] == "urn:chathistory:problem:unreadable-record"
    assert {name: problem.get(name) for name in told} == told
    assert "secret" not in answer.text
    assert client.get("/chat-history/k?after=2").text == f"[{TEXT}]"
    assert client.get("/records?key=k").status_code == 200
    assert client.head("/chat-history/k").status_code == 200


def test_a_codec_of_ones_own_writes_and_reads_what_is_kept(memory: str, serve: Serve) -> None:
    url = serve(create_app(open_backend(memory), codec=EncryptingCodec({"k1": b"a key"})))
    with httpx.Client(base_url=url, trust_env=False) as client:
        headers = {**JSON, "Idempotency-Key": "t"}
        for _ in range(2):  # encrypted anew, it is the same turn
            assert client.post("/chat-history/k", content=body(TEXT), headers=headers).status_code == 202
        assert client.get("/chat-history/k").text == f"[{TEXT}]"
        (record,) = client.get("/records?key=k").json()["records"]
        assert record["format"] != chat_message.name
        assert "Hello" not in json.dumps(record)


class Wrapping:
    """A codec whose records hold JSON as it came."""

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [Record(chat_message.encode(message), "chat-message+plain") for message in messages]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        return [chat_message.decode(record.payload) for record in records]


def test_what_a_codec_decodes_goes_out_as_dotnet_takes_it(memory: str, serve: Serve) -> None:
    exact = '{"role":"user","contents":[],"additionalProperties":{"n":2.50}}'
    for payload in ('{"Role":"user","CONTENTS":[{"text":"Hello.","$type":"text"}]}', exact):
        store(memory, Record(payload.encode(), "chat-message+plain"))
    url = serve(create_app(open_backend(memory), codec=Wrapping()))
    with httpx.Client(base_url=url, trust_env=False) as client:
        assert client.get("/chat-history/k").text == f"[{TEXT},{exact}]"


CHECKED = [
    TEXT,
    f" {TEXT}\n",
    '{"authorName":null,"role":"user","contents":[],"odd":1}',
    '{"role":"user","contents":[],"additionalProperties":{"n":2.50}}',
    chat_message.encode(ChatMessage(role="user", contents=[UnknownContent(raw={"$type": "hologram"})])).decode(),
]
UNCHECKED = [
    "",
    "[]",
    f"[{TEXT}]",
    "\ufeff" + TEXT,
    TEXT + TEXT,
    '{"Role":"user","contents":[]}',
    '{"role":"user","contents":[{"text":"x","$type":"text"}]}',
    '{"role":"user","contents":[{"$type":"hologram"}]}',
    '{"role":"user","contents":[],"contents":[]}',
    '{"role":"user","contents":[{"$type":"text","text":"\\ud800"}]}',
]


@pytest.mark.parametrize("payload", CHECKED)
def test_a_record_of_messages_that_dotnet_takes_is_kept_byte_for_byte(client: httpx.Client, payload: str) -> None:
    sent = {"records": [{"format": "chat-message", "payload": payload}]}
    assert client.post("/records?key=k", json=sent, headers={"Idempotency-Key": "t"}).status_code == 200
    assert kept(client) == [payload]


@pytest.mark.parametrize("payload", UNCHECKED)
def test_a_record_of_messages_that_dotnet_would_refuse_is_refused(client: httpx.Client, payload: str) -> None:
    good = {"format": "chat-message", "payload": TEXT}
    for method in ("POST", "PUT"):
        sent = {"records": [good, {"format": "chat-message", "payload": payload}]}
        answer = client.request(method, "/records?key=k", json=sent, headers={"Idempotency-Key": "t"})
        assert answer.status_code == 422, answer.text
        assert answer.json()["type"] == "urn:chathistory:problem:invalid-message"
        assert answer.json()["index"] == 1
    assert client.get("/records").json() == {"summaries": []}


@pytest.mark.parametrize("name", ["chat-message+zstd", "openai-chat", "my-format"])
def test_a_record_of_another_format_is_not_looked_at(client: httpx.Client, name: str) -> None:
    sent = {"records": [{"format": name, "payload": "?"}]}
    assert client.post("/records?key=k", json=sent, headers={"Idempotency-Key": "t"}).status_code == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({}, 400),
        ({"records": None}, 400),
        ([], 400),
        ({"records": []}, 422),
        ({"records": [None]}, 422),
        ({"records": [{"format": "Bad Format", "payload": ""}]}, 422),
        ({"records": [{"format": "", "payload": ""}]}, 422),
        ({"records": [{"format": "f"}]}, 422),
        ({"records": [{"format": "f", "payload": "\ud800"}]}, 422),
        ({"records": [{"format": "f", "payloadBase64": "YQ"}]}, 422),
    ],
)
def test_records_that_are_none_are_refused(client: httpx.Client, sent: object, status: int) -> None:
    answer = client.post("/records?key=k", content=json.dumps(sent), headers={**JSON, "Idempotency-Key": "t"})
    assert answer.status_code == status, answer.text
    if status == 422:
        assert answer.json()["type"] == "urn:chathistory:problem:invalid-record"
    assert client.get("/records").json() == {"summaries": []}


def test_a_replace_with_no_records_leaves_an_empty_conversation(client: httpx.Client) -> None:
    written = client.put("/records?key=k", json={"records": []}, headers={"Idempotency-Key": "t"})
    assert (written.status_code, written.json()["firstPosition"]) == (200, 1)
    assert client.get("/chat-history").json() == [{"conversationKey": "k", "messageCount": 0}]


def test_many_messages_are_kept_in_their_order(client: httpx.Client) -> None:
    texts = [f'{{"role":"user","contents":[{{"$type":"text","text":"{number}"}}]}}' for number in range(1_000)]
    odd = (
        '{"createdAt":"2026-04-16T01:30:52.1234567+09:00","role":"user","contents":[]}'  # so each is read the long way
    )
    assert post(client, body(*texts, odd)).status_code == 202
    assert client.get("/chat-history/k").text == f"[{','.join([*texts, odd])}]"


def test_large_messages_are_kept_whole(client: httpx.Client) -> None:
    text = json.dumps({"role": "user", "contents": [{"$type": "text", "text": "日本" * 500_000}]}, ensure_ascii=False)
    text = text.replace(": ", ":").replace(", ", ",")
    assert post(client, body(text).encode()).status_code == 202
    assert client.get("/chat-history/k").content == f"[{text}]".encode()
