"""How a write is staged, committed, and found again when its reply is lost."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from chathistory_core.conditional import turns
from chathistory_core.conditional.blocks import Origin, pack
from chathistory_core.conditional.state import State, decode, vacant
from chathistory_core.conditional.store import Block, ConditionalStore
from chathistory_core.conditional.tries import Tries
from chathistory_core.conditional.turns import Turn
from chathistory_core.errors import (
    BackendError,
    BackendUnavailableError,
    EpochChangedError,
    RevisionConflictError,
    TurnConflictError,
)
from chathistory_core.records import NO_REVISION, Operation, Record, Written, new_revision, turn_digest


class Write(NamedTuple):
    """What was asked for."""

    operation: Operation
    key: str
    records: Sequence[Record]
    turn_id: str
    expected_revision: str | None
    expected_epoch: str | None


class _Attempt(NamedTuple):
    """What was staged on a head; as long as that is the head, it may yet be committed."""

    seen: str
    state: State
    blocks: Sequence[Block]
    turn: Turn


async def write(store: ConditionalStore, call: Write, *, max_block: int, clock: Callable[[], datetime]) -> Written:
    """Do it, once.

    Neither a commit that was refused is believed, since a driver may have repeated it by itself, nor one that failed:
    the head says what became of it. While the head has not changed, the same attempt is made again, so that a request
    that arrives late does no harm; when it has, an attempt that was not committed never will be.
    """
    digest = turn_digest(call.operation, call.records).hex()
    tries = Tries(call.key)
    attempt: _Attempt | None = None
    leftovers: list[Turn] = []
    announced = ""
    while True:
        await tries.another()
        head = await store.load(call.key)
        state = None if head is None else decode(head)
        if attempt is not None and (state is None or state.revision != attempt.seen):
            if await _is_kept(store, attempt, state, failed=tries.failures > 0):
                return await _finish(store, call, attempt, leftovers)
            await _discard(store, attempt, state)
            attempt = None
        if state is None:
            if (refusal := _refusal(call, None)) is not None:
                raise refusal
            announced = await _announce(store, vacant(call.key, clock()), tries)
            continue
        if attempt is None:
            stored = None
            if state.revision != announced:
                stored, leftovers = await turns.find(store, state, call.turn_id)
            if stored is None and (refusal := _refusal(call, state)) is not None:
                if await _is_current(store, state):
                    raise refusal
                continue
            for log in state.dead:
                await store.drop(log)
            if stored is not None:
                return _replayed(call, stored, digest)
            attempt = _stage(call, digest, state, clock(), max_block=max_block)
        try:
            kept = await store.commit(call.key, head, attempt.state.encode(), attempt.blocks)
        except BackendUnavailableError as error:
            tries.failed(error)
        else:
            if kept:
                return await _finish(store, call, attempt, leftovers)


async def _announce(store: ConditionalStore, place: State, tries: Tries) -> str:
    try:
        await store.commit(place.key, None, place.encode(), ())
    except BackendUnavailableError as error:
        tries.failed(error)
    return place.revision


def _stage(call: Write, digest: str, state: State, now: datetime, *, max_block: int) -> _Attempt:
    starts = not state.epoch
    fresh = starts or call.operation == "replace"
    first = 1 if fresh else state.length + 1
    now = max(now, state.updated_at)
    origin = Origin(new_revision(), state.revision, call.turn_id, now)
    epoch = state.spare if fresh else state.epoch
    blocks, widest = pack(epoch, call.records, first, origin, max_block=max_block)
    turn = Turn(origin.revision, digest, epoch, first, len(call.records))
    new = state._replace(
        revision=origin.revision,
        epoch=epoch,
        spare=new_revision() if fresh else state.spare,
        length=first - 1 + len(call.records),
        widest=widest if fresh else max(widest, state.widest),
        created_at=now if starts else state.created_at,
        updated_at=now,
        dead=(state.epoch,) if fresh and not starts else (),
    )
    staged = (*blocks, turns.note(state.life, call.turn_id, turn), turns.proof(state.life, state.revision))
    return _Attempt(state.revision, new, staged, turn)


def _refusal(call: Write, state: State | None) -> BackendError | None:
    revision, epoch = (state.revision, state.epoch) if state is not None and state.epoch else (NO_REVISION, "")
    if call.expected_revision is not None and call.expected_revision != revision:
        return RevisionConflictError(call.key)
    if call.expected_epoch is not None and call.expected_epoch != epoch:
        return EpochChangedError(call.key)
    return None


async def _is_current(store: ConditionalStore, state: State) -> bool:
    head = await store.load(state.key)
    return head is not None and head.revision == state.revision


def _replayed(call: Write, stored: Turn, digest: str) -> Written:
    if stored.digest != digest:
        raise TurnConflictError(call.key, call.turn_id, stored.written)
    return stored.written._replace(replayed=True)


async def _is_kept(store: ConditionalStore, attempt: _Attempt, state: State | None, *, failed: bool) -> bool:
    if state is not None and state.life == attempt.state.life:
        return await turns.is_committed(store, state, attempt.state.revision)
    if failed:
        raise BackendUnavailableError(
            f"conversation {attempt.state.key!r} was cleared while a write was repeated: whether the write came before "
            "is unknown"
        )
    return False


async def _finish(store: ConditionalStore, call: Write, attempt: _Attempt, leftovers: list[Turn]) -> Written:
    for log in attempt.state.dead:
        await store.drop(log)
    with suppress(BackendUnavailableError):  # the write is done
        await turns.sweep(store, attempt.state.life, call.turn_id, leftovers)
    return attempt.turn.written


async def _discard(store: ConditionalStore, attempt: _Attempt, state: State | None) -> None:
    """Remove what was staged, but for the proof in a life that goes on."""
    lives = state is not None and state.life == attempt.state.life
    proof = turns.proof(attempt.state.life, attempt.seen)
    with suppress(BackendUnavailableError):  # it hurts nobody
        for log in {block.log for block in attempt.blocks}:
            names = [block.name for block in attempt.blocks if block.log == log and not (lives and block == proof)]
            await store.drop(log, names)
