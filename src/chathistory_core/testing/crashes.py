"""Obligations 4, 5 and 13 under `kill -9`: what a killed writer was told is stored, and nothing of it in part.

The writer tells another process, through a pipe, of each call before it makes it and of each answer: an outside record
of what was acknowledged.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from random import Random
from typing import NamedTuple

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.testing.scenario import TIME_LIMIT, BackendFactory, chances, keys_of, records, say, texts_of

KILLS = 2
"""Writers that are killed, one after the other, on one store."""

WRITERS = 4
"""Tasks of a killed process that append to one conversation."""

MOST = 400
"""What a writer does at most, so that one that nobody kills ends; less than the turns that every backend remembers."""


class Told(NamedTuple):
    """What the outside knows of one task of a killed process: what it has begun, and what was acknowledged."""

    begun: list[int]
    done: list[int]


class CrashTests:
    """A process that writes is killed at a random moment; `make_backend` must be picklable, as for `ProcessTests`."""

    def test_what_a_killed_writer_was_told_is_stored_and_nothing_is_stored_in_part(
        self, make_backend: BackendFactory
    ) -> None:
        for number, chance in enumerate(chances(KILLS)):
            told = _killed(make_backend, f"{number}", chance)
            asyncio.run(_check(make_backend, f"{number}", told))


def _killed(make_backend: BackendFactory, name: str, chance: Random) -> list[Told]:
    """What a writer told, until it was killed some answers and a moment after its beginning."""
    context = multiprocessing.get_context("spawn")
    ours, its = context.Pipe(duplex=False)
    with ours:
        process = context.Process(target=_write, args=(make_backend, name, its), daemon=True)
        process.start()
        its.close()
        told = [Told([], []) for _ in range(WRITERS + 1)]
        wanted = chance.randrange(1, 40)
        for _ in range(wanted):
            if not _hear(ours, told, TIME_LIMIT):
                break
        process.join(chance.random() * 0.02)
        process.kill()
        while _hear(ours, told, TIME_LIMIT):
            pass
        process.join(TIME_LIMIT)
    assert any(each.begun for each in told), f"the writer ended with {process.exitcode} and has written nothing"
    assert process.exitcode != 1, "the writer failed: its error is on standard error"
    return told


def _hear(pipe: Connection, told: Sequence[Told], seconds: float) -> bool:
    """Take the next line of the writer's; whether there was one."""
    assert pipe.poll(seconds), f"the writer said nothing for {seconds} seconds"
    try:
        line = pipe.recv_bytes()
    except (EOFError, OSError):  # OSError: killed inside a line
        return False
    kind, task, number = line.split()
    which = told[int(task)]
    (which.begun if kind == b"begin" else which.done).append(int(number))
    return True


def _write(make_backend: BackendFactory, name: str, pipe: Connection) -> None:
    """In a process of its own: append in several tasks, change a conversation in another, and tell of each step."""

    async def append(backend: ChatHistoryBackend, task: int) -> None:
        for number in range(MOST // WRITERS):
            pipe.send_bytes(f"begin {task} {number}".encode())
            turn = _turn(name, task, number)
            await say(backend, "appended", *_lines(turn), turn_id=turn)
            pipe.send_bytes(f"done {task} {number}".encode())

    async def change(backend: ChatHistoryBackend) -> None:
        for number in range(MOST):
            pipe.send_bytes(f"begin {WRITERS} {number}".encode())
            await _change(backend, name, number)
            pipe.send_bytes(f"done {WRITERS} {number}".encode())

    async def run() -> None:
        async with make_backend() as backend:
            await asyncio.gather(change(backend), *(append(backend, task) for task in range(WRITERS)))

    if os.name != "nt":
        os.setsid()  # what stops the tests stops them alone
    asyncio.run(run())


async def _change(backend: ChatHistoryBackend, name: str, number: int) -> None:
    key, turn = f"changed {name}", f"{name} {number}"
    match number % 4:
        case 0 | 1:
            await say(backend, key, *_lines(turn), turn_id=turn)
        case 2:
            await backend.replace(key, records(*_lines(turn)), turn_id=turn)
        case _:
            await backend.clear(key)


def _states(name: str) -> Iterator[list[str]]:
    """What the changed conversation holds after 0, 1, 2 … steps."""
    held: list[str] = []
    yield held
    for number in range(MOST):
        lines = list(_lines(f"{name} {number}"))
        held = (held + lines, held + lines, lines, [])[number % 4]
        yield held


async def _check(make_backend: BackendFactory, name: str, told: Sequence[Told]) -> None:
    async with make_backend() as backend:
        await _check_appends(backend, name, told[:WRITERS])
        await _check_changes(backend, name, told[WRITERS])


async def _check_changes(backend: ChatHistoryBackend, name: str, told: Told) -> None:
    states, key = list(_states(name)), f"changed {name}"
    allowed = [states[len(told.done)], states[len(told.begun)]]
    found = await backend.get(key)
    assert texts_of(found) in allowed, "a killed write was stored in part, or an acknowledged one was lost"
    assert found.record_count == len(found.records)
    assert keys_of(await backend.summaries(prefix=key)) == ([key] if found.records else [])
    for number in told.begun[len(told.done) :]:
        await _change(backend, name, number)
    assert texts_of(await backend.get(key)) == allowed[-1], "the call that was cut short, made again, did not work"
    await say(backend, key, "next")
    assert texts_of(await backend.get(key)) == [*allowed[-1], "next"]


async def _check_appends(backend: ChatHistoryBackend, name: str, told: Sequence[Told]) -> None:
    found = texts_of(await backend.get("appended"))
    kept = [line.rpartition(" ")[0] for line in found[::3]]
    assert found == [line for turn in kept for line in _lines(turn)], "a turn was stored in part"
    assert len(set(kept)) == len(kept), "a turn was stored twice"
    ours = [turn for turn in kept if turn.startswith(f"{name} ")]
    acknowledged = {_turn(name, task, number) for task, each in enumerate(told) for number in each.done}
    begun = [_turn(name, task, number) for task, each in enumerate(told) for number in each.begun]
    assert acknowledged <= set(ours), "an acknowledged turn was lost"
    assert set(ours) <= set(begun), "a turn was stored that nobody began"
    for turn in begun:
        written = await say(backend, "appended", *_lines(turn), turn_id=turn)
        assert written.replayed == (turn in ours), "a repeated turn was stored anew, or is missing"
    missing = [turn for turn in begun if turn not in ours]
    assert texts_of(await backend.get("appended")) == found + [line for turn in missing for line in _lines(turn)]


def _turn(name: str, task: int, number: int) -> str:
    return f"{name} {task} {number}"


def _lines(turn: str) -> tuple[str, ...]:
    return tuple(f"{turn} {index}" for index in range(3))
