"""What happens inside a transaction: the operations of the protocol, on the thread of a connection.

A write finds its conflicts before it changes anything, so one that fails leaves nothing behind in a transaction that
holds others too.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime, timedelta
from functools import lru_cache
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

_FEW = 1_000
"""The most conversations under a prefix that are sorted for a page; of more, it is picked out of the newest of all."""

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


def _stored(rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredRecord]:
    time, texts = lru_cache(_time), dict[str, str]()  # what is the same in many records is made once, and kept once
    for payload, format_name, position, turn_id, stored_at in rows:
        format_name = texts.setdefault(format_name, format_name)
        turn_id = texts.setdefault(turn_id, turn_id)
        yield StoredRecord(payload, format_name, position, turn_id, time(stored_at))


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
            with self._rows(statements.SELECT_BEFORE, given | {"before": _clamp(before, _MOST)}) as rows:
                records = tuple(_stored(rows))[::-1]
        else:
            with self._rows(statements.SELECT_AFTER, given | {"after": _clamp(after, _MOST)}) as rows:
                records = tuple(_stored(rows))
        return Conversation(*head.summary, records=records)

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
            if not prefix:
                statement = statements.SELECT_RECENT
            elif self._one(statements.SELECT_BEHIND_FEW, given | {"few": _FEW}) is None:
                statement = statements.SELECT_RECENT_OF_FEW
            else:
                statement = statements.SELECT_RECENT_OF_MANY
            given["updated_at"] = _MOST if after is None else microseconds(after.updated_at)
            given["behind"] = "" if after is None else after.key
        with self._rows(statement, given) as rows:
            return tuple(_summary(*row) for row in rows)

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
        head, turn = self._find(key, turn_id)
        digest = turn_digest(operation, batch)
        if turn is not None:
            stored_digest, revision, epoch, first = turn
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
        conversation, first, number, revision = head.id, head.next_position, head.turn_count + 1, new_revision()
        self._connection.execute(
            statements.UPDATE_HEAD,
            (
                revision,
                head.epoch,
                head.record_count + len(batch),
                first + len(batch),
                number,
                max(head.updated_at, self._now),
                None if ttl is None else min(self._now + ttl // _MICROSECOND, _MOST),
                conversation,
            ),
        )
        self._connection.executemany(
            statements.INSERT_RECORD,
            (
                (conversation, position, record.payload, record.format, turn_id, self._now)
                for position, record in enumerate(batch, first)
            ),
        )
        self._connection.execute(
            statements.INSERT_TURN, (conversation, turn_id, number, digest, revision, head.epoch, first)
        )
        if number % turns_kept == 0:  # many at once: each that goes alone is a page more to write
            forgotten = {"conversation": conversation, "forgotten": number - turns_kept}
            self._connection.execute(statements.DELETE_OLD_TURNS, forgotten)
        return Written(revision, head.epoch, first)

    def clear(self, key: str, expected_revision: str | None) -> bool:
        """As the protocol's; it removes at once what has expired under the key, too."""
        live, head = self._live(key), self._head(key)
        if live is not None and expected_revision is not None and expected_revision != live.revision:
            raise RevisionConflictError(key)
        if head is not None:
            self._delete(statements.DELETE_RECORDS, head.id)
            self._delete(statements.DELETE_TURNS, head.id)
            self._delete(statements.DELETE_HEAD, head.id)
        return live is not None

    def purge(self, writes: int = 1) -> None:
        """Remove as many rows of what has expired as so many writes do, the first to expire first."""
        left = PURGED_AT_ONCE * writes
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
        return head if head is not None and self._is_alive(head) else None

    def _find(self, key: str, turn_id: str) -> tuple[_Head | None, tuple[Any, ...] | None]:
        row = self._one(statements.SELECT_HEAD_AND_TURN, {"key": key, "turn_id": turn_id})
        if row is None or not self._is_alive(head := _Head(*row[:10])):
            return None, None
        return head, None if row[10] is None else row[10:]

    def _is_alive(self, head: _Head) -> bool:
        return head.expires_at is None or head.expires_at > self._now

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

    def _rows(self, statement: str, given: Mapping[str, object]) -> AbstractContextManager[Iterable[tuple[Any, ...]]]:
        # closed, for one that is broken off and kept, in an error's traceback, keeps its snapshot for later reads too
        return closing(self._connection.execute(statement, given))
