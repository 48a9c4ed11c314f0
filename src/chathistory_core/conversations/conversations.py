"""Conversations as messages: a backend's records, read and written through a codec."""

import logging
from collections.abc import Sequence
from typing import overload

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.codec import Codec
from chathistory_core.conversations.loaded import Loaded
from chathistory_core.conversations.marking import Marking
from chathistory_core.conversations.remembering import Reading, Remembered
from chathistory_core.errors import EpochChangedError
from chathistory_core.formats.note import Note
from chathistory_core.messages import ChatMessage
from chathistory_core.messages.prefix import begins_with
from chathistory_core.pauses import Pauses
from chathistory_core.reading import read_on
from chathistory_core.records import NO_REVISION, Conversation, Record, StoredRecord, Written

logger = logging.getLogger("chathistory")


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


class Conversations:
    """Reads and writes conversations by key. Source marks are neither stored nor believed."""

    def __init__(self, backend: ChatHistoryBackend, codec: Codec, *, max_remembered_bytes: int) -> None:
        self.backend = backend
        self._codec = codec
        self._remembered = Remembered(max_remembered_bytes)
        self.warned = False
        """Whether it was said that a run without a session keeps nothing; said once, however many scopes share this."""

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        """What the codec makes of the messages, unmarked."""
        return await self._codec.encode(key, [message.without_source() for message in messages])

    def reading(self, key: str) -> Reading:
        """Begun before the backend is asked for records, and given to `decode` for them to be remembered."""
        return self._remembered.reading(key)

    async def decode(
        self, key: str, records: Sequence[StoredRecord], *, reading: Reading | None = None
    ) -> list[Sequence[ChatMessage]]:
        """What the codec makes of each record, unmarked; a note's group is the `Note` that it is."""
        known = self._remembered.known(key, records)
        new = [record for record in records if record.position not in known] if known else records
        made: list[Sequence[ChatMessage]] = []
        groups = await self._codec.decode(key, new)
        pauses = Pauses()
        for record, group in zip(new, groups, strict=True):
            if pauses.due:
                await pauses.pause()
            made.append(_unmarked(group))
            if reading is not None and not reading.over:
                self._remembered.keep(key, record, made[-1])
        if not known:
            return made
        known.update(zip((record.position for record in new), made, strict=True))
        return [known[record.position] for record in records]

    async def read(self, key: str, *, limit: int | None = None) -> Loaded:
        """The conversation, or its newest `limit` records; of one that was read before, only what is new is asked for.

        The store says whether what was read before is still there; if not, all of it is read.
        """
        reading = self.reading(key)
        known = self._remembered.whole(key) if limit is None else None
        if known is not None:
            newer = await read_on(self.backend, key, known.loaded.conversation)
            if newer is None:
                self.forget(key)
                return await self.read(key)
            groups = await self.decode(key, newer.records, reading=reading)
            loaded = known.loaded.followed_by(newer, groups)
        else:
            conversation = await self.backend.get(key, limit=limit)
            loaded = Loaded(conversation, await self.decode(key, conversation.records, reading=reading))
        if limit is None and not reading.over:
            self._remembered.hold(loaded)
        return loaded

    def marking(self, key: str) -> Marking:
        """What marks the conversation's history, and remembers it where all of the conversation is remembered."""
        known = self._remembered.whole(key)
        return Marking() if known is None else known.marking

    def forget(self, key: str) -> None:
        """Forget what was read of a conversation whose records were taken away."""
        self._remembered.forget(key)

    async def load(self, key: str, *, limit: int | None = None, turn_id: str | None = None) -> Loaded:
        """The conversation, or its newest `limit` records; `turn_id` is what it is loaded for, where that is known."""
        loaded = await self.read(key, limit=limit)
        records, turn = len(loaded.groups), "" if turn_id is None else f", turn {turn_id!r}"
        logger.info("load %r: %d of %d records%s", key, records, loaded.conversation.record_count, turn)
        return loaded

    async def append(
        self,
        key: str,
        messages: Sequence[ChatMessage],
        *,
        turn_id: str,
        loaded: Conversation | None,
        unchanged: bool = False,
    ) -> Written:
        """Put the messages behind those that are there, as one turn, where `loaded` is what the turn was an answer to.

        What was new then may have been started by others since, and what was there may have been replaced.

        Raises:
            EpochChangedError: it was cleared or has expired, and the turn shall not bring it back.
            RevisionConflictError: it is to be `unchanged`, and others wrote since.
        """
        records = await self.encode(key, messages)
        revision = loaded.revision if loaded is not None and unchanged else None
        epoch = (loaded.epoch or None) if loaded is not None and not unchanged else None
        while True:
            try:
                written = await self.backend.append(
                    key, records, turn_id=turn_id, expected_revision=revision, expected_epoch=epoch
                )
            except EpochChangedError:
                head = await self.head(key, loaded, turn_id=turn_id)
                if head.epoch == epoch:
                    raise
                epoch = head.epoch
            else:
                self._log_write("append", key, messages, turn_id, written)
                return written

    async def head(self, key: str, loaded: Conversation | None, *, turn_id: str) -> Conversation:
        """The conversation as it is now, without records, where it is still the one that the turn is an answer to.

        Raises:
            EpochChangedError: that one was cleared or has expired.
        """
        head = await self.backend.get(key, limit=0)
        if loaded is not None and loaded.revision != NO_REVISION and head.created_at != loaded.created_at:
            raise EpochChangedError(
                key, f"it was cleared or has expired while turn {turn_id!r} ran, which was therefore not stored"
            )
        return head

    async def replace(
        self, key: str, messages: Sequence[ChatMessage], *, turn_id: str, expected_revision: str | None
    ) -> Written:
        """Put the messages in the place of those that are there."""
        records = await self.encode(key, messages)
        written = await self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)
        self.forget(key)
        self._log_write("replace", key, messages, turn_id, written)
        return written

    def _log_write(
        self, operation: str, key: str, messages: Sequence[ChatMessage], turn_id: str, written: Written
    ) -> None:
        again = ", stored before" if written.replayed else ""
        logger.info("%s %r: %d messages, turn %r%s", operation, key, len(messages), turn_id, again)


def _unmarked(group: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The group where it is like that and nobody can change it: a codec may use a list of its own for the next one."""
    unmarked = [message.without_source() for message in group]
    return group if isinstance(group, (tuple, Note)) and begins_with(group, unmarked) else tuple(unmarked)
