"""Backends that go wrong only where two processes share a store; in a module that both can import."""

from collections.abc import Sequence
from typing import ClassVar

from chathistory_core import Conversation, Record, RevisionConflictError, Written
from chathistory_sqlite import SQLiteBackend


class ReadsThenReplaces(SQLiteBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        held = [record.record for record in (await self.get(key)).records]
        return await super().replace(key, [*held, *records], turn_id=turn_id, expected_revision=expected_revision)


class ChecksThenWrites(SQLiteBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        if expected_revision not in (None, (await self.get(key, limit=0)).revision):
            raise RevisionConflictError(key)
        return await super().append(key, records, turn_id=turn_id, expected_epoch=expected_epoch)


class ReadsACopy(SQLiteBackend):
    """One that each read brings up to date for the next of its process."""

    copies: ClassVar[dict[tuple[object, ...], Conversation]] = {}

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        call = (key, limit, before, after)
        found = await super().get(key, limit=limit, before=before, after=after)
        copy, self.copies[call] = self.copies.get(call, found), found
        return copy
