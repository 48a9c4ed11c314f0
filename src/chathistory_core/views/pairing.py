"""Which messages of a conversation stand or fall together.

Every model's API refuses a result without its call and a call without its result, so whatever shortens or mends a
history works on whole units: a system message, a user's, an assistant's, a tool round. A round is all that belongs
together: the reasoning that led to it, an approval request and the answer to it, one or many calls, their results.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from chathistory_core.messages import ChatMessage
from chathistory_core.views.matching import Matches, Place, carries, is_system, works

Kind: TypeAlias = Literal["system", "user", "assistant", "tools"]


class Unit(NamedTuple):
    """The messages from `start` to before `stop`, which stand or fall together."""

    kind: Kind
    start: int
    stop: int
    dangling: tuple[Place, ...] = ()
    """Function calls without a result, apart from those that wait for an approval."""
    orphans: tuple[Place, ...] = ()
    """Function results without a call."""
    pending: tuple[Place, ...] = ()
    """Approval requests without an answer."""

    @property
    def complete(self) -> bool:
        """Whether nothing is missing: no call, no result, no answer to an approval request."""
        return not (self.dangling or self.orphans or self.pending)

    def of(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """Its messages, of those that it was made from."""
        return messages[self.start : self.stop]


def units(messages: Sequence[ChatMessage]) -> list[Unit]:
    """All messages in order, each in one unit."""
    matches = Matches(messages)
    missing = [sorted(places, reverse=True) for places in (matches.dangling, matches.orphans, matches.pending)]
    found: list[Unit] = []
    for stretch in matches.stretches():
        dangling, orphans, pending = (_before(stretch.stop, places) for places in missing)
        kind = _kind(messages[stretch.start : stretch.stop])
        found.append(Unit(kind, stretch.start, stretch.stop, dangling, orphans, pending))
    return found


def settled(messages: Sequence[ChatMessage]) -> int:
    """The first message from which on the units stay what they are, whatever is put before the messages.

    It begins a unit, or is their end where none is known to stay.
    """
    matches = Matches(messages)
    return next((stretch.start for stretch in matches.stretches() if stretch.start >= matches.unsure), len(messages))


def _before(stop: int, places: list[Place]) -> tuple[Place, ...]:
    """Those in messages before this one, taken off the end of the list."""
    taken: list[Place] = []
    while places and places[-1].message < stop:
        taken.append(places.pop())
    return tuple(taken)


def _kind(messages: Sequence[ChatMessage]) -> Kind:
    if any(map(works, messages)) or sum(map(carries, messages)) > 1:  # in one message, hosted tools are its answer
        return "tools"
    if is_system(messages[-1]):
        return "system"
    return "user" if messages[-1].role == "user" else "assistant"
