"""What was read before, and what the codec made of it, so that a turn costs what it adds and not what is there."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple
from weakref import WeakSet

from chathistory_core.conversations.marking import Marking
from chathistory_core.messages import ChatMessage
from chathistory_core.records import Conversation, StoredRecord

MAX_REMEMBERED_BYTES = 64 * 1024 * 1024
"""What is remembered of all conversations together: some 11,000 messages of conversations with tools."""


class Whole(NamedTuple):
    """A conversation of which all is remembered, and what was made of it."""

    conversation: Conversation
    groups: Sequence[Sequence[ChatMessage]]
    marking: Marking

    def __repr__(self) -> str:
        return f"<Whole, {self.conversation!r}>"


class Reading:
    """A conversation that is being read: nothing of it is remembered any more once it is `over`."""

    __slots__ = ("__weakref__", "key", "over")

    def __init__(self, key: str) -> None:
        self.key = key
        self.over = False


class Remembered:
    """Records and what was made of each, by conversation: a copy, never the truth.

    The store is asked every time: for what came behind a conversation that was read whole, which it tells whether that
    is still there; and a record that is the same to the last byte is not decoded again. Of too many conversations the
    ones that were longest not asked for are forgotten.
    """

    def __init__(self, most_bytes: int = MAX_REMEMBERED_BYTES) -> None:
        if type(most_bytes) is not int or most_bytes < 0:
            raise ValueError(f"`max_remembered_bytes` is a number from 0, not {most_bytes!r}")
        self._most_bytes = most_bytes
        self._bytes = 0
        self._conversations = OrderedDict[str, dict[int, tuple[StoredRecord, Sequence[ChatMessage]]]]()
        self._whole = dict[str, Whole]()
        self._readings = WeakSet[Reading]()

    def reading(self, key: str) -> Reading:
        """A reading that begins now: it is over when the conversation is forgotten, for it may read what is gone."""
        reading = Reading(key)
        self._readings.add(reading)
        return reading

    def whole(self, key: str) -> Whole | None:
        """The conversation as it was when it was read whole, where all of it is remembered."""
        return self._whole.get(key)

    def hold(self, conversation: Conversation, made: Sequence[Sequence[ChatMessage]]) -> None:
        """Remember that this is all of the conversation, where each of its records is remembered."""
        key, records = conversation.key, conversation.records
        remembered = self._conversations.get(key, {})
        if len(remembered) > len(records):
            for position in remembered.keys() - {record.position for record in records}:
                self._bytes -= size_of(remembered.pop(position)[0])
        before = self._whole.get(key)
        if (
            records
            and conversation.record_count == len(records) == len(remembered)
            and (before is not None or all(record.position in remembered for record in records))
        ):
            self._whole[key] = Whole(conversation, made, Marking() if before is None else before.marking)
        else:
            self._whole.pop(key, None)

    def known(self, key: str, records: Sequence[StoredRecord]) -> dict[int, Sequence[ChatMessage]]:
        """What was made of those of the records that are remembered, by position."""
        conversation = self._conversations.get(key)
        if conversation is None:
            return {}
        self._conversations.move_to_end(key)
        found: dict[int, Sequence[ChatMessage]] = {}
        for record in records:
            remembered = conversation.get(record.position)
            if remembered is not None and remembered[0] == record:
                found[record.position] = remembered[1]
        return found

    def keep(self, key: str, record: StoredRecord, made: Sequence[ChatMessage]) -> None:
        """Remember what was made of the record, where there is room for it beside the rest of its conversation."""
        before = self._conversations.get(key, {}).pop(record.position, None)
        self._bytes -= 0 if before is None else size_of(before[0])
        while self._conversations and self._bytes + size_of(record) > self._most_bytes:
            oldest = next(iter(self._conversations))
            if oldest == key:
                break
            self._drop(oldest)
        if self._bytes + size_of(record) <= self._most_bytes:
            self._bytes += size_of(record)
            self._conversations.setdefault(key, {})[record.position] = (record, made)

    def forget(self, key: str) -> None:
        """Forget the conversation, for records of it were taken away."""
        for reading in self._readings:
            reading.over = reading.over or reading.key == key
        self._drop(key)

    def _drop(self, key: str) -> None:
        self._whole.pop(key, None)
        self._bytes -= sum(size_of(record) for record, _ in self._conversations.pop(key, {}).values())


def size_of(record: StoredRecord) -> int:
    """About how many bytes the record takes with all that is made of it, as measured on messages of many shapes.

    That is 2,200 for the record, its message and its marked copy, the payload and the text in it, and 30 for each quote
    and comma, of which there are more the more values JSON holds.
    """
    payload = record.payload
    return 2_200 + 2 * len(payload) + 30 * (payload.count(b'"') + payload.count(b","))
