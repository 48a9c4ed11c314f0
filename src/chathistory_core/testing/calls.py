"""Calls of a backend as values: to draw by chance, to send again, to record with what was answered."""

from typing import NamedTuple, TypeAlias

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import EpochChangedError, RevisionConflictError, TurnConflictError
from chathistory_core.records import Conversation, ConversationSummary, Record, Written


class Append(NamedTuple):
    """An append to one conversation."""

    key: str
    records: tuple[Record, ...]
    turn_id: str
    expected_revision: str | None = None
    expected_epoch: str | None = None


class Replace(NamedTuple):
    """A replace of one conversation."""

    key: str
    records: tuple[Record, ...]
    turn_id: str
    expected_revision: str | None = None


class Clear(NamedTuple):
    """A clear of one conversation."""

    key: str
    expected_revision: str | None = None


class Get(NamedTuple):
    """A read of one conversation."""

    key: str
    limit: int | None = None
    before: int | None = None
    after: int | None = None


class Look(NamedTuple):
    """What the listing says of one conversation."""

    key: str


Call: TypeAlias = Append | Replace | Clear | Get | Look

Conflict: TypeAlias = RevisionConflictError | TurnConflictError | EpochChangedError

Answer: TypeAlias = Written | bool | Conversation | ConversationSummary | Conflict | None
"""None: the listing has no such conversation."""


async def send(backend: ChatHistoryBackend, call: Call) -> Answer:
    """What the backend answers; a conflict is an answer too."""
    try:
        match call:
            case Append():
                return await backend.append(
                    call.key,
                    call.records,
                    turn_id=call.turn_id,
                    expected_revision=call.expected_revision,
                    expected_epoch=call.expected_epoch,
                )
            case Replace():
                return await backend.replace(
                    call.key, call.records, turn_id=call.turn_id, expected_revision=call.expected_revision
                )
            case Clear():
                return await backend.clear(call.key, expected_revision=call.expected_revision)
            case Get():
                return await backend.get(call.key, limit=call.limit, before=call.before, after=call.after)
            case Look():
                listed = await backend.summaries(prefix=call.key)
                return next((summary for summary in listed if summary.key == call.key), None)
    except (RevisionConflictError, TurnConflictError, EpochChangedError) as conflict:
        return conflict


def shown(value: Call | Answer) -> str:
    """The call or answer in one short line; tokens are cut to their first 6 characters."""
    match value:
        case Append() | Replace():
            texts = " ".join(record.payload.decode() for record in value.records) or "nothing"
            named = f"{type(value).__name__.lower()} {texts}, turn {value.turn_id}"
            epoch = value.expected_epoch if isinstance(value, Append) else None
            return named + _expected("revision", value.expected_revision) + _expected("epoch", epoch)
        case Clear():
            return "clear" + _expected("revision", value.expected_revision)
        case Get():
            given = {"limit": value.limit, "before": value.before, "after": value.after}
            return " ".join(["get", *(f"{name}={number}" for name, number in given.items() if number is not None)])
        case Look():
            return "summary"
        case Conversation():
            texts = " ".join(f"{record.position}:{record.payload.decode()}" for record in value.records)
            return f"{_head(value)}, {texts or 'no records'}"
        case ConversationSummary():
            return _head(value)
        case Written():
            again = " again" if value.replayed else ""
            return f"written{again} at {value.first_position}, revision {value.revision[:6]}, epoch {value.epoch[:6]}"
        case Exception():
            return type(value).__name__
        case _:
            return str(value)


def _expected(name: str, token: str | None) -> str:
    return "" if token is None else f" if {name} is {token[:6] or 'none'}"


def _head(head: Conversation | ConversationSummary) -> str:
    if not head.revision:
        return "no conversation"
    return f"revision {head.revision[:6]}, epoch {head.epoch[:6]}, {head.record_count} in all"
