"""What the codec made of records that were read before, so that a turn costs what it adds and not what is there."""

from collections import OrderedDict
from collections.abc import Sequence

from chathistory_core.messages import ChatMessage
from chathistory_core.records import StoredRecord

MOST_BYTES = 32 * 1024 * 1024
"""What is remembered of all conversations together: some 5,000 short messages."""

OVERHEAD = 7 * 1024
"""What the objects made of a short record take beside its payload, measured."""


class Remembered:
    """Records and what was made of each, by conversation: a copy, never the truth.

    The store is read every time; only a record that is the same to the last byte is not decoded again. Of too many
    conversations the ones that were longest not asked for are forgotten.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._conversations = OrderedDict[str, dict[int, tuple[StoredRecord, Sequence[ChatMessage]]]]()

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
        conversation = self._conversations.setdefault(key, {})
        before = conversation.pop(record.position, None)
        self._bytes -= 0 if before is None else _size(before[0])
        while self._bytes + _size(record) > self._most_bytes:
            oldest = next(iter(self._conversations))
            if oldest == key:
                return
            self.forget(oldest)
        self._bytes += _size(record)
        conversation[record.position] = (record, made)

    def forget(self, key: str) -> None:
        """Forget the conversation."""
        self._bytes -= sum(_size(record) for record, _ in self._conversations.pop(key, {}).values())


def _size(record: StoredRecord) -> int:
    return OVERHEAD + len(record.payload)
