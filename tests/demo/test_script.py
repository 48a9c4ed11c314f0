"""What the scripted model answers, driven by hand."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from chathistory_core.demo import DemoError, RefusedError, answer

TOOLS = [{"type": "function", "function": {"name": "get_time"}}]
TEN = "2026-01-02T10:00:00.000+01:00"
ELEVEN = "2026-01-02T11:00:00.250+01:00"
HOW_LONG: dict[str, object] = {"role": "user", "content": "How much time has passed since the first time you told me?"}
WHEN: dict[str, object] = {"role": "user", "content": "What time is it?"}


def request(*messages: object, tools: Sequence[object] = TOOLS) -> dict[str, object]:
    return {"model": "scripted", "messages": list(messages), "tools": list(tools)}


def told(time: str, call_id: str = "call_1") -> list[dict[str, object]]:
    call = {"id": call_id, "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    return [
        WHEN,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": time},
        {"role": "assistant", "content": f"It is {time}."},
    ]


def test_a_question_for_the_time_is_a_call_of_the_tool() -> None:
    reply = answer(request(WHEN))
    assert reply["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    ]


def test_the_tools_result_is_the_answer() -> None:
    assert answer(request(*told(TEN)[:3]))["content"] == f"It is {TEN}."


def test_a_question_in_parts_is_a_question() -> None:
    assert answer(request({"role": "user", "content": [{"type": "text", "text": "What time is it?"}]}))["tool_calls"]


def test_how_much_has_passed_is_worked_out_from_the_earlier_results() -> None:
    said = str(answer(request(*told(TEN), *told(ELEVEN), HOW_LONG))["content"])
    assert said.startswith("3600.250 seconds have passed since ")
    assert datetime.fromisoformat(said.removesuffix(".").rpartition(" ")[2]) == datetime.fromisoformat(TEN)


def test_the_same_call_id_in_two_turns_is_two_calls() -> None:
    messages = [*told(TEN, "call_0"), *told(TEN, "call_0"), HOW_LONG]
    assert str(answer(request(*messages))["content"]).startswith("0.000 seconds")


def test_anything_else_is_answered_by_what_can_be_asked() -> None:
    assert "I can tell" in str(answer(request({"role": "user", "content": "Hello"}))["content"])


@pytest.mark.parametrize(
    "messages",
    [[HOW_LONG], [*told(TEN), HOW_LONG], [*told(TEN)[3:], *told(ELEVEN)[3:], HOW_LONG]],
    ids=["nothing earlier", "one earlier result", "answers without the results they came from"],
)
def test_how_much_has_passed_is_refused_without_the_earlier_results(messages: list[object]) -> None:
    with pytest.raises(RefusedError, match="history is missing"):
        answer(request(*messages))


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([*told(TEN)[:2], *told(TEN)[3:], WHEN], "a tool call is not followed by its result"),
        (told(TEN)[:2], "a tool call is not followed by its result"),
        ([WHEN, *told(TEN)[2:], WHEN], "a tool's result follows no call of its id"),
        (told("noon")[:3], "not a time in ISO 8601"),
        (told(TEN), "neither a user's nor a tool's"),
        ([], "neither a user's nor a tool's"),
        (["text"], "'messages' is not an array of objects"),
        ([{"role": "user", "content": 5}], "'content' is not an array of objects"),
    ],
)
def test_messages_that_no_conversation_has_are_refused(messages: list[object], reason: str) -> None:
    with pytest.raises(RefusedError, match=reason):
        answer(request(*messages))


def test_a_call_of_a_tool_that_is_not_offered_is_refused() -> None:
    with pytest.raises(RefusedError, match="get_time is not among the tools"):
        answer(request(WHEN, tools=[]))


def test_another_model_and_streaming_are_refused() -> None:
    with pytest.raises(RefusedError, match="one model here, 'scripted'"):
        answer({**request(WHEN), "model": "other"})
    with pytest.raises(RefusedError, match="does not stream"):
        answer({**request(WHEN), "stream": True})


def test_what_is_refused_is_an_error_of_the_demonstration() -> None:
    assert issubclass(RefusedError, DemoError)
