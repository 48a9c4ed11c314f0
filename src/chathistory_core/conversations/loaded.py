"""What was read of a conversation."""

from collections.abc import Callable, Sequence
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeVar

from chathistory_core.messages import ChatMessage
from chathistory_core.records import Conversation, StoredRecord

T = TypeVar("T")


class Loaded:
    """A conversation's head and records, what the codec made of each record, and what follows from that.

    What follows is found once, and of a conversation that grows among its new records alone.
    """

    __slots__ = ("_among", "_messages", "_places", "conversation", "groups")

    def __init__(self, conversation: Conversation, groups: Sequence[Sequence[ChatMessage]]) -> None:
        self.conversation = conversation
        self.groups = groups
        self._messages: tuple[ChatMessage, ...] | None = None
        self._places: Sequence[int] | None = None
        self._among: dict[Callable[[Sequence[StoredRecord]], frozenset[Any]], frozenset[Any]] = {}

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages, oldest first."""
        if self._messages is None:
            self._messages = tuple(chain.from_iterable(self.groups))
        return self._messages

    @property
    def places(self) -> Sequence[int]:
        """Which of the records each message is in."""
        if self._places is None:
            self._places = _places(self.groups)
        return self._places

    def among(self, find: Callable[[Sequence[StoredRecord]], frozenset[T]]) -> frozenset[T]:
        """What the function finds in the records: in all of them what it finds in each part of them."""
        found = self._among.get(find)
        if found is None:
            found = self._among[find] = find(self.conversation.records)
        return found

    def followed_by(self, newer: Conversation, groups: Sequence[Sequence[ChatMessage]]) -> "Loaded":
        """The conversation at its newer head, with the records that stand behind these."""
        records = newer.records
        whole = Loaded(newer._replace(records=(*self.conversation.records, *records)), [*self.groups, *groups])
        whole._among = {find: found | find(records) for find, found in self._among.items()}
        if self._messages is not None:
            whole._messages = (*self._messages, *chain.from_iterable(groups))
        if self._places is not None:
            whole._places = _followed_by(self._places, len(self.groups), _places(groups))
        return whole

    def turn(self, turn_id: str) -> range | None:
        """Where in the list the turn's records stand; None where none is among them."""
        if turn_id not in self.among(_turn_ids):
            return None
        records = self.conversation.records
        stop = len(records)
        while records[stop - 1].turn_id != turn_id:
            stop -= 1
        start = stop
        while start and records[start - 1].turn_id == turn_id:
            start -= 1
        return range(start, stop)

    def __repr__(self) -> str:
        return f"<Loaded, {self.conversation!r}>"


def _turn_ids(records: Sequence[StoredRecord]) -> frozenset[str]:
    return frozenset(map(_TURN_ID, records))


_TURN_ID: Final = itemgetter(StoredRecord._fields.index("turn_id"))  # of thousands: a quarter of a loop's time


def _places(groups: Sequence[Sequence[ChatMessage]]) -> Sequence[int]:
    if _are_single(groups):  # of most conversations, and no matter how long they are
        return range(len(groups))
    return [place for place, group in enumerate(groups) for _ in group]


def _followed_by(places: Sequence[int], groups: int, newer: Sequence[int]) -> Sequence[int]:
    if isinstance(places, range) and isinstance(newer, range):
        return range(groups + len(newer))
    return [*places, *(groups + place for place in newer)]


def _are_single(groups: Sequence[Sequence[ChatMessage]]) -> bool:
    return set(map(len, groups)) <= {1}
