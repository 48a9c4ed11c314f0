"""What a head says of its conversation."""

import json
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from chathistory_core.conditional.store import Head
from chathistory_core.records import Conversation, ConversationSummary, StoredRecord, new_revision

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class State(NamedTuple):
    """A conversation, or where `epoch` is empty the place that one had or will have.

    Every log that anything was ever staged in is named by a head before: what a killed writer leaves is then found by
    the next clear.
    """

    key: str
    revision: str
    epoch: str
    """The log of the records."""
    life: str
    """The log of the turns, from the start to a clear. It is named after the head that the conversation started on, so
    that who cleared one knows its own head in what has become of it."""
    spare: str
    """The log that the next start or replace stages its records in."""
    length: int
    widest: int
    """The most records of one group."""
    created_at: datetime
    updated_at: datetime
    dead: tuple[str, ...] = ()
    """Logs that may not be dropped yet."""

    @property
    def summary(self) -> ConversationSummary:
        """What a listing shows."""
        return ConversationSummary(self.key, self.revision, self.epoch, self.length, self.created_at, self.updated_at)

    def with_records(self, records: tuple[StoredRecord, ...]) -> Conversation:
        """What a read answers."""
        return Conversation(*self.summary, records=records)

    def cleared(self, now: datetime) -> "State":
        """What is left of it for as long as its logs are being dropped."""
        logs = (*self.dead, self.epoch, self.life, self.spare)
        return vacant(self.key, now)._replace(dead=tuple(log for log in logs if log))

    def encode(self) -> Head:
        """The head as a store keeps it."""
        fields = self._asdict() | {
            "created_at": microseconds(self.created_at),
            "updated_at": microseconds(self.updated_at),
        }
        return Head(self.revision, json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode())


def vacant(key: str, now: datetime) -> State:
    """A place for a conversation to start on."""
    revision = new_revision()
    return State(key, revision, "", revision, new_revision(), 0, 0, now, now)


def decode(head: Head) -> State:
    """What `encode` was given."""
    fields = json.loads(head.body)
    return State(
        **fields
        | {
            "created_at": moment(fields["created_at"]),
            "updated_at": moment(fields["updated_at"]),
            "dead": tuple(fields["dead"]),
        }
    )


def microseconds(time: datetime) -> int:
    """Since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def moment(count: int) -> datetime:
    """What `microseconds` was given, in UTC."""
    return _EPOCH + count * _MICROSECOND
