"""Turns that were tried before: what is stored of them, for a request that is sent again."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.errors import RevisionConflictError, TurnConflictError
from chathistory_core.formats import note
from chathistory_core.messages import ChatMessage
from chathistory_core.records import NO_REVISION, Record, StoredRecord, Written
from chathistory_core.saving.kept import kept_id

_NO_CONVERSATIONS_REVISION = "none"
"""An expectation that fails for every conversation, new ones too."""


class Replay(NamedTuple):
    """A turn that was stored before: its answer, None where its records were taken away since."""

    answer: tuple[ChatMessage, ...] | None


async def find_replay(
    conversations: Conversations, loaded: Loaded, request: Sequence[ChatMessage], *, turn_id: str
) -> Replay | None:
    """What is stored of the turn that began with this request; None where the turn is new, or no attempt succeeded.

    It looks in what was loaded, else asks the store. Records do not say where a request ends: one that is the beginning
    of the stored request is taken for it. Where a failed attempt kept the request, the turn itself is the answer alone.

    Raises:
        TurnConflictError: what is stored under the id, or kept of an attempt at it, began with another request.
    """
    key = loaded.conversation.key
    if loaded.conversation.revision == NO_REVISION:
        return None
    asked = await conversations.encode(key, request)
    found = _Found.of(loaded, turn_id)
    known = None if found.turn is not None else await find_written(conversations, key, asked, turn_id)
    if known is not None or (found.is_cut and not await found.begins_with(asked, conversations)):
        found = _Found.of(await conversations.load(key, turn_id=turn_id), turn_id)
    if known is not None and found.turn is None:
        return Replay(None)
    if found.start is None:
        return None
    if await found.begins_with(asked, conversations):
        return found.replay(len(asked))
    if found.kept is None and await find_written(conversations, key, asked, kept_id(turn_id, 1)) is not None:
        return found.replay(0)  # the request was kept once, and was replaced since
    written = known or await find_written(conversations, key, asked, turn_id) or found.written(found.start)
    raise TurnConflictError(key, turn_id, written)


async def find_written(conversations: Conversations, key: str, asked: Sequence[Record], turn_id: str) -> Written | None:
    """What the turn got when it was written, None where it was not: asked by a write that cannot succeed."""
    try:
        return await conversations.backend.append(
            key, asked or [Record(b"", note.name)], turn_id=turn_id, expected_revision=_NO_CONVERSATIONS_REVISION
        )
    except TurnConflictError as error:
        return error.written
    except RevisionConflictError:
        return None


class _Found(NamedTuple):
    """Where the records of a turn, and of its first failed attempt, stand among those that were loaded."""

    loaded: Loaded
    turn: range | None
    kept: range | None

    @classmethod
    def of(cls, loaded: Loaded, turn_id: str) -> "_Found":
        return cls(loaded, loaded.turn(turn_id), loaded.turn(kept_id(turn_id, 1)))

    @property
    def start(self) -> range | None:
        """The records that begin with the request."""
        return self.kept or self.turn

    @property
    def is_cut(self) -> bool:
        """Whether there is more of the conversation than was loaded, and the request may be in it."""
        return len(self.loaded.groups) < self.loaded.conversation.record_count and self.start is not None

    async def begins_with(self, asked: Sequence[Record], conversations: Conversations) -> bool:
        """Whether the request is the one that was asked: by its bytes, else by what it says."""
        if self.start is None or len(asked) > len(self.start):
            return False
        stored = self.loaded.conversation.records[self.start.start :][: len(asked)]
        if all(
            (one.payload, one.format) == (other.payload, other.format) for one, other in zip(stored, asked, strict=True)
        ):
            return True
        now = datetime.now(UTC)
        placed = [
            StoredRecord(payload, format_name, place.position, place.turn_id, now)
            for place, (payload, format_name, _) in zip(stored, asked, strict=True)
        ]
        said = await conversations.decode(self.loaded.conversation.key, placed)
        return [list(group) for group in said] == [
            list(group) for group in self.loaded.groups[self.start.start :][: len(asked)]
        ]

    def replay(self, records_of_request: int) -> Replay | None:
        """The answer; None where no attempt succeeded."""
        if self.turn is None:
            return None
        answer = self.turn if self.kept else self.turn[records_of_request:]
        return Replay(self.loaded.messages(answer))

    def written(self, place: range) -> Written:
        """What the write of these records got, as far as it is known."""
        head = self.loaded.conversation
        return Written(head.revision, head.epoch, head.records[place.start].position, replayed=True)
