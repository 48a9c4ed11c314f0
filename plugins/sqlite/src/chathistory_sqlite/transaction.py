"""What happens inside a transaction: the operations of the protocol, on the thread of a connection.

A write finds its conflicts before it changes anything, so one that fails leaves nothing behind in a transaction that
holds others too.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from chathistory_core import (
    NO_REVISION,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    Operation,
    Order,
    Record,
    RevisionConflictError,
    StoredRecord,
    TurnConflictError,
    Written,
    new_revision,
    prefix_end,
    turn_digest,
)
from chathistory_sqlite import statements

PURGED_AT_ONCE = 200
"""The most rows of expired conversations that one write removes: more than a turn adds, so purging keeps up."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MOST = 2**62
"""Above every position and time, and still an integer of SQLite."""


class _Head(NamedTuple):
    key: str
    revision: str
    epoch: str
    record_count: int
    created_at: int
    updated_at: int
    id: int
    next_position: int
    turn_count: int
    expires_at: int | None

    @property
    def summary(self) -> ConversationSummary:
        return _summary(*self[:6])


def microseconds(time: datetime) -> int:
    """The time as the tables keep it."""
    return (time - _EPOCH) // _MICROSECOND


def _clamp(number: int | None, unset: int) -> int:
    return unset if number is None else min(number, _MOST)


def _time(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)


def _summary(
    key: str, revision: str, epoch: str, record_count: int, created_at: int, updated_at: int
) -> ConversationSummary:
    return ConversationSummary(key, revision, epoch, record_count, _time(created_at), _time(updated_at))


def _stored(rows: Sequence[tuple[Any, ...]]) -> Iterator[StoredRecord]:
    for payload, format_name, position, turn_id, stored_at in rows:
        yield StoredRecord(payload, format_name, position, turn_id, _time(stored_at))


class Transaction:
    """An open transaction of `connection`, at the time `now`."""

    def __init__(self, connection: sqlite3.Connection, now: int) -> None:
        self._connection = connection
        self._now = now
        self.removed = False
        """Whether rows with content were deleted, of which the write-ahead log still has copies."""

    def get(self, key: str, limit: int | None, before: int | None, after: int | None) -> Conversation:
        """As the protocol's."""
        head = self._live(key)
        if head is None:
            return Conversation(key)
        given = {"conversation": head.id, "limit": _clamp(limit, -1)}
        if after is None:
            rows = self._all(statements.SELECT_BEFORE, given | {"before": _clamp(before, _MOST)})
            rows.reverse()
        else:
            rows = self._all(statements.SELECT_AFTER, given | {"after": _clamp(after, _MOST)})
        return Conversation(*head.summary, records=tuple(_stored(rows)))

    def summaries(
        self, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
    ) -> tuple[ConversationSummary, ...]:
        """As the protocol's."""
        # A blob, because it stands behind every text.
        given = {"now": self._now, "limit": _clamp(limit, -1), "start": prefix, "end": prefix_end(prefix) or b""}
        if order == "key":
            statement = statements.SELECT_BY_KEY
            # The first text behind a key, for no key holds NUL.
            given["start"] = prefix if after is None else max(prefix, after.key + "\0")
        else:
            statement = statements.SELECT_RECENT_PREFIXED if prefix else statements.SELECT_RECENT
            given["updated_at"] = _MOST if after is None else microseconds(after.updated_at)
            given["behind"] = "" if after is None else after.key
        return tuple(_summary(*row) for row in self._all(statement, given))

    def put(
        self,
        operation: Operation,
        key: str,
        batch: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
        ttl: timedelta | None,
        turns_kept: int,
    ) -> Written:
        """As the protocol's `append` and `replace`."""
        head = self._live(key)
        digest = turn_digest(operation, batch)
        if head is not None and (
            row := self._one(statements.SELECT_TURN, {"conversation": head.id, "turn_id": turn_id})
        ):
            stored_digest, revision, epoch, first = row
            if stored_digest != digest:
                raise TurnConflictError(key, turn_id, Written(revision, epoch, first))
            return Written(revision, epoch, first, replayed=True)
        if expected_revision is not None and expected_revision != (head.revision if head else NO_REVISION):
            raise RevisionConflictError(key)
        if expected_epoch is not None and expected_epoch != (head.epoch if head else ""):
            raise EpochChangedError(key)

        if head is None:
            head = self._start(key)
        elif operation == "replace":
            self._delete(statements.DELETE_RECORDS, head.id)
            head = head._replace(epoch=new_revision(), record_count=0, next_position=1)
        first, number, conversation = head.next_position, head.turn_count + 1, head.id
        head = head._replace(
            revision=new_revision(),
            record_count=head.record_count + len(batch),
            next_position=first + len(batch),
            turn_count=number,
            updated_at=max(head.updated_at, self._now),
            expires_at=None if ttl is None else min(self._now + ttl // _MICROSECOND, _MOST),
        )
        self._connection.execute(statements.UPDATE_HEAD, head._asdict() | {"conversation": conversation})
        self._connection.executemany(
            statements.INSERT_RECORD,
            (
                (conversation, position, record.payload, record.format, turn_id, self._now)
                for position, record in enumerate(batch, first)
            ),
        )
        self._connection.execute(
            statements.INSERT_TURN, (conversation, turn_id, number, digest, head.revision, head.epoch, first)
        )
        if number > turns_kept:
            forgotten = {"conversation": conversation, "forgotten": number - turns_kept}
            self._connection.execute(statements.DELETE_OLD_TURNS, forgotten)
        self.purge()
        return Written(head.revision, head.epoch, first)

    def clear(self, key: str, expected_revision: str | None) -> bool:
        """As the protocol's; it removes at once what has expired under the key, too."""
        live, head = self._live(key), self._head(key)
        if live is not None and expected_revision is not None and expected_revision != live.revision:
            raise RevisionConflictError(key)
        if head is not None:
            self._delete(statements.DELETE_RECORDS, head.id)
            self._delete(statements.DELETE_TURNS, head.id)
            self._delete(statements.DELETE_HEAD, head.id)
        self.purge()
        return live is not None

    def purge(self) -> None:
        """Remove some rows of what has expired, the first to expire first."""
        left = PURGED_AT_ONCE
        while left > 0 and (row := self._one(statements.SELECT_EXPIRED, {"now": self._now})):
            # What has lost a row has lost its key too, so that it stays gone should the clock go back.
            self._connection.execute(statements.BURY_HEAD, {"conversation": row[0]})
            for statement in (statements.DELETE_SOME_RECORDS, statements.DELETE_SOME_TURNS):
                left -= self._delete(statement, row[0], left)
            if left > 0:
                left -= self._delete(statements.DELETE_HEAD, row[0])

    def _start(self, key: str) -> _Head:
        expired = self._head(key)
        if expired is not None:
            self._connection.execute(statements.BURY_HEAD, {"conversation": expired.id})
        head = _Head(key, NO_REVISION, new_revision(), 0, self._now, self._now, 0, 1, 0, None)
        made = self._connection.execute(statements.INSERT_HEAD, head._asdict())
        return head._replace(id=made.lastrowid or 0)

    def _live(self, key: str) -> _Head | None:
        head = self._head(key)
        return head if head is not None and (head.expires_at is None or head.expires_at > self._now) else None

    def _head(self, key: str) -> _Head | None:
        row = self._one(statements.SELECT_HEAD, {"key": key})
        return None if row is None else _Head(*row)

    def _delete(self, statement: str, conversation: int, limit: int = 0) -> int:
        count = self._connection.execute(statement, {"conversation": conversation, "limit": limit}).rowcount
        self.removed = self.removed or count > 0
        return count

    def _one(self, statement: str, given: Mapping[str, object]) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(statement, given).fetchone()
        return row

    def _all(self, statement: str, given: Mapping[str, object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, given).fetchall()
