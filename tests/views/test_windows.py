"""What a window shows of a history: the newest of it, whole rounds, within its limits."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core.messages import ChatMessage, DataContent
from chathistory_core.views.matching import is_system
from chathistory_core.views.pairing import units
from chathistory_core.views.repair import unpaired
from chathistory_core.views.tokens import estimate_tokens, size
from chathistory_core.views.windows import Window, leading

from .histories import HISTORIES, generated
from .messages import ASSISTANT, SYSTEM, USER, calls, request, response, result, results, says, text

CALL, RESULT = calls("c"), results("c")


def shown(window: Window, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return list(window.select(messages).messages)


def test_the_newest_messages_are_shown_behind_the_rules() -> None:
    messages = [SYSTEM("rules"), USER("1"), ASSISTANT("2"), USER("3"), ASSISTANT("4")]
    assert shown(Window(messages=2), messages) == [messages[0], *messages[3:]]
    assert shown(Window(messages=1), messages) == [messages[0], messages[4]]
    assert shown(Window(messages=9), messages) == messages
    assert shown(Window(messages=1), []) == []


def test_it_says_what_it_left_out() -> None:
    messages = [SYSTEM("rules"), USER("1"), ASSISTANT("2"), USER("3"), results("nobody"), ASSISTANT("4")]
    selection = Window(messages=2).select(messages)
    assert list(selection.messages) == [messages[0], messages[3], messages[5]]
    assert list(selection.left_out) == [messages[1], messages[2], messages[4]]
    assert repr(selection) == "<Selection, 3 messages, 3 left out>"


def test_a_message_that_stands_twice_is_left_out_once() -> None:
    again = USER("again")
    assert list(Window(messages=1).select([again, again]).left_out) == [again]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6])
def test_a_round_is_in_it_whole_or_not_at_all(limit: int) -> None:
    messages = [USER("weather?"), calls("a", "b"), results("b"), results("a"), USER("thanks"), ASSISTANT("bye")]
    kept = {1: 1, 2: 2, 3: 2, 4: 2, 5: 5, 6: 6}[limit]
    assert shown(Window(messages=limit), messages) == messages[-kept:]


def test_an_approval_is_in_it_whole_or_not_at_all() -> None:
    messages = [
        USER("delete"),
        says("assistant", request("p", "c")),
        USER("never mind"),
        says("user", response("p", "c", approved=False)),
        CALL,
        RESULT,
        ASSISTANT("as you like"),
    ]
    assert shown(Window(messages=4), messages) == messages[-1:]
    assert shown(Window(messages=6), messages) == messages[1:]


def test_the_newest_unit_is_shown_even_where_it_alone_is_too_much() -> None:
    messages = [USER("?"), calls("a", "b"), results("a", "b")]
    for window in (Window(messages=1), Window(tokens=1), Window(bytes=1)):
        assert shown(window, messages) == messages[1:]


def test_a_repeated_id_keeps_the_newest_pair() -> None:
    first = [USER("1"), calls("call_0"), says("tool", result("call_0", "one")), ASSISTANT("x")]
    second = [USER("2"), calls("call_0"), says("tool", result("call_0", "two")), ASSISTANT("y")]
    assert shown(Window(messages=4), [*first, *second]) == second


def test_a_result_without_its_call_is_nowhere_in_it() -> None:
    messages = [USER("1"), results("z"), USER("2"), says("user", result("y"), text("3")), ASSISTANT("4")]
    assert [message.text for message in shown(Window(messages=9), messages)] == ["1", "2", "3", "4"]
    assert not unpaired(shown(Window(messages=9), messages)).results


def test_turns_begin_with_what_a_user_says() -> None:
    messages = [
        USER("1"),
        ASSISTANT("a"),
        USER("2"),
        USER("and its context"),
        CALL,
        RESULT,
        ASSISTANT("b"),
        USER("3"),
        ASSISTANT("c"),
    ]
    assert shown(Window(turns=1), messages) == messages[7:]
    assert shown(Window(turns=2), messages) == messages[2:]
    assert shown(Window(turns=3), messages) == messages
    assert shown(Window(turns=1), messages[:5]) == messages[2:5]


def test_an_answer_to_an_approval_begins_no_turn() -> None:
    messages = [USER("x"), ASSISTANT("y"), USER("delete"), says("assistant", request("p", "c"))]
    messages += [says("user", response("p", "c")), CALL, RESULT, ASSISTANT("done")]
    assert shown(Window(turns=1), messages) == messages[2:]


def test_of_several_limits_the_first_counts() -> None:
    messages = [USER("1"), ASSISTANT("a"), USER("2"), ASSISTANT("b" * 400)]
    assert shown(Window(turns=2, messages=3), messages) == messages[1:]
    assert shown(Window(turns=1, messages=3), messages) == messages[2:]
    assert shown(Window(turns=2, tokens=50), messages) == messages[3:]


def test_pinned_messages_take_of_a_budget_and_none_of_a_count() -> None:
    rules = [SYSTEM("r" * 400), says("developer", text("d" * 400))]
    messages = [*rules, USER("1" * 40), ASSISTANT("2" * 40), USER("3" * 40)]
    assert shown(Window(messages=2), messages) == [*rules, *messages[3:]]
    assert shown(Window(bytes=800 + 80), messages) == [*rules, *messages[3:]]
    assert shown(Window(bytes=800 + 79), messages) == [*rules, *messages[4:]]
    assert shown(Window(tokens=2 * 104 + 2 * 14), messages) == [*rules, *messages[3:]]
    assert shown(Window(tokens=2 * 104 + 2 * 14 - 1), messages) == [*rules, *messages[4:]]


def test_rules_given_on_the_way_are_shown_inside_the_window_and_not_before_it() -> None:
    messages = [SYSTEM("first"), USER("1"), SYSTEM("then"), USER("2"), SYSTEM("last"), USER("3")]
    assert shown(Window(messages=2), messages) == [messages[0], *messages[2:]]
    assert shown(Window(messages=1), messages) == [messages[0], *messages[4:]]


def test_rules_are_pinned_behind_a_result_that_nobody_asked_for() -> None:
    messages = [results("z"), SYSTEM("rules"), USER("1"), USER("2")]
    assert shown(Window(messages=1), messages) == [messages[1], messages[3]]


def test_no_more_than_twenty_rules_are_pinned() -> None:
    messages = [*(SYSTEM(str(number)) for number in range(30)), USER("1"), USER("2")]
    assert shown(Window(messages=1, bytes=60), messages) == [*messages[:20], messages[31]]


def test_tokens_are_counted_by_whoever_is_named() -> None:
    messages = [USER("one two three"), ASSISTANT("four five")]

    def words(message: ChatMessage) -> int:
        return len(message.text.split())

    assert shown(Window(tokens=4, count_tokens=words), messages) == messages[1:]
    assert shown(Window(tokens=5, count_tokens=words), messages) == messages


def test_bytes_are_those_of_text_calls_results_and_data() -> None:
    picture = says("user", DataContent(uri="data:image/png;base64,AAAA"), text("é"))
    messages = [picture, USER("2")]
    assert shown(Window(bytes=26 + 2 + 1), messages) == messages
    assert shown(Window(bytes=26 + 2), messages) == messages[1:]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Window(),
        lambda: Window(messages=0),
        lambda: Window(turns=-1),
        lambda: Window(tokens=True),
        lambda: Window(bytes=1.5),  # type: ignore[arg-type] # a user's mistake
    ],
)
def test_a_window_without_a_limit_or_with_none_that_is_a_number_is_refused(make: Callable[[], Window]) -> None:
    with pytest.raises(ValueError, match=r"limit|number from 1"):
        make()


def test_a_counter_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="count_tokens"):
        Window(tokens=1, count_tokens=4)  # type: ignore[arg-type] # a user's mistake


LIMITS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "messages": st.integers(1, 12),
        "turns": st.integers(1, 4),
        "tokens": st.integers(1, 120),
        "bytes": st.integers(1, 300),
    },
)
WINDOWS = LIMITS.filter(bool).map(lambda limits: Window(**limits))
EVERYTHING = Window(messages=10_000)


@generated
@given(HISTORIES, WINDOWS)
def test_no_window_shows_an_orphan(messages: list[ChatMessage], window: Window) -> None:
    assert not unpaired(shown(window, messages)).results


@generated
@given(HISTORIES, WINDOWS)
def test_a_window_shows_the_end_of_the_history_in_its_order_behind_what_is_pinned(
    messages: list[ChatMessage], window: Window
) -> None:
    selection = window.select(messages)
    pinned = leading(shown(EVERYTHING, messages))
    assert list(selection.messages[: len(pinned)]) == list(pinned)
    untouched = [message for message in selection.messages if any(message is one for one in messages)]
    assert is_subsequence(untouched, messages)
    assert is_subsequence(selection.left_out, messages)
    assert len(selection.messages) + len(selection.left_out) == len(messages)


def exceeded(window: Window, pinned: Sequence[ChatMessage], behind: Sequence[ChatMessage]) -> bool:
    """Whether this is more than the window may show."""
    speakers = [unit.kind for unit in units(behind)]
    turns = sum(kind == "user" and before != "user" for before, kind in zip(["", *speakers], speakers, strict=False))
    amounts = [
        (window.messages, sum(not is_system(message) for message in behind)),
        (window.turns, turns),
        (window.tokens, sum(map(estimate_tokens, [*pinned, *behind]))),
        (window.bytes, sum(map(size, [*pinned, *behind]))),
    ]
    return any(limit is not None and amount > limit for limit, amount in amounts)


@generated
@given(HISTORIES, WINDOWS)
def test_a_window_is_within_its_limits_or_shows_the_newest_unit_alone(
    messages: list[ChatMessage], window: Window
) -> None:
    seen, pinned = shown(window, messages), leading(shown(EVERYTHING, messages))
    behind = seen[len(pinned) :]
    assert len(units(behind)) <= 1 or not exceeded(window, pinned, behind)


@generated
@given(HISTORIES, WINDOWS)
def test_a_window_shows_as_much_as_fits(messages: list[ChatMessage], window: Window) -> None:
    standing = shown(EVERYTHING, messages)
    pinned = leading(standing)
    rest = standing[len(pinned) :]
    start = len(rest) - (len(shown(window, standing)) - len(pinned))
    if start:
        (before,) = [unit for unit in units(rest) if unit.stop == start]
        begun = window.turns is not None and units(rest[start:])[0].kind == "user"  # what is before is another turn's
        assert begun or exceeded(window, pinned, rest[before.start :])


@generated
@given(HISTORIES, WINDOWS)
def test_a_selection_of_a_selection_is_the_same(messages: list[ChatMessage], window: Window) -> None:
    once = shown(window, messages)
    assert shown(window, once) == once


def is_subsequence(part: Sequence[ChatMessage], whole: Sequence[ChatMessage]) -> bool:
    rest = iter(whole)
    return all(any(one is other for other in rest) for one in part)
