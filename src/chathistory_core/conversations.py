"""Conversations as messages: a backend's records, read and written through a codec."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple, overload

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.codec import Codec
from chathistory_core.errors import EpochChangedError, RevisionConflictError, TurnConflictError
from chathistory_core.formats import note
from chathistory_core.messages import ChatMessage
from chathistory_core.records import NO_REVISION, Conversation, Record, StoredRecord, Written

logger = logging.getLogger("chathistory")

_NO_CONVERSATIONS_REVISION = "none"
"""An expectation that fails for every conversation, new ones too."""


class History(Sequence[ChatMessage]):
    """What is stored of a conversation, oldest first, and the state of the conversation that it was read at."""

    def __init__(self, messages: Sequence[ChatMessage], revision: str, epoch: str, *, limit: int | None = None) -> None:
        self._messages = tuple(messages)
        self.revision = revision
        """`NO_REVISION` where there is no conversation."""
        self.epoch = epoch
        self.limit = limit
        """The limit it was read with: there may be more before it."""

    @overload
    def __getitem__(self, index: int) -> ChatMessage: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ChatMessage, ...]: ...

    def __getitem__(self, index: int | slice) -> ChatMessage | tuple[ChatMessage, ...]:
        return self._messages[index]

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<History, {len(self)} messages>"


class Loaded(NamedTuple):
    """A conversation's head and records, and what the codec made of each record."""

    conversation: Conversation
    groups: Sequence[Sequence[ChatMessage]]

    def messages(self, places: range | None = None) -> tuple[ChatMessage, ...]:
        """The messages of the records at these places in the list, of all by default."""
        groups = self.groups if places is None else self.groups[places.start : places.stop]
        return tuple(message for group in groups for message in group)

    def turn(self, turn_id: str) -> range | None:
        """Where in the list the turn's records stand; None where none is among them."""
        records = self.conversation.records
        stop = len(records)
        while stop and records[stop - 1].turn_id != turn_id:
            stop -= 1
        start = stop
        while start and records[start - 1].turn_id == turn_id:
            start -= 1
        return range(start, stop) if stop else None


class Replay(NamedTuple):
    """A turn that was stored before: its answer, None where its records were taken away since."""

    answer: tuple[ChatMessage, ...] | None


class Conversations:
    """Reads and writes conversations by key. Source marks are neither stored nor believed."""

    def __init__(self, backend: ChatHistoryBackend, codec: Codec) -> None:
        self.backend = backend
        self._codec = codec
        self.warned = False
        """Whether it was said that a run without a session keeps nothing; said once, however many scopes share this."""

    async def load(self, key: str, *, limit: int | None = None, turn_id: str | None = None) -> Loaded:
        """The conversation, or its newest `limit` records; `turn_id` is what it is loaded for, where that is known."""
        conversation = await self.backend.get(key, limit=limit)
        groups = await self._decode(key, conversation.records)
        records, turn = len(conversation.records), "" if turn_id is None else f", turn {turn_id!r}"
        logger.info("load %r: %d of %d records%s", key, records, conversation.record_count, turn)
        return Loaded(conversation, groups)

    async def append(
        self, key: str, messages: Sequence[ChatMessage], *, turn_id: str, loaded: Conversation | None
    ) -> Written:
        """Put the messages behind those that are there, as one turn, where `loaded` is what the turn was an answer to.

        What was new then may have been started by others since, and what was there may have been replaced.

        Raises:
            EpochChangedError: it was cleared or has expired, and the turn shall not bring it back.
        """
        records = await self._encode(key, messages)
        epoch = (loaded.epoch or None) if loaded is not None else None
        while True:
            try:
                written = await self.backend.append(key, records, turn_id=turn_id, expected_epoch=epoch)
            except EpochChangedError:
                head = await self.backend.get(key, limit=0)
                if loaded is None or head.created_at != loaded.created_at or head.epoch == epoch:
                    raise EpochChangedError(
                        key, f"it was cleared or has expired while turn {turn_id!r} ran, which was therefore not stored"
                    ) from None
                epoch = head.epoch
            else:
                self._log_write("append", key, messages, turn_id, written)
                return written

    async def replace(
        self, key: str, messages: Sequence[ChatMessage], *, turn_id: str, expected_revision: str | None
    ) -> Written:
        """Put the messages in the place of those that are there."""
        records = await self._encode(key, messages)
        written = await self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)
        self._log_write("replace", key, messages, turn_id, written)
        return written

    async def replay(self, loaded: Loaded, request: Sequence[ChatMessage], *, turn_id: str) -> Replay | None:
        """What is stored of the turn that began with this request; None where the turn is new.

        Records do not say where a request ends: one that is the beginning of the stored request is taken for it.

        Raises:
            TurnConflictError: what is stored under the id is the turn of another request.
        """
        key = loaded.conversation.key
        if loaded.conversation.revision == NO_REVISION:
            return None
        asked = await self._encode(key, request)
        place = loaded.turn(turn_id)
        if place is None:
            if await self._probe(key, asked, turn_id) is None:
                return None
            loaded = await self.load(key, turn_id=turn_id)
            place = loaded.turn(turn_id)
            if place is None:
                return Replay(None)
        end_of_request = place.start + len(asked)
        if end_of_request > place.stop or not await self._same(loaded, range(place.start, end_of_request), asked):
            head, first = loaded.conversation, loaded.conversation.records[place.start]
            known = Written(head.revision, head.epoch, first.position, replayed=True)
            raise TurnConflictError(key, turn_id, await self._probe(key, asked, turn_id) or known)
        return Replay(loaded.messages(range(end_of_request, place.stop)))

    async def _probe(self, key: str, asked: Sequence[Record], turn_id: str) -> Written | None:
        """What the turn got when it was written, None where it was not: asked by a write that cannot succeed."""
        try:
            return await self.backend.append(
                key,
                asked or [Record(b"", note.name)],
                turn_id=turn_id,
                expected_revision=_NO_CONVERSATIONS_REVISION,
            )
        except TurnConflictError as error:
            return error.written
        except RevisionConflictError:
            return None

    async def _same(self, loaded: Loaded, places: range, asked: Sequence[Record]) -> bool:
        """Whether the records at these places are those asked for: by their bytes, else by what they say."""
        stored = loaded.conversation.records[places.start : places.stop]
        if all(
            (one.payload, one.format) == (other.payload, other.format) for one, other in zip(stored, asked, strict=True)
        ):
            return True
        now = datetime.now(UTC)
        placed = [
            StoredRecord(payload, format_name, place.position, place.turn_id, now)
            for place, (payload, format_name, _) in zip(stored, asked, strict=True)
        ]
        said = await self._decode(loaded.conversation.key, placed)
        return [list(group) for group in said] == [list(group) for group in loaded.groups[places.start : places.stop]]

    async def _encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return await self._codec.encode(key, [message.without_source() for message in messages])

    async def _decode(self, key: str, records: Sequence[StoredRecord]) -> list[list[ChatMessage]]:
        return [[message.without_source() for message in group] for group in await self._codec.decode(key, records)]

    def _log_write(
        self, operation: str, key: str, messages: Sequence[ChatMessage], turn_id: str, written: Written
    ) -> None:
        again = ", stored before" if written.replayed else ""
        logger.info("%s %r: %d messages, turn %r%s", operation, key, len(messages), turn_id, again)
