"""Which recorded histories have an order, and broken backends that calls at once must find."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from chathistory_core import (
    Conversation,
    ConversationSummary,
    Order,
    Record,
    RevisionConflictError,
    StoredRecord,
    Written,
    new_turn_id,
)
from chathistory_core.testing.calls import Answer, Append, Call, Clear, Get, Look
from chathistory_core.testing.histories import Event, check_history
from chathistory_memory import MemoryBackend, MemoryStore

TIME = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C = (Record(text.encode(), "text") for text in "abc")


def event(begin: int, end: int, call: Call, answer: Answer, *, repeated: bool = False) -> Event:
    return Event("caller", begin, end, call, answer, repeated)


def read(revision: str, *records: tuple[Record, int, str], key: str = "k") -> Conversation:
    stored = tuple(StoredRecord(each.payload, each.format, place, turn, TIME) for each, place, turn in records)
    return Conversation(key, revision, "e", len(stored), TIME, TIME, stored)


APPEND_A = (Append("k", (A,), "a"), Written("ra", "e", 1))
APPEND_B = (Append("k", (B,), "b"), Written("rb", "e", 2))
READ_NOTHING = (Get("k"), Conversation("k"))
READ_A = (Get("k"), read("ra", (A, 1, "a")))
READ_AB = (Get("k"), read("rb", (A, 1, "a"), (B, 2, "b")))
IF_NEW_A = (Append("k", (A,), "a", ""), Written("ra", "e", 1))
IF_NEW_B = (Append("k", (B,), "b", ""), Written("rb", "f", 1))

LEGAL: dict[str, list[Event]] = {
    "one after another": [event(0, 1, *APPEND_A), event(2, 3, *APPEND_B), event(4, 5, *READ_AB)],
    "the one that began later came first": [event(0, 9, *APPEND_B), event(1, 8, *APPEND_A), event(10, 11, *READ_AB)],
    "a read during a write sees it": [event(0, 9, *APPEND_A), event(1, 2, *READ_A)],
    "a read during a write does not see it": [event(0, 9, *APPEND_A), event(1, 2, *READ_NOTHING)],
    "two reads during a write, before and after": [
        event(0, 9, *APPEND_A),
        event(1, 2, *READ_NOTHING),
        event(3, 4, *READ_A),
    ],
    "one of two is the first": [
        event(0, 9, *IF_NEW_A),
        event(0, 9, Append("k", (B,), "b", ""), RevisionConflictError("k")),
    ],
    "both are the first, with a clear between": [
        event(0, 9, *IF_NEW_A),
        event(0, 9, *IF_NEW_B),
        event(0, 9, Clear("k"), True),
    ],
    "a write whose first answer was lost": [
        event(0, 9, APPEND_A[0], APPEND_A[1]._replace(replayed=True), repeated=True),
        event(1, 2, *READ_A),
    ],
    "two callers with one turn": [
        event(0, 9, *APPEND_A),
        event(0, 9, APPEND_A[0], APPEND_A[1]._replace(replayed=True)),
    ],
    "conversations have nothing to do with each other": [
        event(0, 1, *APPEND_A),
        event(2, 3, Get("other"), Conversation("other")),
    ],
}

ILLEGAL: dict[str, list[Event]] = {
    "a lost update": [event(0, 9, *IF_NEW_A), event(0, 9, *IF_NEW_B)],
    "a stale read": [event(0, 1, *APPEND_A), event(2, 3, *READ_NOTHING)],
    "a stale listing": [event(0, 1, *APPEND_A), event(2, 3, Look("k"), None)],
    "a read that another took back": [event(0, 9, *APPEND_A), event(1, 2, *READ_A), event(3, 4, *READ_NOTHING)],
    "a read of what was not begun": [event(0, 1, *READ_A), event(2, 3, *APPEND_A)],
    "a write in the place of an acknowledged one": [
        event(0, 1, *APPEND_A),
        event(2, 3, Append("k", (B,), "b"), Written("rb", "e", 1)),
    ],
    "appends against their order in time": [event(0, 1, *APPEND_B), event(2, 3, *APPEND_A), event(4, 5, *READ_AB)],
    "a turn written twice": [event(0, 9, *APPEND_A), event(0, 9, APPEND_A[0], Written("rb", "e", 2))],
    "a replay of what nobody wrote": [event(0, 1, APPEND_A[0], APPEND_A[1]._replace(replayed=True))],
    "a repeated write that is not there": [
        event(0, 3, APPEND_A[0], APPEND_A[1]._replace(replayed=True), repeated=True),
        event(4, 5, *READ_NOTHING),
    ],
    "a half replaced conversation": [
        event(0, 1, *APPEND_A),
        event(2, 9, *APPEND_B),
        event(3, 4, Get("k"), read("ra")),
    ],
    "a conflict that nobody made": [
        event(0, 1, *APPEND_A),
        event(2, 3, Append("k", (B,), "b", "ra"), RevisionConflictError("k")),
    ],
}


@pytest.mark.parametrize("history", LEGAL.values(), ids=LEGAL)
def test_an_order_is_found(history: list[Event]) -> None:
    check_history(history)


@pytest.mark.parametrize("history", ILLEGAL.values(), ids=ILLEGAL)
def test_no_order_is_found(history: list[Event]) -> None:
    with pytest.raises(AssertionError, match="no order of these calls"):
        check_history(history)


def test_a_failure_tells_the_calls_and_why_none_may_follow() -> None:
    history = [event(0, 1_000, *APPEND_A), event(2_000, 3_000, *READ_NOTHING)]
    with pytest.raises(AssertionError) as caught:
        check_history(history)
    lines = str(caught.value).splitlines()
    assert "1 caller 0-1: append a, turn a → written at 1, revision ra, epoch e" in lines[1]
    assert "2 caller 2-3: get → no conversation" in lines[2]
    assert "the longest order that explains its own: 1;" in lines[3]
    assert "the revision is ra" in lines[4]


def test_many_overlapping_calls_are_searched_in_no_time() -> None:
    # a search that tried every order would not end
    reads = [event(0, 99, *READ_NOTHING) for _ in range(20)] + [event(0, 99, *READ_A) for _ in range(20)]
    conflicts = [event(0, 99, Append("k", (C,), f"c{n}", "r"), RevisionConflictError("k")) for n in range(20)]
    check_history([*reads, *conflicts, event(0, 99, *APPEND_A), event(100, 101, *READ_A)])
    with pytest.raises(AssertionError):
        check_history([*reads, *conflicts, event(0, 99, *APPEND_A), event(100, 101, *READ_AB)])


class ReadsThenReplaces(MemoryBackend):
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
        await asyncio.sleep(0)
        return await super().replace(key, [*held, *records], turn_id=turn_id, expected_revision=expected_revision)


class ChecksThenWrites(MemoryBackend):
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
        await asyncio.sleep(0)
        return await super().append(key, records, turn_id=turn_id, expected_epoch=expected_epoch)


class ReplacesInTwoSteps(MemoryBackend):
    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        written = await super().replace(key, [], turn_id=new_turn_id(), expected_revision=expected_revision)
        await asyncio.sleep(0)
        return await super().replace(key, records, turn_id=turn_id, expected_revision=written.revision)


class AnswersBeforeItWrites(MemoryBackend):
    """Clears in the background."""

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        there = bool((await self.get(key, limit=0)).revision)
        asyncio.get_running_loop().call_soon(self._clear, key)
        return there

    def _clear(self, key: str) -> None:
        self._store.drop(key)


class ReadsACopy(MemoryBackend):
    """One that each read brings up to date for the next."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.copies: dict[tuple[object, ...], Conversation] = {}

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        call = (key, limit, before, after)
        found = await super().get(key, limit=limit, before=before, after=after)
        copy, self.copies[call] = self.copies.get(call, found), found
        return copy


class ListsACopy(MemoryBackend):
    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.copies: dict[str, Sequence[ConversationSummary]] = {}

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        found = await super().summaries(prefix=prefix, after=after, limit=limit, order=order)
        copy, self.copies[prefix] = self.copies.get(prefix, found), found
        return copy


class Pauses(MemoryBackend):
    """Correct, with a moment before and after each append in which it may be cancelled."""

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        await asyncio.sleep(0)
        written = await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )
        await asyncio.sleep(0)
        return written


class ForgetsTurns(Pauses):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await super().append(
            key, records, turn_id=new_turn_id(), expected_revision=expected_revision, expected_epoch=expected_epoch
        )


class NotesTurnsBeforeItWrites(Pauses):
    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.noted: set[tuple[str, str]] = vars(store).setdefault("noted", set())

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        head = await self.get(key, limit=0)
        if (key, turn_id) in self.noted and head.revision:
            return Written(head.revision, head.epoch, head.record_count, replayed=True)
        self.noted.add((key, turn_id))
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )


class AppendsOneByOne(MemoryBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written: list[Written] = []
        for index, record in enumerate(records):
            written.append(await super().append(key, [record], turn_id=f"{turn_id}.{index}"))
            await asyncio.sleep(0)
        return written[-1]._replace(first_position=written[0].first_position)


CONCURRENT = "test_the_answers_of_concurrent_calls_have_an_order"
CANCELLED = "test_the_answers_of_calls_that_are_cancelled_and_repeated_have_an_order"

MUTANTS: list[tuple[type[MemoryBackend], str]] = [
    (ReadsThenReplaces, CONCURRENT),
    (ChecksThenWrites, CONCURRENT),
    (ReplacesInTwoSteps, CONCURRENT),
    (AnswersBeforeItWrites, CONCURRENT),
    (ReadsACopy, CONCURRENT),
    (ListsACopy, CONCURRENT),
    (AppendsOneByOne, CONCURRENT),
    (ForgetsTurns, CANCELLED),
    (NotesTurnsBeforeItWrites, CANCELLED),
    (AppendsOneByOne, CANCELLED),
]


@pytest.mark.parametrize(("broken", "test"), MUTANTS, ids=lambda value: getattr(value, "__name__", ""))
def test_calls_at_once_find_a_backend_that(
    broken: type[MemoryBackend], test: str, kit_catches: Callable[[type[MemoryBackend], str], None]
) -> None:
    kit_catches(broken, test)


@pytest.mark.parametrize("test", [CONCURRENT, CANCELLED])
def test_a_correct_backend_that_gives_way_passes(
    test: str, kit_catches: Callable[[type[MemoryBackend], str], None]
) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        kit_catches(Pauses, test)
