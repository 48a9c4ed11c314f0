"""Copies of conversations, made before they are rewritten.

A copy is a conversation of its own. It is written under turn ids that tell what it is a copy of (a hash of key and
epoch) and which records each write brought, so a copy that was broken off is gone on with, one that fell behind catches
up, and two processes that make one at once make one.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from itertools import count

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.errors import RevisionConflictError, TurnConflictError
from chathistory_core.formats.note import Note, carrier
from chathistory_core.records import Record

_SLICE = 64
"""How many records are encoded between two chances for other tasks."""


class Archive:
    """Where the copies of one conversation are: at `<key>.archive.1`, `.2` and so on, or at one key that is named."""

    def __init__(self, conversations: Conversations, key: str, full: Callable[[str], str], *, name: str | None) -> None:
        """`full` gives the store's key for one inside the scope; `InvalidKeyError` where the copy's is none."""
        if name == key:
            raise ValueError(f"the copy of conversation {key!r} is a conversation of its own: it needs another key")
        self._conversations = conversations
        self._key = key
        self._full = full
        self._name = name
        full(next(self._names()))

    async def hold(self, loaded: Loaded) -> str:
        """The key, inside the scope, of the copy of what is loaded, which is a whole conversation.

        Raises:
            ValueError: the key that is named is another conversation's.
        """
        for name in self._names():
            if await self._copy(loaded, self._full(name)):
                return name
        raise ValueError(
            f"conversation {self._name!r} exists already and is no copy of {self._key!r} as it is now: "
            "give another name for it"
        )

    def _names(self) -> Iterator[str]:
        if self._name is not None:
            return iter((self._name,))
        return (f"{self._key}.archive.{number}" for number in count(1))

    async def _copy(self, loaded: Loaded, target: str) -> bool:
        """Whether the target is the copy now; False where another conversation is there."""
        backend, conversation = self._conversations.backend, loaded.conversation
        source = _hash(conversation.key, conversation.epoch)
        while True:
            head = await backend.get(target, limit=1)
            done = _copied(source, head.records[-1].turn_id) if head.records else 0
            if done is None or (head.revision and not head.records):
                return False
            if done >= len(loaded.groups):
                return True
            batch, stop = await self._encoded(loaded, target, done)
            turn_id = f"{source}.{done}-{stop}"
            try:
                await backend.append(target, batch, turn_id=turn_id, expected_revision=head.revision)
            except (RevisionConflictError, TurnConflictError):
                continue  # somebody else writes there: look again

    async def _encoded(self, loaded: Loaded, target: str, start: int) -> tuple[list[Record], int]:
        """The records from this one on, as many as go into one write, encoded for the target; and where they end."""
        limits = self._conversations.backend.limits
        batch: list[Record] = []
        size = 0
        for place in range(start, len(loaded.groups)):
            if place % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)
            records = await self._record(loaded, target, place)
            size += sum(len(record.payload) for record in records)
            if batch and (size > limits.max_bytes or len(batch) + len(records) > limits.max_records):
                return batch, place
            batch += records
        return batch, len(loaded.groups)

    async def _record(self, loaded: Loaded, target: str, place: int) -> Sequence[Record]:
        group = loaded.groups[place]
        if isinstance(group, Note):
            return await self._conversations.encode(target, [carrier(group.payload)])
        if group:
            return await self._conversations.encode(target, group)
        return [loaded.conversation.records[place].record]


def _copied(source: str, turn_id: str) -> int | None:
    """How many records of this source were copied when the turn was written; None where it is no turn of a copy."""
    stretch = turn_id.removeprefix(f"{source}.")
    stop = stretch.rpartition("-")[2]
    return int(stop) if stretch != turn_id and stop.isdecimal() else None


def _hash(*parts: str) -> str:
    return f"copy-{blake2b(json.dumps(parts).encode(), digest_size=16).hexdigest()}"
