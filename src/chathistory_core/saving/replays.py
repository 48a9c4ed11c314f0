"""Turns that were tried before: what is stored of them, for a request that is sent again."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.conversations.pages import check_bytes
from chathistory_core.errors import EpochChangedError, RevisionConflictError, TurnConflictError
from chathistory_core.formats import note
from chathistory_core.messages import ChatMessage
from chathistory_core.records import NO_REVISION, Conversation, Record, StoredRecord, Written
from chathistory_core.saving.kept import kept_id

_PAGE = 64
"""How many records of a turn are read at once, where it stands before what was loaded."""

_NO_CONVERSATIONS_REVISION = "none"
"""An expectation that fails for every conversation, new ones too."""


class Replay(NamedTuple):
    """A turn that was stored before: its answer, None where its records were taken away since."""

    answer: tuple[ChatMessage, ...] | None


async def find_replay(
    conversations: Conversations,
    loaded: Loaded,
    request: Sequence[ChatMessage],
    *,
    turn_id: str,
    max_bytes: int | None = None,
) -> Replay | None:
    """What is stored of the turn that began with this request; None where the turn is new, or no attempt succeeded.

    It looks in what was loaded, else asks the store, and reads the turn alone, at most `max_bytes` of it.
    Records do not say where a request ends: one that is the beginning of the stored request is taken for it. Where a
    failed attempt kept the request, the turn itself is the answer alone.

    Raises:
        TooLargeError: the turn is larger than that.
        TurnConflictError: what is stored under the id, or kept of an attempt at it, began with another request.
    """
    key = loaded.conversation.key
    if loaded.conversation.revision == NO_REVISION:
        return None
    asked = await conversations.encode(key, request)
    found = _Found.of(loaded, turn_id)
    is_begun = found.start is not None and await found.begins_with(asked, conversations)
    if found.turn is None or (found.is_cut and not is_begun):
        written = await find_written(conversations, key, asked, turn_id)
        if written is not None:
            turn = await _turn(conversations, key, turn_id, written, max_bytes=max_bytes)
            if turn is None:
                return Replay(None)
            found = _Found(turn, turn.turn(turn_id), None)
            is_begun = await found.begins_with(asked, conversations)
    if found.start is None:
        return None
    if is_begun:
        return found.replay(len(asked))
    if found.kept is None or found.is_cut:
        kept = await find_written(conversations, key, asked, kept_id(turn_id, 1))
        if kept is not None and await is_kept_request(conversations, key, asked, turn_id, kept):
            return found.replay(0)
    written = await find_written(conversations, key, asked, turn_id) or found.written(found.start)
    raise TurnConflictError(key, turn_id, written)


async def is_kept_request(
    conversations: Conversations, key: str, asked: Sequence[Record], turn_id: str, kept: Written
) -> bool:
    """Whether what was kept of the turn's first attempt begins with this request, or was replaced since."""
    first = kept_id(turn_id, 1)
    page = await conversations.backend.get(key, after=kept.first_position - 1, limit=max(1, len(asked)))
    records = tuple(record for record in page.records if record.turn_id == first)
    if not records:
        return True
    loaded = Loaded(page._replace(records=records), await conversations.decode(key, records))
    return await _Found(loaded, None, loaded.turn(first)).begins_with(asked, conversations)


async def _turn(
    conversations: Conversations, key: str, turn_id: str, written: Written, *, max_bytes: int | None
) -> Loaded | None:
    """The turn that was written there; None where it was replaced since."""
    head, records, after = Conversation(key), list[StoredRecord](), written.first_position - 1
    while True:
        page = await conversations.backend.get(key, after=after, limit=_PAGE)
        if records and page.epoch != head.epoch:
            raise EpochChangedError(key)
        new = [record for record in page.records if record.turn_id == turn_id]
        head, records = page, records + new
        check_bytes(key, sum(len(record.payload) for record in records), max_bytes)
        if len(new) < _PAGE:
            break
        after = new[-1].position
    found = head._replace(records=tuple(records))
    return Loaded(found, await conversations.decode(key, records)) if records else None


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
        return Replay(tuple(chain.from_iterable(self.loaded.groups[answer.start : answer.stop])))

    def written(self, place: range) -> Written:
        """What the write of these records got, as far as it is known."""
        head = self.loaded.conversation
        return Written(head.revision, head.epoch, head.records[place.start].position, replayed=True)
