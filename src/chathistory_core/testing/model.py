"""What a conversation may answer, from the obligations alone: a state, a call and an answer give the next state.

Revisions, epochs, positions and times are the backend's to choose: the model takes each from the first answer that
tells it, checks that it may be chosen, and holds the backend to it from then on.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from chathistory_core.errors import EpochChangedError, RevisionConflictError, TurnConflictError
from chathistory_core.records import (
    NO_REVISION,
    Conversation,
    ConversationSummary,
    Operation,
    StoredRecord,
    Written,
    turn_digest,
)
from chathistory_core.testing.calls import Answer, Append, Call, Clear, Get, Look, Replace, shown
from chathistory_core.testing.scenario import BackendFactory


class ModelTests:
    """Random calls, one after another on two handles, each answer held against the model's."""

    def test_whatever_is_called_it_answers_as_the_model_says(self, make_backend: BackendFactory) -> None:
        # here, for importing hypothesis takes longer than everything else and worker processes have no use for it
        from chathistory_core.testing.machine import run_machine

        run_machine(make_backend)


class Line(NamedTuple):
    """A record that is there; its position and time are None until they were told."""

    payload: bytes
    format: str
    turn_id: str
    position: int | None = None
    stored_at: datetime | None = None


class Turn(NamedTuple):
    """A write that is remembered."""

    turn_id: str
    digest: bytes
    written: Written


class State(NamedTuple):
    """A conversation, or that there is none."""

    key: str
    revision: str = NO_REVISION
    epoch: str = ""
    lines: tuple[Line, ...] = ()
    turns: tuple[Turn, ...] = ()
    created_at: datetime | None = None
    updated_at: datetime | None = None
    not_before: datetime | None = None
    """The newest `updated_at` that was told before the last write."""
    tokens: frozenset[str] = frozenset()
    """Every revision and epoch that the key ever had."""


class ForbiddenError(AssertionError):
    """No backend may give this answer in this state."""


def step(state: State, call: Call, answer: Answer, *, repeated: bool = False) -> State:
    """The state after the call; `repeated` says that an earlier attempt at it, whose answer was lost, may have written.

    Raises:
        ForbiddenError: the answer is none that the call may get.
    """
    __tracebackhide__ = True
    try:
        match call:
            case Append() | Replace():
                return _after_write(state, call, answer, repeated=repeated)
            case Clear():
                return _after_clear(state, call, answer)
            case Get():
                return _after_get(state, call, answer)
            case Look():
                return _after_look(state, answer)
    except ForbiddenError as error:
        raise ForbiddenError(f"{state.key!r}: {shown(call)} → {shown(answer)}: {error}") from None


def _after_write(state: State, call: Append | Replace, answer: Answer, *, repeated: bool) -> State:
    operation: Operation = "append" if isinstance(call, Append) else "replace"
    digest = turn_digest(operation, call.records)
    for turn in state.turns:
        if turn.turn_id == call.turn_id:
            _check_known(turn, digest, answer, repeated=repeated)
            return state
    conflicts: list[type[Exception]] = []
    if call.expected_revision not in (None, state.revision):
        conflicts.append(RevisionConflictError)
    if isinstance(call, Append) and call.expected_epoch not in (None, state.epoch):
        conflicts.append(EpochChangedError)
    if conflicts:
        _require(isinstance(answer, tuple(conflicts)), "the expectation is not met, and the turn is new")
        return state
    if not isinstance(answer, Written):
        raise ForbiddenError("the turn is new and meets its expectations: it has to be written")
    _require(repeated or not answer.replayed, "the turn is new and cannot have been replayed")
    _require(answer.revision != NO_REVISION and answer.revision not in state.tokens, "the revision is not new")
    first, kept = answer.first_position, state.lines
    if operation == "replace" or state.revision == NO_REVISION:
        _require(answer.epoch not in ("", *state.tokens), "records were taken away and the epoch is not new")
        kept = ()
    else:
        _require(answer.epoch == state.epoch, "an append changed the epoch")
    _require(1 <= first < 2**53, "a position is from 1 and below 2**53")
    _require(first in _free(kept) if call.records else first == 1, "this is not the position of the first record")
    added = [Line(record.payload, record.format, call.turn_id) for record in call.records]
    added[:1] = [line._replace(position=first) for line in added[:1]]
    return state._replace(
        revision=answer.revision,
        epoch=answer.epoch,
        lines=(*kept, *added),
        turns=(*state.turns, Turn(call.turn_id, digest, answer._replace(replayed=False))),
        updated_at=None,
        not_before=state.updated_at or state.not_before,
        tokens=state.tokens | {answer.revision, answer.epoch},
    )


def _check_known(turn: Turn, digest: bytes, answer: Answer, *, repeated: bool) -> None:
    if turn.digest != digest:
        if not isinstance(answer, TurnConflictError):
            raise ForbiddenError("the turn is stored with something else: that is a conflict")
        _require(answer.written._replace(replayed=False) == turn.written, "this is not what the stored turn got")
        return
    if not isinstance(answer, Written):
        raise ForbiddenError("the turn is stored: its result has to be returned")
    _require(answer._replace(replayed=False) == turn.written, f"the turn got another result: {shown(turn.written)}")
    _require(repeated or answer.replayed, "the turn is stored and cannot have been written now")


def _after_clear(state: State, call: Clear, answer: Answer) -> State:
    if state.revision == NO_REVISION:
        _require(answer is False, "there is nothing to clear")
        return state
    if call.expected_revision not in (None, state.revision):
        _require(isinstance(answer, RevisionConflictError), f"the revision is {state.revision[:6]}")
        return state
    _require(answer is True, "there is something to clear")
    return State(state.key, tokens=state.tokens)


def _after_look(state: State, answer: Answer) -> State:
    if state.revision == NO_REVISION:
        _require(answer is None, "there is no conversation to list")
        return state
    if not isinstance(answer, ConversationSummary):
        raise ForbiddenError("the conversation is not listed")
    return _with_head(state, answer)


def _after_get(state: State, call: Get, answer: Answer) -> State:
    if not isinstance(answer, Conversation):
        raise ForbiddenError("a read gives a conversation")
    if state.revision == NO_REVISION:
        _require(answer == Conversation(state.key), "there is no conversation to read")
        return state
    state = _with_head(state, answer)
    for start, stop in _slices(state.lines, call):
        told = [_told(line, record) for line, record in zip(state.lines[start:stop], answer.records, strict=False)]
        if len(answer.records) == max(0, stop - start) and None not in told:
            lines = (*state.lines[:start], *(line for line in told if line), *state.lines[max(start, stop) :])
            _check_positions(lines)
            return state._replace(lines=lines)
    held = " ".join(f"{line.position or '?'}:{line.payload.decode()}" for line in state.lines)
    raise ForbiddenError(f"these are not the records that were asked for, of {held or 'none'}")


def _with_head(state: State, head: Conversation | ConversationSummary) -> State:
    _require(head.key == state.key, "this is another conversation's head")
    _require(head.revision == state.revision, f"the revision is {state.revision[:6]}")
    _require(head.epoch == state.epoch, f"the epoch is {state.epoch[:6]}")
    _require(head.record_count == len(state.lines), f"it has {len(state.lines)} records")
    created, updated = head.created_at, head.updated_at
    if created is None or updated is None:
        raise ForbiddenError("a conversation has times")
    _require(state.created_at in (None, created), "created_at has changed")
    _require(state.updated_at in (None, updated), "updated_at has changed and nothing was written")
    _require(created <= updated, "updated_at is before created_at")
    _require(state.not_before is None or state.not_before <= updated, "updated_at went back")
    return state._replace(created_at=created, updated_at=updated)


def _told(line: Line, record: StoredRecord) -> Line | None:
    """The line with what the record tells of it; None where they are not the same."""
    same = (line.payload, line.format, line.turn_id) == (record.payload, record.format, record.turn_id)
    if same and line.position in (None, record.position) and line.stored_at in (None, record.stored_at):
        return line._replace(position=record.position, stored_at=record.stored_at)
    return None


def _slices(lines: Sequence[Line], call: Get) -> Iterator[tuple[int, int]]:
    """Where the records that are asked for may begin and end."""
    size = len(lines) if call.limit is None else call.limit
    if call.after is not None:
        for start in _behind(lines, call.after):
            yield start, min(len(lines), start + size)
    else:
        for stop in [len(lines)] if call.before is None else _behind(lines, call.before - 1):
            yield max(0, stop - size), stop


def _behind(lines: Sequence[Line], position: int) -> range:
    """The index of the first line behind a position: several where positions of lines are not known yet."""
    lowest, highest = 0, max(0, min(len(lines), position))
    for index, line in enumerate(lines):
        if line.position is not None:
            if line.position <= position:
                lowest = index + 1
                highest = min(highest, index + 1 + position - line.position)
            else:
                highest = min(highest, index)
                lowest = max(lowest, index + 1 + position - line.position)
    return range(lowest, highest + 1)


def _free(lines: Sequence[Line]) -> range:
    """The positions that a record behind these lines may get."""
    known = [line.position + len(lines) - index for index, line in enumerate(lines) if line.position is not None]
    return range(max([1, *known]), 2**53)


def _check_positions(lines: Sequence[Line]) -> None:
    for index, line in enumerate(lines):
        _require(line.position is None or line.position in _free(lines[:index]), "positions do not rise from 1")


def _require(condition: bool, reason: str) -> None:  # noqa: FBT001 - as in an assertion
    if not condition:
        raise ForbiddenError(reason)
