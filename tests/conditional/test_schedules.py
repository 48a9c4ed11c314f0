"""Writers, one who clears and replaces, and a follower: random schedules, lost replies, cancelled tasks."""

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from itertools import groupby
from random import Random
from typing import TYPE_CHECKING, NamedTuple

import pytest

from chathistory_core import (
    BackendUnavailableError,
    Conversation,
    Record,
    RevisionConflictError,
    StoredRecord,
    Written,
    read_on,
)
from chathistory_core.conditional import ConditionalBackend

if TYPE_CHECKING:
    from tests.conditional.conftest import Table

KEY = "k/ü"
SCHEDULES = int(os.environ.get("BACKEND_TESTS_EXAMPLES", "10"))


class Acknowledged(NamedTuple):
    turn_id: str
    written: Written
    began: int


class Schedule:
    """One random schedule; `time` counts what has been done in it."""

    def __init__(self, table: "Table", random: Random, *, cancelled: float, breaks: bool) -> None:
        self.table, self.random, self.cancelled, self.breaks = table, random, cancelled, breaks
        self.acknowledged: list[Acknowledged] = []
        self.time = self.broken = 0
        self.done = False

    async def run(self) -> tuple[Conversation, Conversation]:
        """What a follower holds in the end, and what there is."""
        following = asyncio.create_task(self._follow())
        tasks = [self._write(name) for name in range(5)]
        await asyncio.gather(*tasks, *([self._break()] if self.breaks else []))
        self.done = True
        held = await following
        self.table.lost = 0
        async with self._backend() as backend:
            return held, await backend.get(KEY)

    def batch(self, turn_id: str) -> list[Record]:
        own = Random(turn_id)
        return [
            Record(f"{turn_id}|{number}|".encode() * own.choice([1, 1, 1, 1, 400]), "text")
            for number in range(own.randrange(1, 5))
        ]

    def _backend(self) -> ConditionalBackend:
        return ConditionalBackend(self.table, max_block=1_024)

    async def _write(self, name: int) -> None:
        async with self._backend() as backend:
            for number in range(8):
                again = number > 0 and self.random.random() < 0.1
                turn_id = f"{name}.{number - again}"
                while True:
                    self.time += 1
                    began = self.time
                    task = asyncio.create_task(backend.append(KEY, self.batch(turn_id), turn_id=turn_id))
                    if self.random.random() < self.cancelled:
                        await self._wait(25)
                        task.cancel()
                    with suppress(BackendUnavailableError, asyncio.CancelledError):
                        self.acknowledged.append(Acknowledged(turn_id, await task, began))
                        break

    async def _break(self) -> None:
        async with self._backend() as backend:
            for number in range(3):
                await self._wait(150)
                with suppress(BackendUnavailableError, RevisionConflictError):
                    if self.random.random() < 0.5:
                        await backend.clear(KEY)
                    else:
                        found = await backend.get(KEY)
                        await backend.replace(
                            KEY,
                            [record.record for record in found.records],
                            turn_id=f"replace {number}",
                            expected_revision=found.revision,
                        )
                self.time += 1
                self.broken = self.time

    async def _follow(self) -> Conversation:
        held = Conversation(KEY)
        async with self._backend() as backend:
            while True:
                last = self.done
                try:
                    new = await read_on(backend, KEY, held, limit=5)
                except BackendUnavailableError:
                    continue
                if new is None or new.epoch != held.epoch:
                    held = Conversation(KEY) if new is None or held.records else new
                elif new.records:
                    held = new._replace(records=held.records + new.records)
                elif last:
                    return held
                await asyncio.sleep(0)

    async def _wait(self, most: int) -> None:
        for _ in range(self.random.randrange(most)):
            await asyncio.sleep(0)


@pytest.mark.parametrize("breaks", [False, True], ids=["appends", "appends, replaces and clears"])
@pytest.mark.parametrize("cancelled", [0, 0.3])
@pytest.mark.parametrize(("lost", "repeats"), [(0, 0), (0.05, 0), (0.1, 2)])
def test_nothing_acknowledged_is_lost_doubled_or_split(
    make_table: "Callable[..., Table]", lost: float, repeats: int, cancelled: float, breaks: bool
) -> None:
    for seed in range(SCHEDULES):
        table = make_table(seed=seed, lost=lost, repeats=repeats, versions=seed % 2 == 0)
        schedule = Schedule(table, Random(seed), cancelled=cancelled, breaks=breaks)
        held, found = asyncio.run(schedule.run())
        _check(schedule, held, found, seed)


def _check(schedule: Schedule, held: Conversation, found: Conversation, seed: int) -> None:
    assert [record.position for record in found.records] == list(range(1, found.record_count + 1)), seed
    assert (held.epoch, held.records) == (found.epoch, found.records), seed
    turns = [(turn_id, list(run)) for turn_id, run in groupby(found.records, key=_wrote)]
    stored = {turn_id for turn_id, _ in turns}
    assert len(stored) == len(turns), seed
    for turn_id, run in turns:
        assert [record.record for record in run] == schedule.batch(turn_id), seed
    wanted = {each.turn_id for each in schedule.acknowledged if each.began > schedule.broken}
    assert stored >= wanted, seed
    if not schedule.breaks:
        assert stored == wanted, seed
        first = {turn_id: run[0].position for turn_id, run in turns}
        for turn_id, written, _ in schedule.acknowledged:
            assert written.first_position == first[turn_id], seed


def _wrote(record: StoredRecord) -> str:
    return record.payload.split(b"|")[0].decode()
