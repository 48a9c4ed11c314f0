"""Summaries made and kept, each once."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from itertools import accumulate
from weakref import WeakValueDictionary

from chathistory_core.conversations import Conversations
from chathistory_core.errors import ChatHistoryError, EpochChangedError, TurnConflictError
from chathistory_core.formats.note import is_note
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import Summarize
from chathistory_core.summaries.found import Found
from chathistory_core.summaries.summary import Summary, digest, note_of, read_note

logger = logging.getLogger("chathistory")

_making = WeakValueDictionary[tuple[int, str], asyncio.Lock]()
"""Who asks the model for which summary, by loop and turn id."""


class KeptSummaries:
    """The summaries of one conversation under one name, as of `chathistory_core.reducers.Summaries`."""

    def __init__(self, conversations: Conversations, name: str, found: Found) -> None:
        self._conversations = conversations
        self._name = name
        self._loaded = found.loaded
        self._counting = 0 if found.summary is None else found.summary.records
        self._first = found.loaded.conversation.record_count - len(found.loaded.groups)
        self._measured: Sequence[ChatMessage] = ()
        self._ends: list[int] = [0]
        self._record_of = {
            id(message): self._first + place for place, group in enumerate(found.loaded.groups) for message in group
        }

    def may_end(self, messages: Sequence[ChatMessage], stop: int) -> bool:
        """As of `Summaries`."""
        return self._records_before(messages, stop) > self._counting

    async def make(self, messages: Sequence[ChatMessage], stop: int, summarize: Summarize) -> str | None:
        """As of `Summaries`. What cannot be kept is returned all the same."""
        records = self._records_before(messages, stop)
        if records <= self._counting:
            raise ValueError(f"no summary can end before message {stop}: ask `may_end` first")
        end = digest(self._loaded.groups[records - 1 - self._first])
        turn_id = self._turn_id(records, end)
        async with _alone(turn_id):
            kept = await self._kept(turn_id)  # by who was first since this was loaded
            if kept is None:
                text = await summarize()
                if text is None:
                    return None
                kept = await self._keep(Summary(text, records, end), turn_id)
        self._counting = records
        return kept.text

    def _records_before(self, messages: Sequence[ChatMessage], stop: int) -> int:
        """How many records the messages before this place are all of; 0 where a record stands on both sides of it."""
        if self._measured is not messages:
            self._measured, self._ends = messages, self._measure(messages)
        return self._ends[stop]

    def _measure(self, messages: Sequence[ChatMessage]) -> list[int]:
        """For each place, how many records are before it.

        What a reducer or a repair made is of no record that is known. Since the order is kept, it is of one between
        those of the known messages around it; where the place is amid such messages, they all count as behind it.
        """
        known = [self._record_of.get(id(message)) for message in messages]
        none = self._loaded.conversation.record_count
        last = accumulate((-1 if record is None else record for record in known), max, initial=-1)
        behind = [none if record is None else record for record in reversed(known)]
        first = reversed(list(accumulate(behind, min, initial=none)))
        return [
            0 if before >= after else before + 1 if here is None else self._said(after, least=before + 1)
            for before, after, here in zip(last, first, [*known, None], strict=True)
        ]

    def _said(self, records: int, *, least: int) -> int:
        """So many records, without notes at their end: a digest of one would tell it from no other."""
        while records > least and not self._loaded.groups[records - 1 - self._first]:
            records -= 1
        return records

    def _turn_id(self, records: int, end: str) -> str:
        stretch = json.dumps([self._name, self._loaded.conversation.epoch, records, end])
        return f"summary-{blake2b(stretch.encode(), digest_size=16).hexdigest()}"

    async def _keep(self, summary: Summary, turn_id: str) -> Summary:
        """The summary that is kept: this one, or what another process kept meanwhile."""
        key = self._loaded.conversation.key
        try:
            return await self._append(summary, turn_id)
        except EpochChangedError:
            logger.info("summary of %r: not kept, for what it stands for was taken away meanwhile", key)
        except ChatHistoryError as error:
            logger.warning("summary of %r: not kept: %s", key, type(error).__name__)
        return summary

    async def _append(self, summary: Summary, turn_id: str) -> Summary:
        head = self._loaded.conversation
        [record] = await self._conversations.encode(head.key, [note_of(summary, self._name)])
        if not is_note(record.format):
            logger.warning("summary of %r: not kept, for the codec writes no notes", head.key)
            return summary
        try:
            written = await self._conversations.backend.append(
                head.key, [record], turn_id=turn_id, expected_epoch=head.epoch
            )
        except TurnConflictError as error:
            return await self._kept(turn_id, error.written.first_position) or summary
        again = ", stored before" if written.replayed else ""
        logger.info("summary of %r: %d records, turn %r%s", head.key, summary.records, turn_id, again)
        return summary

    async def _kept(self, turn_id: str, position: int | None = None) -> Summary | None:
        """What is stored under this turn id at this position, or anywhere behind what was loaded."""
        head = self._loaded.conversation
        last = head.records[-1].position if head.records else 0
        after, limit = (last, None) if position is None else (position - 1, 1)
        found = await self._conversations.backend.get(head.key, after=after, limit=limit)
        notes = [record for record in found.records if record.turn_id == turn_id and is_note(record.format)]
        groups = await self._conversations.decode(head.key, notes)
        return next((summary for group in groups if (summary := read_note(group, self._name))), None)


@asynccontextmanager
async def _alone(turn_id: str) -> AsyncIterator[None]:
    """Let one task of a loop at a time make this summary."""
    lock = _making.setdefault((id(asyncio.get_running_loop()), turn_id), asyncio.Lock())
    async with lock:
        yield
