"""Recorded calls that overlapped: whether some order of them explains every answer.

A call takes effect at one moment between its sending and its answer. So for each conversation there is an order of its
calls, in which a call that was answered before another was sent stands before it, and in which the model allows every
answer. The search is that of Wing and Gong, with Lowe's memory of the states it has seen.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from chathistory_core.testing.calls import Answer, Call, shown
from chathistory_core.testing.model import ForbiddenError, State, step


class Event(NamedTuple):
    """A call, its answer, and between which instants it was under way."""

    who: str
    begin: int
    """Nanoseconds of a clock that all callers share."""
    end: int
    call: Call
    answer: Answer
    repeated: bool = False
    """Earlier attempts at it, since `begin`, got no answer."""


def check_history(events: Iterable[Event]) -> None:
    """Pass where each conversation's calls have an order that explains their answers, else `AssertionError`."""
    __tracebackhide__ = True
    by_key: dict[str, list[Event]] = {}
    for event in sorted(events, key=lambda event: event.begin):
        by_key.setdefault(event.call.key, []).append(event)
    for key, calls in by_key.items():
        _check_conversation(key, calls)


class _Place(NamedTuple):
    """How far an order has come."""

    done: int
    """One bit for each event."""
    state: State
    order: tuple[int, ...]


def _check_conversation(key: str, events: Sequence[Event]) -> None:
    __tracebackhide__ = True
    everything = (1 << len(events)) - 1
    longest = _Place(0, State(key), ())
    places, seen = [longest], set[tuple[int, State]]()
    while places:
        place = places.pop()
        if place.done == everything:
            return
        if len(place.order) > len(longest.order):
            longest = place
        for following in _following(events, place):
            if (following.done, following.state) not in seen:
                seen.add((following.done, following.state))
                places.append(following)
    raise AssertionError(_explained(key, events, longest))


def _following(events: Sequence[Event], place: _Place) -> list[_Place]:
    """Where the order may go on: nowhere else where a call changes nothing, for that one may as well come now."""
    found: list[_Place] = []
    for index in _next(events, place.done):
        event = events[index]
        try:
            state = step(place.state, event.call, event.answer, repeated=event.repeated)
        except ForbiddenError:
            continue
        following = _Place(place.done | 1 << index, state, (*place.order, index))
        if state == place.state:
            return [following]
        found.append(following)
    return found[::-1]


def _next(events: Sequence[Event], done: int) -> list[int]:
    """The events that may come next: none of the others was answered before they were sent."""
    left = [index for index in range(len(events)) if not done >> index & 1]
    first_answer = min(events[index].end for index in left)
    return [index for index in left if events[index].begin <= first_answer]


def _explained(key: str, events: Sequence[Event], longest: _Place) -> str:
    zero = events[0].begin
    lines = [f"no order of these calls to conversation {key!r} explains their answers (times in µs):"]
    for number, event in enumerate(events, 1):
        begin, end = (event.begin - zero) // 1_000, (event.end - zero) // 1_000
        tries = " (repeated)" if event.repeated else ""
        lines.append(f"{number:4} {event.who} {begin}-{end}: {shown(event.call)}{tries} → {shown(event.answer)}")
    order = " ".join(str(index + 1) for index in longest.order) or "none"
    lines.append(f"the longest order that explains its own: {order}; of the next calls none may follow:")
    for index in _next(events, longest.done):
        event = events[index]
        try:
            step(longest.state, event.call, event.answer, repeated=event.repeated)
        except ForbiddenError as reason:
            lines.append(f"{index + 1:4} {reason}")
    return "\n".join(lines)
