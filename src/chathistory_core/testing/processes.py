"""Obligations 3 to 6 between processes, for stores that several can share."""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from itertools import chain
from typing import TypeVar

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import RevisionConflictError
from chathistory_core.records import NO_REVISION, Written, new_turn_id
from chathistory_core.testing.atomicity import assert_whole_turns
from chathistory_core.testing.concurrency import Caller
from chathistory_core.testing.histories import Event, check_history
from chathistory_core.testing.scenario import TIME_LIMIT, BackendFactory, chances, records, say, texts_of
from chathistory_core.testing.turns import assert_written_once

T = TypeVar("T")

ROUNDS = 15
"""Of random calls of two callers in each process."""


class ProcessTests:
    """Two processes on one store; `make_backend` must be picklable (a `functools.partial` of importable names is)."""

    def test_writers_in_two_processes_lose_double_and_split_nothing(self, make_backend: BackendFactory) -> None:
        _in_two_processes(_append, make_backend)
        assert_whole_turns(_texts(make_backend, "k"), writers=16, turns=6)

    def test_of_two_processes_with_one_turn_one_writes(self, make_backend: BackendFactory) -> None:
        one, other = _in_two_processes(_same_turns, make_backend)
        assert len(one) == 40
        for pair in zip(one, other, strict=True):
            assert_written_once(list(pair))
        assert _texts(make_backend, "k") == [str(number) for number in range(40)]

    def test_no_update_of_two_processes_is_lost(self, make_backend: BackendFactory) -> None:
        one, other = _in_two_processes(_count_up, make_backend)
        assert len(one) == len(other) == 25
        assert _texts(make_backend, "k") == ["50"]

    def test_another_process_sees_what_was_written_and_remembers_its_turns(self, make_backend: BackendFactory) -> None:
        async def scenario() -> list[Written]:
            async with make_backend() as backend:
                return [await say(backend, "k", str(number), turn_id=str(number)) for number in range(40)]

        written = asyncio.run(scenario())
        for answers in _in_two_processes(_same_turns, make_backend):
            assert answers == [each._replace(replayed=True) for each in written]

    def test_the_answers_of_concurrent_calls_of_two_processes_have_an_order(self, make_backend: BackendFactory) -> None:
        check_history(chain.from_iterable(_in_two_processes(_call_at_random, make_backend)))


def _append(make_backend: BackendFactory, process: int) -> list[Written]:
    async def scenario() -> list[Written]:
        async with make_backend() as backend:
            await _meet(backend, process)

            async def writer(name: int) -> None:
                for number in range(6):
                    size = (name + number) % 4 + 1
                    await say(backend, "k", *(f"{name} {number} {index} {size}" for index in range(size)))

            await asyncio.gather(*(writer(process * 8 + each) for each in range(8)))
        return []

    return asyncio.run(scenario())


def _same_turns(make_backend: BackendFactory, process: int) -> list[Written]:
    async def scenario() -> list[Written]:
        async with make_backend() as backend:
            await _meet(backend, process)
            return [await say(backend, "k", str(number), turn_id=str(number)) for number in range(40)]

    return asyncio.run(scenario())


def _count_up(make_backend: BackendFactory, process: int) -> list[Written]:
    async def scenario() -> list[Written]:
        written: list[Written] = []
        async with make_backend() as backend:
            await _meet(backend, process)
            while len(written) < 25:
                found = await backend.get("k")
                count = int(found.records[0].payload) if found.revision != NO_REVISION else 0
                with suppress(RevisionConflictError):
                    written.append(
                        await backend.replace(
                            "k", records(str(count + 1)), turn_id=new_turn_id(), expected_revision=found.revision
                        )
                    )
        return written

    return asyncio.run(scenario())


def _call_at_random(make_backend: BackendFactory, process: int) -> list[Event]:
    async def scenario() -> list[Event]:
        events: list[Event] = []
        async with make_backend() as backend:
            for number, chance in enumerate(chances(ROUNDS)):
                callers = [Caller(f"process {process} caller {name}", chance.random()) for name in range(2)]
                await _meet(backend, process, f"arrived in round {number}")
                await asyncio.gather(*(caller.run(backend, (f"{number}/a", f"{number}/b")) for caller in callers))
                events += chain.from_iterable(caller.events for caller in callers)
        return events

    return asyncio.run(scenario())


async def _meet(backend: ChatHistoryBackend, process: int, key: str = "arrived") -> None:
    """Wait until both processes are there, so that neither is done before the other begins."""
    # each has a conversation of its own, so that a store that loses updates does not make them wait for ever
    await say(backend, f"{key}: {process}", "here")
    async with asyncio.timeout(TIME_LIMIT / 2):
        while (await backend.get(f"{key}: {1 - process}", limit=0)).revision == NO_REVISION:  # noqa: ASYNC110 - of another process
            await asyncio.sleep(0.001)


def _in_two_processes(work: Callable[[BackendFactory, int], list[T]], make_backend: BackendFactory) -> list[list[T]]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(work, [make_backend] * 2, range(2), timeout=TIME_LIMIT))


def _texts(make_backend: BackendFactory, key: str) -> list[str]:
    async def scenario() -> list[str]:
        async with make_backend() as backend:
            return texts_of(await backend.get(key))

    return asyncio.run(scenario())
