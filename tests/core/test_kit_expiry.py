"""Each backend here expires wrongly; the kit must fail on it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from chathistory_core import ChatHistoryError, Conversation, ConversationSummary, Order, Record, Written, new_turn_id
from chathistory_core.testing import ExpiringStore, ExpiryTests
from chathistory_memory import MemoryBackend, MemoryStore

TTL = timedelta(days=1)


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def wait(self, time: timedelta) -> None:
        self.now += time


class ExpiryBackend(MemoryBackend):
    def __init__(self, store: MemoryStore, clock: Clock, *, ttl: timedelta | None = TTL) -> None:
        super().__init__(store, ttl=ttl, clock=clock)
        self.clock = clock


class NeverExpires(ExpiryBackend):
    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        super().__init__(store, clock, ttl=None)


class ExpiresTwiceAsLate(ExpiryBackend):
    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        super().__init__(store, clock, ttl=TTL * 2)


class ExpiresEarly(ExpiryBackend):
    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        super().__init__(store, clock, ttl=TTL / 4)


class ReadsRenew(ExpiryBackend):
    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, limit=limit, before=before, after=after)
        if found.records:
            await self.append(key, [found.records[-1].record], turn_id=new_turn_id())
        return found


class WritesRenewNothing(ExpiryBackend):
    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self.first: dict[str, datetime] = {}

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        if self.clock.now >= self.first.setdefault(key, self.clock.now) + TTL:
            await self.clear(key)
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        if self.clock.now >= self.first.get(key, self.clock.now) + TTL:
            return Conversation(key)
        return await super().get(key, limit=limit, before=before, after=after)


class ListsWhatExpired(ExpiryBackend):
    def __init__(self, store: MemoryStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self.listed: dict[str, ConversationSummary] = {}

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written = await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )
        self.listed |= {each.key: each for each in await MemoryBackend.summaries(self)}
        return written

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        return sorted(self.listed.values())[:limit]


class CutsPagesBeforeItDropsWhatExpired(ListsWhatExpired):
    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        found = await super().summaries(prefix=prefix, after=after, limit=limit, order=order)
        return [each for each in found if each.updated_at + TTL > self.clock.now]


class BringsBackWhatExpired(ExpiryBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await super().append(key, records, turn_id=turn_id)


MUTANTS: list[tuple[type[ExpiryBackend], str]] = [
    (NeverExpires, "test_an_expired_conversation_is_invisible_at_once"),
    (NeverExpires, "test_what_expired_stays_gone_after_closing"),
    (NeverExpires, "test_what_begins_anew_beside_many_that_expired_is_listed_once"),
    (ExpiresTwiceAsLate, "test_an_expired_conversation_is_invisible_at_once"),
    (ExpiresTwiceAsLate, "test_after_expiry_a_conversation_begins_anew"),
    (ExpiresEarly, "test_a_conversation_stays_until_its_time_is_over"),
    (ReadsRenew, "test_reads_and_refused_writes_renew_nothing"),
    (WritesRenewNothing, "test_appends_and_replaces_renew_the_time"),
    (ListsWhatExpired, "test_an_expired_conversation_is_invisible_at_once"),
    (CutsPagesBeforeItDropsWhatExpired, "test_expired_conversations_take_no_place_in_a_page"),
    (BringsBackWhatExpired, "test_expired_is_not_brought_back"),
]


def _run(backend: type[ExpiryBackend], test: str) -> None:
    clock = Clock()
    getattr(ExpiryTests(), test)(ExpiringStore(partial(backend, MemoryStore(), clock), TTL, clock.wait))


@pytest.mark.parametrize(("broken", "test"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_the_kit_catches_a_backend_that(broken: type[ExpiryBackend], test: str) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception, ChatHistoryError)):
        _run(broken, test)


@pytest.mark.parametrize("test", [name for name in vars(ExpiryTests) if name.startswith("test_")])
def test_the_correct_backend_passes(test: str) -> None:
    assert test in {caught for _, caught in MUTANTS}
    _run(ExpiryBackend, test)
