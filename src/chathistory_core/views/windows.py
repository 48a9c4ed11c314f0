"""The newest part of a conversation, as much as fits, cut where a model can go on from it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import ceil
from typing import NamedTuple

from chathistory_core.messages import ChatMessage
from chathistory_core.views.matching import is_system
from chathistory_core.views.pairing import Unit, units
from chathistory_core.views.repair import without_orphans
from chathistory_core.views.tokens import CountTokens, estimate_tokens, size

MOST_PINNED = 20
"""How many of the system messages that a conversation begins with are pinned."""

_MARGIN = 8
"""Records beyond the guess: notes, system messages, the unit at the edge."""

_MESSAGES_A_TURN = 4
_TOKENS_A_MESSAGE = 100
_BYTES_A_MESSAGE = 400


class Selection(NamedTuple):
    """What a window shows of a conversation, and what not."""

    messages: Sequence[ChatMessage]
    """The pinned messages that the conversation begins with, and those of the window."""
    left_out: Sequence[ChatMessage]
    """All others: those before the window, and results in it that have no call."""

    def __repr__(self) -> str:
        return f"<Selection, {len(self.messages)} messages, {len(self.left_out)} left out>"


@dataclass(frozen=True, kw_only=True)
class Window:
    """The newest messages of a conversation, up to a limit, or to the first of several.

    A tool round is in it whole or not at all (`chathistory_core.units`), and a result without a call never is. The
    newest unit is always in it: a limit is exceeded by that one alone. The system and developer messages that the
    conversation begins with, at most 20, are pinned: they stand before the window. Those inside the window stay, those
    in between do not. Selecting from a selection changes nothing.
    """

    messages: int | None = None
    """How many messages, apart from system and developer messages."""
    turns: int | None = None
    """How many turns. A turn begins with a user's message; several in a row begin one."""
    tokens: int | None = None
    """How many tokens, pinned messages and all."""
    bytes: int | None = None
    """How many bytes of text, calls, results and data, pinned messages and all."""
    count_tokens: CountTokens = estimate_tokens
    """How many tokens a message takes: an estimate, `tiktoken_counter()`, or any function of yours."""

    def __post_init__(self) -> None:
        limits = {"messages": self.messages, "turns": self.turns, "tokens": self.tokens, "bytes": self.bytes}
        for name, limit in limits.items():
            if limit is not None and (type(limit) is not int or limit < 1):
                raise ValueError(f"`{name}` is a number from 1, not {limit!r}")
        if all(limit is None for limit in limits.values()):
            raise ValueError(f"a window has a limit: give one of {', '.join(map(repr, limits))}")
        if not callable(self.count_tokens):
            raise TypeError(f"`count_tokens` is called with a message: it is {type(self.count_tokens).__name__}")

    def select(self, messages: Sequence[ChatMessage]) -> Selection:
        """What of a whole conversation is shown."""
        standing = without_orphans(messages)
        pinned = leading(standing.messages)
        count = len(pinned)
        start = count + self.start(standing.messages[count:], pinned)
        kept = {*standing.sources[:count], *standing.sources[start:]}
        return Selection(
            (*pinned, *standing.messages[start:]),
            tuple(message for index, message in enumerate(messages) if index not in kept),
        )

    @property
    def first_page(self) -> int:
        """How many records to read at first: a guess, which is rather too low where rounds or records are large."""
        guesses = (
            (self.messages, 1),
            (self.turns, 1 / _MESSAGES_A_TURN),
            (self.tokens, _TOKENS_A_MESSAGE),
            (self.bytes, _BYTES_A_MESSAGE),
        )
        return _MARGIN + min(ceil(limit / share) for limit, share in guesses if limit is not None)

    def start(self, messages: Sequence[ChatMessage], pinned: Sequence[ChatMessage]) -> int:
        """The index at which the window begins, where these messages are pinned before it."""
        tokens = 0 if self.tokens is None else sum(map(self.count_tokens, pinned))
        bytes_ = 0 if self.bytes is None else sum(map(size, pinned))
        count = turns = 0
        found = units(messages)
        start = len(messages)
        for index in range(len(found) - 1, -1, -1):
            unit = found[index]
            inside = unit.of(messages)
            count += sum(not is_system(message) for message in inside)
            tokens += 0 if self.tokens is None else sum(map(self.count_tokens, inside))
            bytes_ += 0 if self.bytes is None else sum(map(size, inside))
            used = ((self.messages, count), (self.turns, turns + 1), (self.tokens, tokens), (self.bytes, bytes_))
            if start < len(messages) and any(limit is not None and amount > limit for limit, amount in used):
                break
            turns += _begins_turn(found, index)
            start = unit.start
        return start


def leading(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The system messages that a conversation begins with, as many as are pinned."""
    return tuple(takewhile(is_system, messages[:MOST_PINNED]))


def _begins_turn(found: Sequence[Unit], index: int) -> bool:
    return found[index].kind == "user" and (index == 0 or found[index - 1].kind != "user")
