"""The SQL of the hot path, compiled once from the tables; parameters are named, but those of `INSERT_RECORD`."""

from typing import Any

from sqlalchemy import (
    Column,
    LargeBinary,
    and_,
    bindparam,
    cast,
    delete,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.sql.expression import BindParameter, ClauseElement, ColumnClause

from chathistory_sqlite.schema import conversations, records, turns


def _sql(statement: ClauseElement, style: str = "named") -> str:
    return str(statement.compile(dialect=dialect(paramstyle=style)))


_head, _record, _turn = conversations.c, records.c, turns.c
_conversation: BindParameter[int] = bindparam("conversation")
_now: BindParameter[int] = bindparam("now")
_limit: BindParameter[int] = bindparam("limit")
_from_first: ColumnClause[int] = literal_column("0")

_summary = select(_head.key, _head.revision, _head.epoch, _head.record_count, _head.created_at, _head.updated_at)
_alive = or_(_head.expires_at.is_(None), _head.expires_at > _now)
_kept: dict[Column[Any], BindParameter[Any]] = {
    column: bindparam(column.name) for column in _head if column is not _head.id
}

SELECT_HEAD = _sql(
    _summary.add_columns(_head.id, _head.next_position, _head.turn_count, _head.expires_at).where(
        _head.key == bindparam("key")
    )
)
INSERT_HEAD = _sql(insert(conversations).values(_kept))
UPDATE_HEAD = _sql(
    update(conversations)
    .where(_head.id == _conversation)
    .values({column: value for column, value in _kept.items() if column not in (_head.key, _head.created_at)})
)
DELETE_HEAD = _sql(delete(conversations).where(_head.id == _conversation))

SELECT_EXPIRED = _sql(
    select(_head.id)
    .where(_head.expires_at <= _now)
    .order_by(_head.expires_at)
    .limit(literal_column("1"))
    .offset(_from_first)
)
BURY_HEAD = _sql(
    update(conversations)
    .where(_head.id == _conversation)
    .values({_head.key: null(), _head.expires_at: literal_column("0")})
)

_page = _summary.where(_alive)
# A prefix is a range of keys, which the index serves and a pattern would not: `start <= key < end`.
_prefixed = _page.where(_head.key >= bindparam("start"), _head.key < bindparam("end"))
_older = and_(
    _head.updated_at <= bindparam("updated_at"),
    or_(_head.updated_at < bindparam("updated_at"), _head.key > bindparam("behind")),
)
SELECT_BY_KEY = _sql(_prefixed.order_by(_head.key).limit(_limit).offset(_from_first))
SELECT_RECENT = _sql(
    _page.where(_head.key.is_not(None), _older)
    .order_by(_head.updated_at.desc(), _head.key)
    .limit(_limit)
    .offset(_from_first)
)
SELECT_RECENT_PREFIXED = _sql(
    _prefixed.where(_older).order_by(_head.updated_at.desc(), _head.key).limit(_limit).offset(_from_first)
)

_payload = cast(_record.payload, LargeBinary)  # bytes, also where the sqlite3 tool has made it text
_read = select(_payload, _record.format, _record.position, _record.turn_id, _record.stored_at).where(
    _record.conversation == _conversation
)
SELECT_AFTER = _sql(
    _read.where(_record.position > bindparam("after")).order_by(_record.position).limit(_limit).offset(_from_first)
)
SELECT_BEFORE = _sql(
    _read.where(_record.position < bindparam("before"))
    .order_by(_record.position.desc())
    .limit(_limit)
    .offset(_from_first)
)
INSERT_RECORD = _sql(insert(records), "qmark")
"""Its parameters are in the order of the table's columns."""
DELETE_RECORDS = _sql(delete(records).where(_record.conversation == _conversation))

SELECT_TURN = _sql(
    select(_turn.digest, _turn.revision, _turn.epoch, _turn.first_position).where(
        _turn.conversation == _conversation, _turn.turn_id == bindparam("turn_id")
    )
)
INSERT_TURN = _sql(insert(turns), "qmark")
"""Its parameters are in the order of the table's columns."""
DELETE_TURNS = _sql(delete(turns).where(_turn.conversation == _conversation))
DELETE_OLD_TURNS = _sql(
    delete(turns).where(_turn.conversation == _conversation, _turn.number <= bindparam("forgotten"))
)

_some_records, _some_turns = records.alias("some"), turns.alias("some")
DELETE_SOME_RECORDS = _sql(
    delete(records).where(
        _record.conversation == _conversation,
        _record.position.in_(
            select(_some_records.c.position)
            .where(_some_records.c.conversation == _conversation)
            .limit(_limit)
            .offset(_from_first)
        ),
    )
)
DELETE_SOME_TURNS = _sql(
    delete(turns).where(
        _turn.conversation == _conversation,
        _turn.number.in_(
            select(_some_turns.c.number)
            .where(_some_turns.c.conversation == _conversation)
            .limit(_limit)
            .offset(_from_first)
        ),
    )
)
