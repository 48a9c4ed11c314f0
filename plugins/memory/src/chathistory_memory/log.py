"""One conversation in memory."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from chathistory_core import NO_REVISION, ConversationSummary, Record, StoredRecord, Written, new_revision


class Turn(NamedTuple):
    """A write that is remembered."""

    digest: bytes
    written: Written


class Log:
    """A conversation's records in order, its head, and its turns."""

    def __init__(self, key: str, now: datetime) -> None:
        self.key = key
        self.revision = NO_REVISION
        self.epoch = new_revision()
        self.expires_at: datetime | None = None
        self.turns: dict[str, Turn] = {}
        self._created_at = self._updated_at = now
        self._records: list[StoredRecord] = []

    @property
    def summary(self) -> ConversationSummary:
        """The head."""
        return ConversationSummary(
            self.key, self.revision, self.epoch, len(self._records), self._created_at, self._updated_at
        )

    def expired(self, now: datetime) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now

    def read(self, limit: int | None, before: int | None, after: int | None) -> tuple[StoredRecord, ...]:
        """The records that a `get` asks for."""
        start, stop = 0, len(self._records)
        if after is not None:
            start = bisect_right(self._records, after, key=_position)
            stop = stop if limit is None else min(stop, start + limit)
        else:
            stop = stop if before is None else bisect_left(self._records, before, key=_position)
            start = start if limit is None else max(0, stop - limit)
        return tuple(self._records[start:stop])

    def take_away(self) -> None:
        """Begin a new epoch with no records; the turns stay remembered."""
        self._records = []
        self.epoch = new_revision()

    def put(self, batch: Sequence[Record], turn_id: str, digest: bytes, now: datetime, *, turns_kept: int) -> Written:
        """Add the records of a turn."""
        first = self._records[-1].position + 1 if self._records else 1
        self._records.extend(
            StoredRecord(record.payload, record.format, position, turn_id, now)
            for position, record in enumerate(batch, first)
        )
        self._updated_at = max(self._updated_at, now)
        self.revision = new_revision()
        written = Written(self.revision, self.epoch, first)
        self.turns[turn_id] = Turn(digest, written)
        if len(self.turns) > turns_kept:
            del self.turns[next(iter(self.turns))]
        return written


def _position(record: StoredRecord) -> int:
    return record.position
