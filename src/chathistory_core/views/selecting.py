"""Repair and window together: what of the messages that were read a run is given."""

from collections.abc import Sequence
from typing import NamedTuple

from chathistory_core.messages import ChatMessage
from chathistory_core.views.repair import Mended, Repair, Unpaired, mended, unpaired, without_orphans
from chathistory_core.views.windows import MOST_PINNED, Window, leading


class Selected(NamedTuple):
    """What is given of a conversation."""

    pinned: Sequence[ChatMessage]
    messages: Sequence[ChatMessage]
    """Those behind the pinned ones."""
    first: int | None
    """Which of the messages that were read is the first of them; None where nothing is given."""
    cut: bool
    """Whether the window left out something that stands before."""
    unpaired: Unpaired
    """What had no counterpart in the stretch that is given."""

    def __repr__(self) -> str:
        return f"<Selected, {len(self.messages)} messages>"


class Selecting:
    """Selects by a repair and a window, either of which may be None."""

    def __init__(self, *, window: Window | None, repair: Repair | None, reduced: bool) -> None:
        """`reduced` says that a reducer comes behind: none gets results without a call."""
        self.window = window
        self.repair = repair
        self._reduced = reduced

    def select(
        self,
        messages: Sequence[ChatMessage],
        *,
        pinned: Sequence[ChatMessage] | None = None,
        following: Sequence[ChatMessage] = (),
    ) -> Selected:
        """What is given of these messages, with which a conversation begins unless `pinned` has its beginning.

        `following` is the request that comes behind them.
        """
        now = self._mended(messages, following)
        if pinned is not None:
            before, start = pinned, 0
        else:
            before = () if self.window is None else leading(now.messages)
            start = len(before)
        begin = start if self.window is None else start + self.window.start(now.messages[start:], before)
        first = next((source for source in now.sources[begin:] if source is not None), None)
        missing = Unpaired((), ())
        if first is not None and (now.messages is not messages or self.repair == "raise"):
            missing = unpaired(messages[first:], following)
        return Selected(before, now.messages[begin:], first, begin > start, missing)

    def leading(self, messages: Sequence[ChatMessage]) -> tuple[Sequence[ChatMessage], bool]:
        """What is pinned of the messages that a conversation begins with, and whether what follows could add to it."""
        standing = self._mended(messages, ()).messages
        pinned = leading(standing)
        return pinned, len(pinned) == len(standing) < MOST_PINNED

    def _mended(self, messages: Sequence[ChatMessage], following: Sequence[ChatMessage]) -> Mended:
        if self.repair == "drop" or self.repair == "answer":
            return mended(messages, self.repair, following=following)
        if self.repair == "raise" or self.window is not None or self._reduced:
            return without_orphans(messages)
        return Mended(messages, range(len(messages)))
