"""The records of a conversation, out of all that was staged in its log."""

import asyncio

from chathistory_core.conditional.blocks import Group, bound, unpack
from chathistory_core.conditional.state import State
from chathistory_core.conditional.store import ConditionalStore
from chathistory_core.conditional.turns import is_committed
from chathistory_core.records import StoredRecord


def span(length: int, limit: int | None, before: int | None, after: int | None) -> range:
    """The positions that a `get` asks for; within an epoch they have no gaps."""
    first, end = 1, length + 1
    if after is not None:
        first = after + 1
        end = end if limit is None else min(end, first + limit)
    else:
        end = end if before is None else min(end, before)
        first = first if limit is None else max(first, end - limit)
    return range(first, end)


async def read(store: ConditionalStore, state: State, positions: range) -> tuple[StoredRecord, ...] | None:
    """The records, or None where some were taken away since the state was read.

    Others may have staged records for the same positions. A group is taken only if its write was committed, which the
    head proves of the newest, and each group of the one before it. That is also what makes it safe to read a log that
    is being dropped: there, what nobody committed may be all that is left of a position.
    """
    end = min(positions.stop - 1 + state.widest, state.length + 1)  # in front of it ends the last group that is needed
    groups = unpack(await store.scan(state.epoch, bound(positions.start), bound(end)))
    committed = {state.revision, *(group.origin.before for group in groups)}
    found = _choose(groups, committed, positions)
    if len(found) < len(positions):
        asked = list({group.origin.revision for group in groups if _may_fill(group, positions, found)} - committed)
        answers = await asyncio.gather(*(is_committed(store, state, revision) for revision in asked))
        committed |= {revision for revision, answer in zip(asked, answers, strict=True) if answer}
        found = _choose(groups, committed, positions)
    return tuple(found.values()) if len(found) == len(positions) else None


def _choose(groups: list[Group], committed: set[str], positions: range) -> dict[int, StoredRecord]:
    return {
        record.position: record
        for group in groups
        if group.origin.revision in committed
        for record in group.records
        if record.position in positions
    }


def _may_fill(group: Group, positions: range, found: dict[int, StoredRecord]) -> bool:
    return any(record.position in positions and record.position not in found for record in group.records)
