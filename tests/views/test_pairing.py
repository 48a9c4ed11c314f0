"""Which messages stand or fall together."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given

from chathistory_core.messages import ChatMessage
from chathistory_core.views.matching import Place
from chathistory_core.views.pairing import Unit, settled, units

from .golden import RUNS
from .histories import HISTORIES, SOUND, generated
from .messages import (
    ASSISTANT,
    SYSTEM,
    USER,
    call,
    calls,
    hosted,
    hosted_result,
    reasoning,
    request,
    response,
    result,
    results,
    says,
    text,
)


def shape(messages: Sequence[ChatMessage]) -> list[tuple[str, int]]:
    """The kind of each unit and how many messages it has."""
    return [(unit.kind, unit.stop - unit.start) for unit in units(messages)]


def only(messages: Sequence[ChatMessage]) -> Unit:
    """The one unit with tools among the messages."""
    (found,) = [unit for unit in units(messages) if unit.kind == "tools"]
    return found


def test_each_text_is_a_unit_of_its_speaker() -> None:
    messages = [SYSTEM("rules"), says("Developer", text("more")), USER("hello"), ASSISTANT("hi"), says("critic")]
    assert shape(messages) == [("system", 1), ("system", 1), ("user", 1), ("assistant", 1), ("assistant", 1)]
    assert units([]) == []


def test_a_call_and_its_result_are_one_round() -> None:
    messages = [USER("time?"), calls("c"), results("c"), ASSISTANT("noon")]
    assert shape(messages) == [("user", 1), ("tools", 2), ("assistant", 1)]
    assert only(messages).complete
    assert only(messages).of(messages) == messages[1:3]


@pytest.mark.parametrize(
    "answers",
    [
        [results("a", "b", "c")],
        [results("c", "a", "b")],
        [results("b"), results("a"), results("c")],
        [results("c"), results("a", "b")],
        [says("user", result("a"), result("b"), result("c"))],
    ],
    ids=["one message", "another order", "a message each", "two messages", "of the role user"],
)
def test_results_of_parallel_calls_come_in_any_order_and_any_number_of_messages(answers: list[ChatMessage]) -> None:
    messages = [calls("a", "b", "c"), *answers, ASSISTANT("so")]
    assert shape(messages) == [("tools", 1 + len(answers)), ("assistant", 1)]
    assert only(messages).complete


def test_parallel_calls_in_messages_of_their_own_are_one_round() -> None:
    messages = [calls("a"), calls("b"), results("a"), results("b")]
    assert shape(messages) == [("tools", 4)]
    assert only(messages).complete


def test_rounds_one_after_another_are_apart() -> None:
    messages = [calls("a"), results("a"), calls("a"), results("a"), calls("b", "c"), results("c", "b")]
    assert shape(messages) == [("tools", 2)] * 3


def test_an_id_that_repeats_is_paired_by_position() -> None:
    messages = [calls("call_0"), calls("call_0"), results("call_0")]
    first, second = units(messages)
    assert (first.dangling, second.dangling) == ((Place(0, 0),), ())
    assert (second.start, second.stop) == (1, 3)


def test_calls_of_one_message_that_share_an_id_are_answered_in_their_order() -> None:
    assert only([calls("", ""), results("", "")]).complete
    assert only([calls("x", "", ""), results("x", "")]).dangling == (Place(0, 2),)


def test_a_second_result_of_one_call_is_an_orphan() -> None:
    assert [unit.orphans for unit in units([calls("a"), results("a"), results("a")])] == [(), (Place(2, 0),)]


@pytest.mark.parametrize("between", [USER("hurry"), SYSTEM("rules"), ASSISTANT("a moment"), says("assistant")])
def test_what_is_said_parts_a_call_from_a_later_result(between: ChatMessage) -> None:
    first, _, last = units([calls("a"), between, results("a")])
    assert (first.dangling, last.orphans) == ((Place(0, 0),), (Place(2, 0),))
    assert not first.complete
    assert not last.complete


def test_a_message_may_hold_what_is_paired_and_what_is_not() -> None:
    messages = [calls("a", "b"), says("tool", result("z"), result("a"))]
    found = only(messages)
    assert (found.start, found.stop) == (0, 2)
    assert found.dangling == (Place(0, 1),)
    assert found.orphans == (Place(1, 0),)


def test_results_before_text_in_a_users_message_are_paired() -> None:
    messages = [calls("a", "b"), says("user", result("a"), text("and now?"), result("b"))]
    assert only(messages).complete


def test_reasoning_belongs_to_what_the_assistant_does_next() -> None:
    hm = says("assistant", reasoning())
    assert shape([USER("?"), hm, calls("a"), results("a")]) == [("user", 1), ("tools", 3)]
    assert shape([calls("a"), results("a"), hm, calls("b"), results("b")]) == [("tools", 2), ("tools", 3)]
    assert shape([calls("a"), hm, results("a")]) == [("tools", 3)]
    assert shape([hm, hm, ASSISTANT("so")]) == [("assistant", 3)]
    assert shape([hm, USER("well?")]) == [("assistant", 1), ("user", 1)]


def test_calls_of_the_models_service_keep_together_and_are_never_missing_something() -> None:
    apart = [says("assistant", hosted("m")), says("assistant", hosted_result("m")), ASSISTANT("so")]
    assert shape(apart) == [("tools", 2), ("assistant", 1)]
    within = [says("assistant", hosted("m"), hosted_result("m"), text("so"))]
    assert shape(within) == [("assistant", 1)]
    alone = [says("assistant", hosted("m")), USER("?"), says("assistant", hosted_result("m"))]
    assert all(unit.complete for unit in units(alone))


def test_a_request_that_waits_for_an_approval_is_pending_and_its_call_not_dangling() -> None:
    bare = [USER("delete it"), says("assistant", request("p", "c"))]
    assert only(bare).pending == (Place(1, 0),)
    with_call = [USER("delete it"), says("assistant", call("c"), request("p", "c"))]
    assert only(with_call).pending == (Place(1, 1),)
    assert only(with_call).dangling == ()
    call_last = [says("assistant", request("p", "c"), call("c"))]
    assert (only(call_last).pending, only(call_last).dangling) == ((Place(0, 0),), ())


def test_a_call_beside_a_request_dangles_once_something_else_was_said() -> None:
    messages = [says("assistant", call("c"), request("p", "c")), USER("never mind"), ASSISTANT("as you like")]
    found = only(messages)
    assert (found.dangling, found.pending) == ((Place(0, 0),), (Place(0, 1),))


def test_of_parallel_calls_the_one_whose_approval_is_pending_waits_while_the_other_is_answered() -> None:
    asked = says("assistant", call("a"), request("p", "a"), call("b"), request("q", "b"))
    messages = [asked, says("user", response("p", "a")), results("a")]
    found = only(messages)
    assert (found.dangling, found.pending) == ((), (Place(0, 3),))
    answered = [*messages, says("user", response("q", "b")), results("b")]
    assert only(answered).complete


def test_from_request_to_result_an_approval_is_one_round() -> None:
    messages = [
        says("assistant", request("p", "c")),
        says("user", response("p", "c")),
        says("assistant", call("c", executed=True)),
        results("c"),
        ASSISTANT("done"),
    ]
    for stop in range(1, 5):
        assert shape(messages[:stop]) == [("tools", stop)]
    assert shape(messages) == [("tools", 4), ("assistant", 1)]
    assert only(messages).complete
    assert only(messages[:3]).dangling == (Place(2, 0),)


def test_a_refusal_by_silence_is_one_round_with_what_the_user_said_instead() -> None:
    messages = [
        USER("delete it"),
        says("assistant", request("p", "c")),
        USER("never mind"),
        says("user", response("p", "c", approved=False)),
        says("assistant", call("c", executed=True)),
        results("c"),
        ASSISTANT("as you like"),
    ]
    assert shape(messages) == [("user", 1), ("tools", 5), ("assistant", 1)]
    assert only(messages).complete


def test_an_answer_that_comes_after_the_assistant_went_on_begins_a_round_of_its_own() -> None:
    messages = [
        says("assistant", request("p", "c")),
        USER("leave it"),
        ASSISTANT("left"),
        says("user", response("p", "c")),
        says("assistant", call("c", executed=True)),
        results("c"),
    ]
    assert shape(messages) == [("tools", 1), ("user", 1), ("assistant", 1), ("tools", 3)]
    assert all(unit.complete for unit in units(messages))


def test_a_pending_request_of_a_repeated_call_id_takes_nothing_from_a_later_call() -> None:
    messages = [says("assistant", request("p", "call_0")), USER("leave it"), calls("call_0"), results("call_0")]
    first, _, last = units(messages)
    assert first.pending == (Place(0, 0),)
    assert (last.start, last.stop, last.complete) == (2, 4, True)


def test_a_call_right_behind_its_request_needs_no_answer() -> None:
    messages = [says("assistant", request("p", "c")), calls("c"), results("c")]
    assert shape(messages) == [("tools", 3)]
    assert only(messages).complete


CUT_SHORT = {
    "per service call, second call fails": "its result was never stored",
    "store filters: nothing of the request, no tool messages of the response": "a filter took its result away",
}


@pytest.mark.parametrize(("case", "messages"), RUNS, ids=[case for case, _ in RUNS])
def test_every_run_that_dotnet_stored_is_read_as_whole_rounds(case: str, messages: list[ChatMessage]) -> None:
    found = [unit for unit in units(messages) if unit.kind == "tools"]
    if case in CUT_SHORT:
        assert [bool(unit.dangling) for unit in found] == [True]
    else:
        assert all(unit.complete for unit in found)
    if case.startswith("approval asked"):
        assert len(found) == 1


@generated
@given(HISTORIES)
def test_every_message_is_in_one_unit_and_the_order_is_kept(messages: list[ChatMessage]) -> None:
    assert [index for unit in units(messages) for index in range(unit.start, unit.stop)] == list(range(len(messages)))


@generated
@given(SOUND)
def test_where_nothing_is_missing_every_unit_is_complete(messages: list[ChatMessage]) -> None:
    assert all(unit.complete for unit in units(messages))


@generated
@given(HISTORIES, HISTORIES)
def test_from_where_they_are_settled_units_stay_what_they_are_whatever_stands_before(
    before: list[ChatMessage], messages: list[ChatMessage]
) -> None:
    start, shift = settled(messages), len(before)
    assert 0 <= start <= len(messages)
    alone = [moved(unit, shift) for unit in units(messages) if unit.start >= start]
    together = [unit for unit in units([*before, *messages]) if unit.start >= start + shift]
    assert [(unit.kind, unit.start, unit.stop, unit.dangling, unit.orphans) for unit in together] == alone


def moved(unit: Unit, shift: int) -> tuple[Any, ...]:
    dangling, orphans = (
        tuple(Place(place.message + shift, place.content) for place in places)
        for places in (unit.dangling, unit.orphans)
    )
    return unit.kind, unit.start + shift, unit.stop + shift, dangling, orphans


def test_units_are_settled_soon_after_something_was_said_or_answered() -> None:
    assert settled([ASSISTANT("so"), USER("?"), ASSISTANT("!")]) == 1
    assert settled([results("a"), ASSISTANT("so")]) == 1
    assert settled([calls("a"), results("a")] * 5) == 2
    assert settled([results("a"), *[calls("b"), results("b")] * 5]) == 3
    assert settled([]) == 0


def test_units_are_not_settled_where_something_before_may_reach_into_them() -> None:
    assert settled([USER("?"), says("user", response("p", "c")), USER("!")]) == 2
    assert settled([USER("?"), calls("c"), USER("!")]) == 2
    assert settled([calls("a"), results("a"), calls("c"), results("z"), calls("d"), results("d")]) == 4
    assert settled([says("assistant", request("p", "c")), results("z"), calls("d")]) == 3
