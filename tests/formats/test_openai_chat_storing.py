import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import OpenAI
from openai.types.chat import (
    ChatCompletion,
    ChatCompletionMessage,
    ChatCompletionMessageFunctionToolCall,
    ParsedChatCompletionMessage,
)

from chathistory_core import StoredRecord
from chathistory_core.codec import MessageCodec
from chathistory_core.formats import chat_message, openai_chat
from chathistory_core.messages import ChatMessage

# Machines that run tests are at times too busy for a deadline.
many = settings(deadline=None, max_examples=int(os.environ.get("EXAMPLES", "60")))

DATA = Path(__file__).resolve().parents[2] / "../shared/data/openai_chat"
KEY = "a conversation"


def store(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """What a backend gives back of them."""
    codec = MessageCodec()

    async def there_and_back() -> list[ChatMessage]:
        records = await codec.encode(KEY, messages)
        assert {record.format for record in records} <= {"openai-chat"}
        stored = [
            StoredRecord(record.payload, record.format, number, "turn", datetime.now(UTC))
            for number, record in enumerate(records, 1)
        ]
        return [message for group in await codec.decode(KEY, stored) for message in group]

    return asyncio.run(there_and_back())


def payload(message: ChatMessage) -> bytes:
    assert message.origin is not None
    return message.origin.payload


def as_chat_message(message: ChatMessage) -> ChatMessage:
    (read,) = chat_message.decode(chat_message.encode(message))
    return read


def check(given: Sequence[dict[str, Any]]) -> None:
    """Stored and read it is the same JSON value with the same order of keys."""
    messages = openai_chat.load(given)
    stored = store(messages)
    assert stored == messages
    assert [json.dumps(json.loads(payload(message))) for message in stored] == [json.dumps(one) for one in given]


def check_as_chat_messages(given: Sequence[dict[str, Any]]) -> None:
    messages = openai_chat.load(given)
    assert [as_chat_message(message) for message in messages] == messages


def conversations(value: Any) -> Iterator[list[dict[str, Any]]]:
    """Every list of nothing but messages."""
    if isinstance(value, list) and value and all(map(is_message, value)):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from conversations(item)
    elif isinstance(value, str) and '"role"' in value:
        try:
            yield from conversations(json.loads(value))
        except ValueError:
            return


def is_message(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "parts" not in value


def answers(value: Any) -> Iterator[dict[str, Any]]:
    """Every message of a response."""
    if isinstance(value, dict) and isinstance(value.get("choices"), list):
        yield from (choice["message"] for choice in value["choices"] if "message" in choice)
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from answers(item)


def real_conversations() -> list[list[dict[str, Any]]]:
    documents = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(DATA.glob("*.json"))]
    return [
        conversation
        for document in documents
        for conversation in [*conversations(document), *([answer] for answer in answers(document))]
    ]


with_real_conversations = pytest.mark.skipif(
    not DATA.is_dir(), reason="the shared folder of real conversations is not beside the project"
)


@with_real_conversations
def test_real_messages_survive() -> None:
    found = real_conversations()
    assert sum(map(len, found)) >= 515
    for conversation in found:
        check(conversation)


@with_real_conversations
def test_real_messages_are_equal_when_written_as_chat_messages() -> None:
    for conversation in real_conversations():
        check_as_chat_messages(conversation)


@with_real_conversations
def test_real_messages_are_sent_as_they_came() -> None:
    for conversation in real_conversations():
        written = openai_chat.dump(openai_chat.load(conversation))
        assert json.dumps(written) == json.dumps([without_what_only_answers_have(one) for one in conversation])


def without_what_only_answers_have(one: dict[str, Any]) -> dict[str, Any]:
    silent = {"annotations"} | {name for name in ("function_call", "tool_calls") if not one.get(name)}
    return {name: value for name, value in one.items() if name not in silent}


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
# Named so that no extra is one of the format's own members.
EXTRAS = st.dictionaries(TEXT.map("x_{}".format), JSON, max_size=2)


def shaped(members: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> Any:
    return st.builds(
        lambda known, extras: {**known, **extras}, st.fixed_dictionaries(members, optional=optional), EXTRAS
    )


URL = TEXT.map("https://x.test/{}".format) | st.just("data:image/png;base64,iVBORw0KGgo=")
TEXT_PART = shaped({"type": st.just("text"), "text": TEXT})
REFUSAL_PART = shaped({"type": st.just("refusal"), "refusal": TEXT})
PART = (
    TEXT_PART
    | shaped({"type": st.just("image_url"), "image_url": shaped({"url": URL}, detail=st.sampled_from(["low", "auto"]))})
    | shaped(
        {
            "type": st.just("input_audio"),
            "input_audio": shaped({"data": st.just("AAAA"), "format": st.sampled_from(["wav", "mp3"])}),
        }
    )
    | shaped({"type": st.just("file"), "file": shaped({"file_id": TEXT}, filename=TEXT)})
    | shaped({"type": st.just("file"), "file": shaped({"file_data": URL}, filename=TEXT)})
    | shaped({"type": TEXT.map("later_{}".format)})
)
NAME = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
CALL = shaped(
    {"id": TEXT, "type": st.just("function"), "function": shaped({"name": TEXT, "arguments": TEXT})}
) | shaped({"id": TEXT, "type": st.just("custom"), "custom": shaped({"name": TEXT, "input": TEXT})})
CALLS = st.lists(CALL, min_size=1, max_size=3)
LEGACY = shaped({"name": TEXT, "arguments": TEXT | st.just('{"a": 1.10}')})
MESSAGE = (
    shaped(
        {"role": st.sampled_from(["system", "developer"]), "content": TEXT | st.lists(TEXT_PART, max_size=3)}, name=NAME
    )
    | shaped({"role": st.just("user"), "content": TEXT | st.lists(PART, max_size=4)}, name=NAME)
    | shaped(
        {"role": st.just("assistant"), "content": TEXT | st.none() | st.lists(TEXT_PART | REFUSAL_PART, max_size=3)},
        name=NAME,
        refusal=TEXT | st.none(),
        audio=st.none() | shaped({"id": TEXT}).map(lambda audio: {"id": audio["id"]}),
        tool_calls=CALLS,
        function_call=LEGACY,
        reasoning_content=TEXT,
        reasoning=TEXT | JSON,
    )
    | shaped({"role": st.just("assistant"), "tool_calls": CALLS}, name=NAME)
    | shaped({"role": st.just("tool"), "tool_call_id": TEXT, "content": TEXT | st.lists(TEXT_PART, min_size=1)})
    | shaped({"role": st.just("function"), "name": TEXT, "content": TEXT | st.none()})
)


@many
@given(MESSAGE)
def test_any_request_is_sent_as_it_came_and_says_the_same_when_written_from_the_model(one: dict[str, Any]) -> None:
    (message,) = openai_chat.load(one)
    (written,) = cast("list[dict[str, Any]]", openai_chat.dump([message]))
    assert json.dumps(written) == json.dumps(one)
    assert openai_chat.dump([message.with_origin(None)]) == [one]


@many
@given(MESSAGE)
def test_any_request_survives(one: dict[str, Any]) -> None:
    check([one])


@many
@given(MESSAGE)
def test_any_request_is_equal_when_written_as_a_chat_message(one: dict[str, Any]) -> None:
    check_as_chat_messages([one])


def call(number: str, arguments: str) -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": "f", "arguments": arguments}}


TRAPS: list[dict[str, Any]] = [
    {"role": "user", "content": "a"},
    {"role": "user", "content": "a"},
    {"role": "assistant", "content": None, "tool_calls": [call("c", "{}"), call("c", '{"broken')]},
    {"role": "tool", "tool_call_id": "c", "content": "2"},
    {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "1"}]},
    {"role": "assistant", "tool_calls": [call("c", "")], "refusal": None, "audio": None, "annotations": []},
    {"tool_call_id": "c", "content": "\x1b[31m\r\n日本\u2028😀", "role": "tool"},
    {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}, "tool_calls": None},
    {"role": "function", "name": "f", "content": None},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "y"}]},
    {"role": "user", "content": [None, {"TYPE": "a", "type": "b"}], "chathistory.extra": "{}"},
    {"role": "assistant", "content": "a", "annotations": [{"type": "url_citation", "url_citation": {}}]},
    {"role": "assistant", "content": None, "audio": {"id": "a", "data": "AAAA", "transcript": "hi"}},
    {"role": "assistant", "content": None, "refusal": "no", "x": 2**70, "y": -0.0, "z": 1e300},
]


def test_traps_survive() -> None:
    check(TRAPS)


@pytest.mark.parametrize("trap", TRAPS)
def test_traps_are_equal_when_written_as_chat_messages(trap: dict[str, Any]) -> None:
    check_as_chat_messages([trap])


REPLY: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": None,
            "message": {
                "content": None,
                "refusal": None,
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c",
                        "function": {"arguments": '{"a":1}', "name": "f"},
                        "type": "function",
                        "extra_content": {"google": {"thought_signature": "abc"}},
                    }
                ],
                "reasoning_content": "thinking",
            },
        }
    ],
}


def test_objects_of_the_sdk_are_taken_and_are_what_they_say_of_themselves() -> None:
    reply = ChatCompletion.model_validate(REPLY)
    message = reply.choices[0].message
    expected = message.to_dict()
    assert expected == REPLY["choices"][0]["message"]
    for source in (message, reply, [message], {"messages": [message]}):
        (loaded,) = openai_chat.load(source)
        assert json.dumps(json.loads(payload(loaded))) == json.dumps(expected)
        assert store([loaded]) == [loaded]
        assert openai_chat.dump([loaded]) == [expected]


def test_members_that_the_sdk_fills_in_are_not_stored() -> None:
    message = ChatCompletionMessage(role="assistant", content="a")
    assert payload(openai_chat.load(message)[0]) == b'{"content":"a","role":"assistant"}'


def test_an_object_of_the_sdk_that_was_never_checked_is_taken() -> None:
    message = ChatCompletionMessage.construct(role="assistant", content=[{"type": "later"}], later={"a": 1})
    (loaded,) = openai_chat.load(message)
    assert json.loads(payload(loaded)) == {"content": [{"type": "later"}], "role": "assistant", "later": {"a": 1}}


def test_what_the_sdk_parsed_is_stored_but_not_sent() -> None:
    message = ParsedChatCompletionMessage[Any].model_validate(
        {"role": "assistant", "content": "{}", "parsed": {"a": 1}}
    )
    (loaded,) = openai_chat.load(message)
    assert json.loads(payload(loaded)) == {"content": "{}", "role": "assistant", "parsed": {"a": 1}}
    assert openai_chat.dump([loaded]) == [{"content": "{}", "role": "assistant"}]


def test_objects_of_the_sdk_inside_a_dict_are_taken() -> None:
    call = ChatCompletionMessageFunctionToolCall.model_validate(REPLY["choices"][0]["message"]["tool_calls"][0])
    (loaded,) = openai_chat.load({"role": "assistant", "tool_calls": (call,)})
    assert openai_chat.dump([loaded]) == [{"role": "assistant", "tool_calls": [call.to_dict()]}]


def test_the_client_sends_what_was_dumped_and_what_it_gives_back_is_loaded() -> None:
    sent: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            sent.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"])
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(REPLY).encode())

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            with OpenAI(api_key="none", base_url=f"http://127.0.0.1:{server.server_port}") as client:
                messages = [ChatMessage.user("What time is it?")]
                for _ in range(2):
                    reply = client.chat.completions.create(model="m", messages=openai_chat.dump(messages))
                    messages += openai_chat.load(reply.choices[0].message)
                    messages.append(ChatMessage.tool("c", {"time": "12:00"}))
        finally:
            server.shutdown()
            thread.join()
    asked = {"role": "user", "content": "What time is it?"}
    result = {"role": "tool", "tool_call_id": "c", "content": '{"time":"12:00"}'}
    assert sent == [[asked], [asked, REPLY["choices"][0]["message"], result]]


def test_the_format_does_not_load_the_sdk() -> None:
    code = "import sys; from chathistory_core.formats import openai_chat; sys.exit('openai' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
