"""The SQL of the hot path, compiled once from the tables.

Parameters are named, but those of what every write executes: by position they are bound in half the time.
"""

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

_whole_head = _summary.add_columns(_head.id, _head.next_position, _head.turn_count, _head.expires_at).where(
    _head.key == bindparam("key")
)
SELECT_HEAD = _sql(_whole_head)
SELECT_HEAD_AND_TURN = _sql(
    _whole_head.add_columns(_turn.digest, _turn.revision, _turn.epoch, _turn.first_position).join_from(
        conversations,
        turns,
        and_(_turn.conversation == _head.id, _turn.turn_id == bindparam("turn_id")),
        isouter=True,
    )
)
"""The columns of the turn are null where it is not stored."""
INSERT_HEAD = _sql(insert(conversations).values(_kept))
UPDATE_HEAD = _sql(
    update(conversations)
    .where(_head.id == _conversation)
    .values({column: value for column, value in _kept.items() if column not in (_head.key, _head.created_at)}),
    "qmark",
)
"""Its parameters are in the order of the table's columns, without those that stay, and the id last."""
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
_prefixed = and_(_head.key >= bindparam("start"), _head.key < bindparam("end"))
_older = and_(
    _head.updated_at <= bindparam("updated_at"),
    or_(_head.updated_at < bindparam("updated_at"), _head.key > bindparam("behind")),
)
_recent = _page.where(_older).order_by(_head.updated_at.desc(), _head.key).limit(_limit).offset(_from_first)
SELECT_BY_KEY = _sql(_page.where(_prefixed).order_by(_head.key).limit(_limit).offset(_from_first))
SELECT_RECENT = _sql(_recent.where(_head.key.is_not(None)))
SELECT_RECENT_OF_FEW = _sql(_recent.where(_prefixed))
"""It finds all that have the prefix, and sorts them."""
_walked: ColumnClause[str] = literal_column("+chathistory_conversations.key")  # with a plus no index of it is looked in
SELECT_RECENT_OF_MANY = _sql(_recent.where(_walked >= bindparam("start"), _walked < bindparam("end")))
"""It goes from the newest on, and leaves out what has not the prefix."""
SELECT_BEHIND_FEW = _sql(select(_head.key).where(_prefixed).limit(literal_column("1")).offset(bindparam("few")))

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
        _turn.turn_id.in_(
            select(_some_turns.c.turn_id)
            .where(_some_turns.c.conversation == _conversation)
            .limit(_limit)
            .offset(_from_first)
        ),
    )
)
