"""Whatever the history, a view is one that a model takes, in order, and stays what it is when it is reduced again."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import (
    CountingReducer,
    Reducer,
    ReducerPipeline,
    SummarizingReducer,
    ToolResultReducer,
    WindowReducer,
    is_summary,
)
from chathistory_core.views.pairing import units
from chathistory_core.views.windows import Window, leading

from .histories import HISTORIES


async def model(messages: Sequence[ChatMessage]) -> str:
    return f"{len(messages)} messages"


def summarizing(keep: Window, above: Window) -> Reducer:
    return SummarizingReducer(model, keep=keep, above=above)


REDUCERS: dict[str, Callable[[int], Reducer]] = {
    "counting": CountingReducer,
    "turns": lambda size: WindowReducer(Window(turns=size)),
    "tokens": lambda size: WindowReducer(Window(tokens=10 * size)),
    "tool results": lambda size: ToolResultReducer(keep=size - 1),
    "tool results above": lambda size: ToolResultReducer(keep=0, above=Window(messages=size)),
    "summary": lambda size: summarizing(Window(messages=size), Window(messages=2 * size)),
    "summary of turns": lambda size: summarizing(Window(turns=size), Window(tokens=30 * size)),
    "summary in parts": lambda size: SummarizingReducer(
        model, keep=Window(messages=size), at_once=Window(messages=size)
    ),
    "all": lambda size: ReducerPipeline(
        ToolResultReducer(keep=1),
        summarizing(Window(messages=size), Window(messages=size + 3)),
        CountingReducer(size + 3),
    ),
}


def missing(messages: Sequence[ChatMessage], kind: str) -> set[tuple[int, int]]:
    """Which contents lack the other half, by message object and index."""
    return {(id(messages[place.message]), place.content) for unit in units(messages) for place in getattr(unit, kind)}


def reduced(reducer: Reducer, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return list(asyncio.run(reducer.reduce(messages)))


@pytest.mark.parametrize("name", REDUCERS)
@settings(max_examples=60, deadline=None)
@given(history=HISTORIES, size=st.integers(1, 8))
def test_a_view_is_in_order_keeps_what_is_pinned_and_breaks_no_round(
    name: str, history: list[ChatMessage], size: int
) -> None:
    view = reduced(REDUCERS[name](size), history)
    place_of = {id(message): place for place, message in enumerate(history)}
    kept = [place_of[id(message)] for message in view if id(message) in place_of]
    assert kept == sorted(set(kept))
    pinned = leading(history)
    assert len(view) >= len(pinned)
    assert all(one is other for one, other in zip(view, pinned, strict=False))
    for kind in ("dangling", "orphans"):
        assert missing(view, kind) <= missing(history, kind)
    assert len([message for message in view if id(message) not in place_of]) <= len(history) - len(kept)


@pytest.mark.parametrize("name", REDUCERS)
@settings(max_examples=60, deadline=None)
@given(history=HISTORIES, size=st.integers(1, 8))
def test_a_view_that_is_reduced_again_stays_as_it_is(name: str, history: list[ChatMessage], size: int) -> None:
    reducer = REDUCERS[name](size)
    view = reduced(reducer, history)
    again = reduced(reducer, view)
    assert len(again) == len(view)
    assert all(one is other for one, other in zip(again, view, strict=True))


@pytest.mark.parametrize("name", ["counting", "summary of as many"])
@settings(max_examples=60, deadline=None)
@given(history=HISTORIES, size=st.integers(1, 8))
def test_no_more_messages_are_shown_than_the_limit_or_the_newest_unit(
    name: str, history: list[ChatMessage], size: int
) -> None:
    least = Window(messages=size)
    view = reduced(CountingReducer(size) if name == "counting" else summarizing(least, least), history)
    behind = view[len(leading(history)) :]
    behind = behind[1:] if behind and is_summary(behind[0]) else behind
    counted = [message for message in behind if message.role not in {"system", "developer"}]
    assert len(counted) <= size or len([unit for unit in units(behind) if unit.kind != "system"]) == 1
