"""Stored history rewritten on purpose, with a copy of what it was."""

import json
import logging
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

from chathistory_core.checks import check_write
from chathistory_core.compaction.archiving import Archive
from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.errors import RevisionConflictError, TurnConflictError
from chathistory_core.formats.note import Note
from chathistory_core.messages import ChatMessage
from chathistory_core.messages.prefix import begins_with
from chathistory_core.records import NO_REVISION, Record, Written
from chathistory_core.reducers import Reducer, SummaryReducer
from chathistory_core.saving.kept import shown
from chathistory_core.summaries import KeptSummaries, found_in, is_summary_note

logger = logging.getLogger("chathistory")

_TRIES = 20
"""How often it is begun anew because somebody wrote meanwhile."""


class Compacted(NamedTuple):
    """What became of a conversation that was compacted."""

    before: int
    """How many messages were stored."""
    after: int
    """How many are stored now."""
    archive: str | None = None
    """The key of the copy of what was stored, inside the scope; None where none was made."""
    written: Written | None = None
    """None where the reducer left everything as it was, and nothing was written."""


async def compact(
    conversations: Conversations, key: str, reducer: Reducer, *, full: Callable[[str], str], archive: str | bool
) -> Compacted:
    """Put the reducer's view in the place of what is stored under the key, which `full` makes the store's.

    Raises:
        RevisionConflictError: others wrote each time that it was tried.
    """
    if not isinstance(archive, str | bool):
        raise TypeError(f"`archive` is a key, True or False, not {type(archive).__name__}")
    stored_key = full(key)
    name = archive if isinstance(archive, str) else None
    copy = Archive(conversations, key, full, name=name) if archive is not False else None
    for _ in range(_TRIES):
        loaded = await conversations.load(stored_key)
        before = len(loaded.messages)
        exists = loaded.conversation.revision != NO_REVISION
        view = await _view(conversations, loaded, reducer) if exists else None
        if view is None:
            return Compacted(before, before)
        head = await conversations.backend.get(stored_key, limit=0)
        if head.revision != loaded.conversation.revision:
            continue  # as it is when a summary was kept just now
        records = await _rewritten(conversations, loaded, view)
        turn_id = _turn_id(loaded)
        check_write("replace", stored_key, records, turn_id, conversations.backend.limits)
        archived = None if copy is None else await copy.hold(loaded)
        try:
            written = await conversations.backend.replace(
                stored_key, records, turn_id=turn_id, expected_revision=head.revision
            )
        except (RevisionConflictError, TurnConflictError):
            continue
        conversations.forget(stored_key)
        logger.info("compact %r: %d of %d messages, turn %r", stored_key, len(view), before, turn_id)
        return Compacted(before, len(view), archived, written)
    raise RevisionConflictError(stored_key)


async def _view(conversations: Conversations, loaded: Loaded, reducer: Reducer) -> Sequence[ChatMessage] | None:
    """What the reducer makes of it; None where that is what is stored."""
    name = reducer.summary_name if isinstance(reducer, SummaryReducer) else None
    if not isinstance(reducer, SummaryReducer) or name is None:
        messages = _shown(loaded)
        view = await reducer.reduce(messages)
        return None if _same(view, messages) else view
    found = found_in(loaded, name)
    messages = [*found.before, *_shown(found.loaded)]
    view = await reducer.reduce_with(messages, KeptSummaries(conversations, name, found))
    return None if found.summary is None and _same(view, messages) else view


def _shown(loaded: Loaded) -> list[ChatMessage]:
    """Without what a model is not shown of runs that failed: rewritten records do not tell it from the rest."""
    return [message for group in shown(loaded) for message in group]


def _same(view: Sequence[ChatMessage], messages: Sequence[ChatMessage]) -> bool:
    return len(view) == len(messages) and begins_with(view, messages)


async def _rewritten(conversations: Conversations, loaded: Loaded, view: Sequence[ChatMessage]) -> list[Record]:
    """The view as records: those that are stored where their messages are whole and as they were, else new ones.

    Notes, and other records without messages, stay between the records that they stood between, apart from summaries:
    those stood for records that may be gone.
    """
    groups, stored = loaded.groups, loaded.conversation.records
    place_of = {id(group[0]): place for place, group in enumerate(groups) if group}
    silent = [place for place, group in enumerate(groups) if not group and not _is_summary(group)]
    records: list[Record] = []
    fresh: list[ChatMessage] = []
    index = 0
    while index < len(view):
        place = place_of.get(id(view[index]))
        if place is None or not _same(view[index : index + len(groups[place])], groups[place]):
            fresh.append(view[index])
            index += 1
            continue
        records += await conversations.encode(loaded.conversation.key, fresh)
        fresh.clear()
        while silent and silent[0] < place:
            records.append(stored[silent.pop(0)].record)
        records.append(stored[place].record)
        index += len(groups[place])
    records += await conversations.encode(loaded.conversation.key, fresh)
    return records + [stored[place].record for place in silent]


def _is_summary(group: Sequence[ChatMessage]) -> bool:
    return isinstance(group, Note) and is_summary_note(group)


def _turn_id(loaded: Loaded) -> str:
    state = json.dumps([loaded.conversation.epoch, loaded.conversation.revision])
    return f"compact-{blake2b(state.encode(), digest_size=16).hexdigest()}"
