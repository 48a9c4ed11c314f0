"""Calls without results and results without calls are mended in what is shown, the same way every time."""

from collections.abc import Sequence
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage, FunctionResultContent
from chathistory_core.views.repair import SYNTHETIC_KEY, mended, unpaired

from .histories import HISTORIES, SOUND, generated
from .messages import (
    ASSISTANT,
    USER,
    call,
    calls,
    hosted,
    reasoning,
    request,
    response,
    result,
    results,
    says,
    text,
)

How = Literal["drop", "answer"]
BOTH = st.sampled_from(["drop", "answer"])


def seen(messages: Sequence[ChatMessage], how: How, *following: ChatMessage) -> list[ChatMessage]:
    return list(mended(messages, how, following=following).messages)


def answers(message: ChatMessage) -> list[tuple[str, bool]]:
    """The ids that its results answer, and whether each is marked."""
    return [
        (content.call_id, (content.additional_properties or {}).get(SYNTHETIC_KEY) is True)
        for content in message.contents
        if isinstance(content, FunctionResultContent)
    ]


def test_a_dangling_call_is_left_out() -> None:
    messages = [USER("go"), calls("c"), USER("still there?")]
    assert seen(messages, "drop") == [messages[0], messages[2]]


def test_a_dangling_call_is_answered_by_a_marked_result_right_behind_it() -> None:
    messages = [USER("go"), calls("c"), USER("still there?")]
    shown = seen(messages, "answer")
    assert [shown[0], shown[1], shown[3]] == messages
    assert shown[2].role == "tool"
    assert answers(shown[2]) == [("c", True)]


def test_parallel_calls_without_results_are_answered_in_one_message_behind_those_that_have_some() -> None:
    messages = [calls("a", "b", "c"), results("b"), ASSISTANT("so")]
    shown = seen(messages, "answer")
    assert [shown[0], shown[1], shown[3]] == messages
    assert answers(shown[2]) == [("a", True), ("c", True)]


def test_of_a_call_that_was_executed_the_answer_says_so() -> None:
    shown = [seen([says("assistant", call("c", executed=executed))], "answer")[1] for executed in (True, False)]
    assert shown[0] != shown[1]


def test_what_stands_beside_a_call_stays() -> None:
    messages = [says("assistant", text("let me see"), call("a"), call("b")), results("b")]
    assert seen(messages, "drop") == [says("assistant", text("let me see"), call("b")), messages[1]]


@pytest.mark.parametrize("how", ["drop", "answer"])
def test_results_without_a_call_are_left_out_and_what_stands_beside_them_stays(how: How) -> None:
    messages = [USER("1"), results("z"), says("user", result("y"), text("2")), ASSISTANT("3")]
    assert seen(messages, how) == [USER("1"), USER("2"), ASSISTANT("3")]


def test_reasoning_goes_with_the_call_that_it_led_to() -> None:
    hm = says("assistant", reasoning())
    messages = [USER("?"), hm, says("assistant", reasoning(), text(""), call("c")), USER("!")]
    assert seen(messages, "drop") == [messages[0], messages[3]]
    healthy = [USER("?"), hm, calls("c"), results("c"), says("assistant", reasoning(), call("d"))]
    assert seen(healthy, "drop") == healthy[:4]


def test_calls_that_the_request_answers_are_left_alone() -> None:
    messages = [USER("where am I?"), calls("a", "b")]
    assert seen(messages, "drop", results("a", "b")) == messages
    assert seen(messages, "answer", results("b"), results("a")) == messages
    assert seen(messages, "drop", results("a")) == [messages[0], calls("a")]
    half = seen(messages, "answer", results("a"))
    assert half[:2] == messages
    assert answers(half[2]) == [("b", True)]


@pytest.mark.parametrize("how", ["drop", "answer"])
def test_an_approval_that_is_pending_is_left_alone(how: How) -> None:
    waiting = [USER("delete it"), says("assistant", request("p", "c"))]
    with_call = [USER("delete it"), says("assistant", call("c"), request("p", "c"))]
    assert seen(waiting, how) == waiting
    assert seen(waiting, how, USER("never mind")) == waiting
    assert seen(with_call, how) == with_call
    assert seen(with_call, how, says("user", response("p", "c")), results("c")) == with_call


def test_of_a_request_that_was_passed_over_only_the_call_beside_it_goes() -> None:
    messages = [says("assistant", call("c"), request("p", "c"))]
    assert seen(messages, "drop", USER("never mind")) == [says("assistant", request("p", "c"))]
    assert [answers(message) for message in seen(messages, "answer", USER("never mind"))] == [[], [("c", True)]]


@pytest.mark.parametrize("how", ["drop", "answer"])
def test_an_approval_that_was_answered_and_its_call_executed_is_left_alone(how: How) -> None:
    messages = [
        says("assistant", request("p", "c")),
        USER("never mind"),
        says("user", response("p", "c", approved=False)),
        says("assistant", call("c", executed=True)),
        results("c"),
    ]
    assert seen(messages, how) == messages


@pytest.mark.parametrize("how", ["drop", "answer"])
def test_calls_of_the_models_service_are_left_alone(how: How) -> None:
    messages = [says("assistant", hosted("m")), USER("?")]
    assert seen(messages, how) == messages


def test_a_changed_message_of_a_client_is_sent_as_it_is_shown() -> None:
    theirs: list[dict[str, Any]] = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}} for each in "ab"
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "seen"},
        {"role": "user", "content": "and?"},
    ]
    sent = openai_chat.dump(seen(openai_chat.load(theirs), "drop"))
    assert sent == [{**theirs[0], "tool_calls": theirs[0]["tool_calls"][:1]}, *theirs[1:]]
    answered = openai_chat.dump(seen(openai_chat.load(theirs), "answer"))
    assert [message.get("tool_call_id") for message in answered] == [None, "a", "b", None]
    assert [answered[0], answered[1], answered[3]] == theirs


def test_it_says_what_each_message_was_made_of() -> None:
    messages = [USER("1"), results("z"), calls("a", "b"), results("a"), USER("2")]
    assert list(mended(messages, "drop").sources) == [0, 2, 3, 4]
    assert list(mended(messages, "answer").sources) == [0, 2, 3, None, 4]


def test_it_says_what_has_no_counterpart() -> None:
    found = unpaired([results("z"), calls("a", "b"), results("a")])
    assert [tuple(place) for place in found.calls] == [(1, 1)]
    assert [tuple(place) for place in found.results] == [(0, 0)]


@generated
@given(SOUND, BOTH)
def test_where_nothing_is_missing_nothing_changes(messages: list[ChatMessage], how: How) -> None:
    shown = seen(messages, how)
    assert len(shown) == len(messages)
    assert all(one is other for one, other in zip(shown, messages, strict=True))


@generated
@given(HISTORIES, BOTH, HISTORIES)
def test_nothing_is_missing_afterwards(messages: list[ChatMessage], how: How, following: list[ChatMessage]) -> None:
    found = unpaired(seen(messages, how, *following), following)
    assert not found.calls
    assert not found.results


@generated
@given(HISTORIES, BOTH, HISTORIES)
def test_mending_twice_changes_nothing(messages: list[ChatMessage], how: How, following: list[ChatMessage]) -> None:
    once = seen(messages, how, *following)
    again = seen(once, how, *following)
    assert len(once) == len(again)
    assert all(one is other for one, other in zip(once, again, strict=True))


@generated
@given(HISTORIES, BOTH)
def test_what_is_shown_keeps_the_order_and_says_no_more_than_was_said(messages: list[ChatMessage], how: How) -> None:
    found = mended(messages, how)
    sources = [source for source in found.sources if source is not None]
    assert sources == sorted(set(sources))
    for message, source in zip(found.messages, found.sources, strict=True):
        if source is None:
            assert answers(message)
            assert all(marked for _, marked in answers(message))
        else:
            theirs = iter(messages[source].contents)
            assert all(any(content is other for other in theirs) for content in message.contents)


@generated
@given(HISTORIES, BOTH)
def test_what_people_and_models_said_stays(messages: list[ChatMessage], how: How) -> None:
    assert [message.text for message in seen(messages, how) if message.text] == [
        message.text for message in messages if message.text
    ]
