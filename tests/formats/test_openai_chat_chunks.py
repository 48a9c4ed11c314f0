"""The chunks of a streamed answer are the message that would have come whole."""

import json
from typing import Any

import pytest
from openai.types.chat import ChatCompletionChunk

from chathistory_core import DecodeError
from chathistory_core.formats import openai_chat
from chathistory_core.messages import is_incomplete


def chunk(delta: dict[str, Any] | None = None, finish_reason: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": choices,
        **more,
    }


def call(index: int | None, **function: str) -> dict[str, Any]:
    return {"index": index, "function": function}


TEXT = [
    chunk({"role": "assistant", "content": "", "refusal": None}),
    chunk({"content": "Once "}),
    chunk({"content": "upon"}),
    chunk({}, "stop"),
    chunk(usage={"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}),
]
CALLS = [
    chunk({"role": "assistant", "content": None}),
    chunk({"reasoning_content": "I need "}),
    chunk({"reasoning_content": "the clock."}),
    chunk(
        {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "look", "arguments": ""}}]}
    ),
    chunk({"tool_calls": [call(0, arguments='{"a"')]}),
    chunk(
        {"tool_calls": [{"index": 1, "id": "c2", "type": "function", "function": {"name": "look", "arguments": "{"}}]}
    ),
    chunk({"tool_calls": [call(0, arguments=": 1}"), call(1, arguments="}")]}),
    chunk({}, "tool_calls"),
]
WHOLE_CALLS = {
    "role": "assistant",
    "content": None,
    "reasoning_content": "I need the clock.",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}},
    ],
}


def objects(chunks: list[dict[str, Any]]) -> list[ChatCompletionChunk]:
    return [ChatCompletionChunk.model_validate(each) for each in chunks]


@pytest.mark.parametrize(
    ("chunks", "whole"),
    [
        (TEXT, {"role": "assistant", "content": "Once upon", "refusal": None}),
        (CALLS, WHOLE_CALLS),
        ([chunk({"content": "no role"}, "length")], {"role": "assistant", "content": "no role"}),
        (
            [chunk({"refusal": "I must "}), chunk({"refusal": "not."}, "stop")],
            {"role": "assistant", "content": None, "refusal": "I must not."},
        ),
        (
            [
                chunk({"audio": {"id": "au", "data": "AA", "transcript": "a "}}),
                chunk({"audio": {"data": "BB", "transcript": "b", "expires_at": 7}}, "stop"),
            ],
            {
                "role": "assistant",
                "content": None,
                "audio": {"id": "au", "data": "AABB", "transcript": "a b", "expires_at": 7},
            },
        ),
    ],
    ids=["text", "calls", "no role", "refusal", "audio"],
)
def test_the_message_is_the_one_that_would_have_come_whole(chunks: list[dict[str, Any]], whole: dict[str, Any]) -> None:
    expected = openai_chat.load(whole)
    for given in (chunks, objects(chunks), [json.dumps(each) for each in chunks]):
        found = openai_chat.load_chunks(given)
        assert found == expected
        origin = found[0].origin
        assert origin is not None
        assert json.loads(origin.payload) == whole


@pytest.mark.parametrize("chunks", [TEXT, CALLS], ids=["text", "calls"])
def test_an_answer_that_broke_off_is_marked_and_can_be_sent_again(chunks: list[dict[str, Any]]) -> None:
    assert openai_chat.load_chunks([]) == openai_chat.load_chunks([chunk()]) == []
    for length in range(1, len(chunks) + 1):
        (message,) = openai_chat.load_chunks(chunks[:length])
        ended = any(choice["finish_reason"] for each in chunks[:length] for choice in each["choices"])
        assert is_incomplete(message) is not ended
        assert "_incomplete" not in json.dumps(openai_chat.dump([message]))


def test_calls_of_servers_that_give_each_the_same_place_or_none_stay_apart() -> None:
    def whole(call_id: str, **more: Any) -> dict[str, Any]:
        return {"id": call_id, "type": "function", "function": {"name": "look", "arguments": "{}"}, **more}

    for places in ({"index": 0}, {}):
        (message,) = openai_chat.load_chunks(
            [chunk({"tool_calls": [whole("c1", **places)]}), chunk({"tool_calls": [whole("c2", **places)]}, "stop")]
        )
        assert openai_chat.dump([message])[0]["tool_calls"] == [whole("c1"), whole("c2")]  # type: ignore[typeddict-item] # an assistant's


def test_a_name_and_an_id_that_come_with_every_chunk_are_taken_once() -> None:
    part = {"index": 0, "id": "c1", "type": "function"}
    (message,) = openai_chat.load_chunks(
        [
            chunk({"role": "assistant", "tool_calls": [{**part, "function": {"name": "look", "arguments": '{"a"'}}]}),
            chunk(
                {"role": "assistant", "tool_calls": [{**part, "function": {"name": "look", "arguments": ":1}"}}]},
                "stop",
            ),
        ]
    )
    assert openai_chat.dump([message]) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"a":1}'}}],
        }
    ]


@pytest.mark.parametrize(
    ("chunks", "reason"),
    [
        ([{"choices": [{"index": 1, "delta": {"content": "canary"}}]}], "chunk 0 is of one of several answers"),
        ([chunk({"content": "a"}), {"role": "assistant", "content": "canary"}], "chunk 1 has no list of choices"),
        (["canary"], "message 0 is no JSON"),
    ],
)
def test_what_is_no_chunk_of_one_answer_is_refused_without_its_content(chunks: list[Any], reason: str) -> None:
    with pytest.raises(DecodeError, match=reason) as refused:
        openai_chat.load_chunks(chunks)
    assert "canary" not in str(refused.value)
