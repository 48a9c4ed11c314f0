"""What was read before, and what the codec made of it, so that a turn costs what it adds and not what is there."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple
from weakref import WeakSet

from chathistory_core.conversations.loaded import Loaded
from chathistory_core.conversations.marking import Marking
from chathistory_core.messages import ChatMessage
from chathistory_core.records import StoredRecord

MAX_REMEMBERED_BYTES = 64 * 1024 * 1024
"""What is remembered of all conversations together: some 14,000 messages of conversations with tools."""


class Whole(NamedTuple):
    """A conversation of which all is remembered, and what marks it."""

    loaded: Loaded
    marking: Marking


class _Kept:
    """What is remembered of a conversation, by position: not in pairs, each of which would be garbage to collect."""

    __slots__ = ("bytes", "made", "records")

    def __init__(self) -> None:
        self.records = dict[int, StoredRecord]()
        self.made = dict[int, Sequence[ChatMessage]]()
        self.bytes = 0

    def add(self, record: StoredRecord, made: Sequence[ChatMessage], size: int) -> None:
        self.records[record.position] = record
        self.made[record.position] = made
        self.bytes += size

    def remove(self, position: int) -> int:
        """How many bytes that was."""
        size = size_of(self.records.pop(position), self.made.pop(position))
        self.bytes -= size
        return size


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
        self._conversations = OrderedDict[str, _Kept]()
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

    def hold(self, loaded: Loaded) -> None:
        """Remember that this is all of the conversation, where each of its records is remembered."""
        key, records = loaded.conversation.key, loaded.conversation.records
        kept = self._conversations.get(key, _NOTHING).records
        if len(kept) > len(records):
            for position in kept.keys() - {record.position for record in records}:
                self._bytes -= self._conversations[key].remove(position)
        before = self._whole.get(key)
        if (
            records
            and loaded.conversation.record_count == len(records) == len(kept)
            and (before is not None or all(record.position in kept for record in records))
        ):
            self._whole[key] = Whole(loaded, Marking() if before is None else before.marking)
        else:
            self._whole.pop(key, None)

    def known(self, key: str, records: Sequence[StoredRecord]) -> dict[int, Sequence[ChatMessage]]:
        """What was made of those of the records that are remembered, by position."""
        kept = self._conversations.get(key)
        if kept is None:
            return {}
        self._conversations.move_to_end(key)
        return {
            record.position: kept.made[record.position]
            for record in records
            if kept.records.get(record.position) == record
        }

    def keep(self, key: str, record: StoredRecord, made: Sequence[ChatMessage]) -> None:
        """Remember what was made of the record, where there is room for it beside the rest of its conversation."""
        kept = self._conversations.get(key)
        if kept is not None and record.position in kept.records:
            self._bytes -= kept.remove(record.position)
        size = size_of(record, made)
        while self._conversations and self._bytes + size > self._most_bytes:
            oldest = next(iter(self._conversations))
            if oldest == key:
                break
            self._drop(oldest)
        if self._bytes + size <= self._most_bytes:
            if kept is None:
                kept = self._conversations[key] = _Kept()
            self._bytes += size
            kept.add(record, made, size)

    def forget(self, key: str) -> None:
        """Forget the conversation, for records of it were taken away."""
        for reading in self._readings:
            reading.over = reading.over or reading.key == key
        self._drop(key)

    def _drop(self, key: str) -> None:
        self._whole.pop(key, None)
        self._bytes -= self._conversations.pop(key, _NOTHING).bytes


_NOTHING: Final = _Kept()


def size_of(record: StoredRecord, made: Sequence[ChatMessage] = ()) -> int:
    """About how many bytes the record takes with all that is made of it, as measured on messages of many shapes.

    That is 1,000 for the record, its message and its marked copy, the payload and the text in it, and 30 for each quote
    and comma, of which there are more the more values JSON holds. Beside a payload that is compressed or encrypted
    stands the one in it. Of a text with an emoji each character takes four bytes.
    """
    payload, size = record.payload, 1_000
    origin = made[0].origin if made and "+" in record.format else None
    if origin is not None:
        payload, size = origin.payload, size + len(payload)
    has_emoji = b"\xf0" in payload or (b"\\" in payload and (rb"\uD83" in payload or rb"\ud83" in payload))
    return size + (5 if has_emoji else 2) * len(payload) + 30 * (payload.count(b'"') + payload.count(b","))
