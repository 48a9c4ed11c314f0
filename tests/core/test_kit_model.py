"""Which answers the kit's model allows, and broken backends that random calls held against it must find."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from chathistory_core import (
    NO_REVISION,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    Order,
    Record,
    RevisionConflictError,
    StoredRecord,
    TurnConflictError,
    Written,
    new_turn_id,
)
from chathistory_core.testing.calls import Answer, Append, Call, Clear, Get, Look, Replace
from chathistory_core.testing.machine import run_machine
from chathistory_core.testing.model import ForbiddenError, State, step
from chathistory_memory import MemoryBackend, MemoryStore

TIME = datetime(2026, 1, 1, tzinfo=UTC)
A, B, C, D, X = (Record(text.encode(), "text") for text in "abcdx")


def stored(record: Record, position: int, turn_id: str, time: datetime = TIME) -> StoredRecord:
    return StoredRecord(record.payload, record.format, position, turn_id, time)


def conversation(*records: StoredRecord, revision: str = "r2", count: int = 3, at: datetime = TIME) -> Conversation:
    return Conversation("k", revision, "e1", count, TIME, at, records)


def after(*steps: tuple[Call, Answer], begin: State | None = None) -> State:
    state = State("k") if begin is None else begin
    for call, answer in steps:
        state = step(state, call, answer)
    return state


NOTHING = State("k")
THREE = after(
    (Append("k", (A, B), "t1"), Written("r1", "e1", 1)),
    (Append("k", (C,), "t2"), Written("r2", "e1", 5)),
)
"""Of the second record's position only the bounds are known: 2 to 4."""
ALL = (stored(A, 1, "t1"), stored(B, 3, "t1"), stored(C, 5, "t2"))
READ = after((Get("k"), conversation(*ALL)), begin=THREE)
CLEARED = after((Clear("k"), True), begin=READ)
REPLACED = after((Replace("k", (X,), "t3"), Written("r3", "e3", 1)), begin=READ)

ALLOWED: list[tuple[State, Call, Answer]] = [
    (NOTHING, Get("k"), Conversation("k")),
    (NOTHING, Look("k"), None),
    (NOTHING, Clear("k"), False),
    (NOTHING, Clear("k", "whatever"), False),
    (NOTHING, Append("k", (A,), "t", NO_REVISION), Written("r", "e", 7)),
    (NOTHING, Append("k", (A,), "t", None, ""), Written("r", "e", 1)),
    (NOTHING, Append("k", (A,), "t", "r1"), RevisionConflictError("k")),
    (NOTHING, Append("k", (A,), "t", None, "e1"), EpochChangedError("k")),
    (NOTHING, Replace("k", (), "t"), Written("r", "e", 1)),
    (THREE, Get("k"), conversation(*ALL)),
    (THREE, Get("k", limit=2), conversation(*ALL[1:])),
    (THREE, Get("k", limit=1, after=0), conversation(ALL[0])),
    (THREE, Get("k", after=1), conversation(*ALL[1:])),
    (THREE, Get("k", after=2), conversation(*ALL[1:])),
    (THREE, Get("k", after=2), conversation(ALL[2])),
    (THREE, Get("k", before=5), conversation(*ALL[:2])),
    (THREE, Get("k", limit=1, before=5), conversation(ALL[1])),
    (READ, Get("k", after=3), conversation(ALL[2])),
    (READ, Get("k", limit=0), conversation()),
    (READ, Look("k"), ConversationSummary("k", "r2", "e1", 3, TIME, TIME)),
    (READ, Append("k", (D,), "t3", "r2", "e1"), Written("r3", "e1", 6)),
    (READ, Append("k", (A, B), "t1", "stale", "stale"), Written("r1", "e1", 1, replayed=True)),
    (READ, Append("k", (A,), "t1"), TurnConflictError("k", "t1", Written("r1", "e1", 1))),
    (READ, Append("k", (A,), "t4", "stale", "stale"), RevisionConflictError("k")),
    (READ, Append("k", (A,), "t4", "stale", "stale"), EpochChangedError("k")),
    (READ, Clear("k", "r2"), True),
    (READ, Clear("k", "r1"), RevisionConflictError("k")),
    (REPLACED, Append("k", (A, B), "t1"), Written("r1", "e1", 1, replayed=True)),
    (CLEARED, Append("k", (A, B), "t1"), Written("r4", "e4", 1)),
]

FORBIDDEN: list[tuple[State, Call, Answer, str]] = [
    (NOTHING, Get("k"), conversation(), "no conversation to read"),
    (NOTHING, Look("k"), ConversationSummary("k", "r", "e", 0, TIME, TIME), "no conversation to list"),
    (NOTHING, Clear("k"), True, "nothing to clear"),
    (NOTHING, Clear("k", "r1"), RevisionConflictError("k"), "nothing to clear"),
    (NOTHING, Append("k", (A,), "t"), Written("", "e", 1), "revision is not new"),
    (NOTHING, Append("k", (A,), "t"), Written("r", "", 1), "epoch is not new"),
    (NOTHING, Append("k", (A,), "t"), Written("r", "e", 0), "from 1"),
    (NOTHING, Append("k", (A,), "t"), Written("r", "e", 2**53), "below 2"),
    (NOTHING, Append("k", (A,), "t"), Written("r", "e", 1, replayed=True), "cannot have been replayed"),
    (NOTHING, Append("k", (A,), "t"), RevisionConflictError("k"), "has to be written"),
    (NOTHING, Append("k", (A,), "t", "r1"), Written("r", "e", 1), "expectation is not met"),
    (NOTHING, Append("k", (A,), "t", "r1"), EpochChangedError("k"), "expectation is not met"),
    (NOTHING, Replace("k", (), "t"), Written("r", "e", 2), "position of the first"),
    (THREE, Get("k"), Conversation("k"), "the revision is r2"),
    (THREE, Get("k"), conversation(*ALL, revision="r1"), "the revision is r2"),
    (THREE, Get("k"), conversation(*ALL, count=2), "it has 3 records"),
    (THREE, Get("k"), conversation(*ALL)._replace(epoch="e2"), "the epoch is e1"),
    (THREE, Get("k"), conversation(*ALL)._replace(key="other"), "another conversation"),
    (THREE, Get("k"), conversation(*ALL[:2]), "not the records"),
    (THREE, Get("k"), conversation(*ALL[::-1]), "not the records"),
    (THREE, Get("k"), conversation(ALL[0], stored(B, 5, "t1"), ALL[2]), "positions do not rise"),
    (THREE, Get("k"), conversation(ALL[0], stored(B, 3, "t2"), ALL[2]), "not the records"),
    (THREE, Get("k", limit=2), conversation(*ALL[:2]), "not the records"),
    (THREE, Get("k", limit=1, after=0), conversation(ALL[2]), "not the records"),
    (THREE, Get("k", after=1), conversation(*ALL), "not the records"),
    (THREE, Get("k", after=1), conversation(ALL[2]), "not the records"),
    (THREE, Get("k", before=5), conversation(*ALL), "not the records"),
    (THREE, Get("k", limit=0), conversation(*ALL), "not the records"),
    (READ, Get("k"), conversation(stored(A, 1, "t1", TIME + timedelta(1)), *ALL[1:]), "not the records"),
    (READ, Get("k", limit=0), conversation(at=TIME + timedelta(1)), "nothing was written"),
    (READ, Get("k", limit=0), conversation()._replace(created_at=TIME - timedelta(1)), "created_at has changed"),
    (READ, Get("k", after=2), conversation(ALL[2]), "not the records"),
    (READ, Look("k"), None, "not listed"),
    (READ, Look("k"), ConversationSummary("k", "r2", "e1", 2, TIME, TIME), "it has 3 records"),
    (READ, Append("k", (D,), "t3"), Written("r1", "e1", 6), "revision is not new"),
    (READ, Append("k", (D,), "t3"), Written("r3", "e3", 6), "changed the epoch"),
    (READ, Append("k", (D,), "t3"), Written("r3", "e1", 5), "position of the first"),
    (READ, Append("k", (D,), "t3", None, "stale"), Written("r3", "e1", 6), "expectation is not met"),
    (READ, Append("k", (A, B), "t1"), Written("r3", "e1", 6), "another result"),
    (READ, Append("k", (A, B), "t1"), Written("r1", "e1", 1), "cannot have been written now"),
    (READ, Append("k", (A, B), "t1", "stale"), RevisionConflictError("k"), "its result has to be returned"),
    (READ, Append("k", (A,), "t1"), Written("r1", "e1", 1, replayed=True), "that is a conflict"),
    (READ, Append("k", (A,), "t1", "stale"), RevisionConflictError("k"), "that is a conflict"),
    (READ, Append("k", (A,), "t1"), TurnConflictError("k", "t1", Written("r2", "e1", 5)), "what the stored turn got"),
    (READ, Replace("k", (A, B), "t1"), Written("r1", "e1", 1, replayed=True), "that is a conflict"),
    (READ, Replace("k", (X,), "t3"), Written("r3", "e1", 1), "epoch is not new"),
    (READ, Clear("k"), False, "something to clear"),
    (READ, Clear("k", "r1"), True, "the revision is r2"),
    (REPLACED, Append("k", (A, B), "t1"), Written("r4", "e3", 2), "another result"),
    (CLEARED, Get("k"), conversation(*ALL), "no conversation to read"),
    (CLEARED, Append("k", (A, B), "t1"), Written("r1", "e1", 1, replayed=True), "cannot have been replayed"),
    (CLEARED, Append("k", (A,), "t4"), Written("r4", "e1", 1), "epoch is not new"),
]


@pytest.mark.parametrize(("state", "call", "answer"), ALLOWED)
def test_the_model_allows(state: State, call: Call, answer: Answer) -> None:
    step(state, call, answer)


@pytest.mark.parametrize(("state", "call", "answer", "reason"), FORBIDDEN)
def test_the_model_forbids(state: State, call: Call, answer: Answer, reason: str) -> None:
    with pytest.raises(ForbiddenError, match=reason):
        step(state, call, answer)


def test_an_attempt_after_one_without_answer_may_have_written_or_be_replayed() -> None:
    call = Append("k", (A,), "t")
    for replayed in (True, False):
        state = step(NOTHING, call, Written("r", "e", 1, replayed), repeated=True)
        assert step(state, call, Written("r", "e", 1, replayed=True)) == state


def test_a_backends_times_may_not_go_back() -> None:
    state = after((Append("k", (D,), "t3"), Written("r3", "e1", 6)), begin=READ)
    for at, allowed in ((TIME - timedelta(microseconds=1), False), (TIME, True), (TIME + timedelta(1), True)):
        head = Conversation("k", "r3", "e1", 4, min(TIME, at), at)
        if allowed:
            step(state, Get("k", limit=0), head)
        else:
            with pytest.raises(ForbiddenError):
                step(state, Get("k", limit=0), head)


class GivesTheOldest(MemoryBackend):
    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, before=before, after=after)
        return found._replace(records=found.records[:limit])


class ReadsUpToBefore(MemoryBackend):
    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        return await super().get(key, limit=limit, before=None if before is None else before + 1, after=after)


class KeepsWhatItRead(MemoryBackend):
    """Until it writes itself."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.read: dict[tuple[object, ...], Conversation] = {}

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        call = (key, limit, before, after)
        if call not in self.read:
            self.read[call] = await super().get(key, limit=limit, before=before, after=after)
        return self.read[call]

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        self.read.clear()
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )


class ReplaysAcrossClears(MemoryBackend):
    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.turns: dict[tuple[str, str], Written] = vars(store).setdefault("turns", {})

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        if (known := self.turns.get((key, turn_id))) and not (await self.get(key, limit=0)).revision:
            return known._replace(replayed=True)
        self.turns[key, turn_id] = written = await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )
        return written


class RemembersRefusedTurns(MemoryBackend):
    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.refused: set[tuple[str, str]] = set()

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        if (key, turn_id) in self.refused:
            raise RevisionConflictError(key)
        try:
            return await super().replace(key, records, turn_id=turn_id, expected_revision=expected_revision)
        except RevisionConflictError:
            self.refused.add((key, turn_id))
            raise


class ForgetsTurnsOfReplaces(MemoryBackend):
    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await super().replace(key, records, turn_id=new_turn_id(), expected_revision=expected_revision)


class ClearsAtAnyRevision(MemoryBackend):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        return await super().clear(key)


class CutsAtAPagesEnd(MemoryBackend):
    """Leaves out of a page what begins with the key that the page before ended with."""

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        found = await super().summaries(prefix=prefix, after=after, limit=limit, order=order)
        return [each for each in found if after is None or not each.key.startswith(after.key)]


class ListsOldHeads(MemoryBackend):
    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.heads: dict[str, ConversationSummary] = {}

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        found = await super().summaries(prefix=prefix, after=after, limit=limit, order=order)
        return [self.heads.setdefault(f"{each.key} {each.epoch}", each) for each in found]


MUTANTS: list[type[MemoryBackend]] = [
    GivesTheOldest,
    ReadsUpToBefore,
    KeepsWhatItRead,
    ReplaysAcrossClears,
    RemembersRefusedTurns,
    ForgetsTurnsOfReplaces,
    ClearsAtAnyRevision,
    CutsAtAPagesEnd,
    ListsOldHeads,
]


@pytest.mark.parametrize("broken", MUTANTS)
def test_random_calls_find_a_backend_that(broken: type[MemoryBackend]) -> None:
    with pytest.raises(AssertionError):
        run_machine(partial(broken, MemoryStore()), shorten=False)


def test_a_failure_tells_the_steps_to_it() -> None:
    with pytest.raises(ForbiddenError, match="not the records that were asked for") as caught:
        run_machine(partial(GivesTheOldest, MemoryStore()), shorten=False)
    steps = [line for line in "\n".join(caught.value.__notes__).splitlines() if line.startswith("state.call(")]
    assert any("action=Write(key='a', operation='append'" in step for step in steps)
    assert "action=Read(key=" in steps[-1]
