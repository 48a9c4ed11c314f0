"""Several processes on one file, and processes that are killed."""

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from chathistory_core import Conversation, Record, read_on
from chathistory_sqlite import SQLiteBackend

WORKER = Path(__file__).with_name("worker.py")


@contextmanager
def workers(*arguments: tuple[str, str, str]) -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that are ready to begin; those that still run at the end are killed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", WORKER, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in arguments
    ]
    try:
        for process in processes:
            assert _stream(process.stdout).readline() == "ready\n"
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def begin(process: "subprocess.Popen[str]") -> None:
    stream = _stream(process.stdin)
    stream.write("\n")
    stream.flush()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def texts(path: Path) -> list[str]:
    async def scenario() -> list[str]:
        async with SQLiteBackend.from_path(path) as backend:
            return [record.payload.decode() for record in (await backend.get("k")).records]

    return asyncio.run(scenario())


def test_two_processes_of_32_writers_lose_double_split_and_reorder_nothing(path: Path) -> None:
    with workers(("write", str(path), "a"), ("write", str(path), "b")) as processes:
        for process in processes:
            begin(process)
        assert [process.wait(60) for process in processes] == [0, 0]
    found = [text.split() for text in texts(path)]
    turns: list[tuple[str, int]] = []
    while found:
        writer, turn, _, size = found[0]
        assert found[: int(size)] == [[writer, turn, str(index), size] for index in range(int(size))]
        turns.append((writer, int(turn)))
        del found[: int(size)]
    names = [f"{name}{number}" for name in "ab" for number in range(32)]
    assert sorted(turns) == sorted((name, turn) for name in names for turn in range(5))
    for name in names:
        assert [turn for writer, turn in turns if writer == name] == list(range(5))


@pytest.mark.parametrize("acknowledged", [1, 100])
def test_a_killed_process_loses_no_acknowledged_turn_and_leaves_none_in_part(path: Path, acknowledged: int) -> None:
    with workers(("acknowledge", str(path), "a"), ("acknowledge", str(path), "b")) as processes:
        for process in processes:
            begin(process)
        seen = [_stream(processes[0].stdout).readline() for _ in range(acknowledged)]
        for process in processes:
            process.kill()
        for process in processes:
            seen += _stream(process.stdout).readlines()
    promised = {line.removesuffix("\n") for line in seen if line.endswith("\n")}
    found = texts(path)
    kept = [text.rpartition(" ")[0] for text in found[::3]]
    assert found == [f"{turn_id} {index}" for turn_id in kept for index in range(3)]
    assert len(set(kept)) == len(kept)
    assert promised <= set(kept)

    async def repeat() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            for turn_id in kept[-300:]:  # of those that are remembered
                batch = [Record(f"{turn_id} {index}".encode(), "chat-message") for index in range(3)]
                assert (await backend.append("k", batch, turn_id=turn_id)).replayed

    asyncio.run(repeat())
    assert texts(path) == found


@pytest.mark.parametrize("seed", ["1"])
def test_followers_miss_repeat_and_reorder_nothing_while_another_process_changes_the_conversation(
    path: Path, seed: str
) -> None:
    epochs: set[str] = set()

    async def follow(backend: SQLiteBackend, limit: int | None) -> None:
        held = Conversation("k")
        lines: list[str] = []
        while not lines or lines[-1] != "end":
            news = await read_on(backend, "k", held, limit=limit)
            if news is None:
                held, lines = Conversation("k"), []
                continue
            if held.records and news.epoch != held.epoch:
                pytest.fail("an answer of another epoch")
            if not held.records:
                lines = []
            fresh = [record.payload.decode() for record in news.records]
            assert limit is None or len(fresh) <= limit
            lines += fresh
            told = [line.split() for line in lines if line != "end"]
            assert [int(place) for _, place in told] == list(range(len(told)))
            assert len({epoch for epoch, _ in told}) <= 1
            epochs.update(epoch for epoch, _ in told[:1])
            held = news._replace(records=news.records[-1:] or held.records)

    async def scenario() -> None:
        with workers(("change", str(path), seed)) as (process,):
            async with SQLiteBackend.from_path(path) as backend:
                begin(process)
                await asyncio.gather(*(follow(backend, limit) for limit in (1, 2, 3, 7, None)))
            assert process.wait(60) == 0

    asyncio.run(scenario())
    assert len(epochs) > 5


def test_processes_that_open_the_same_new_files_at_once_all_succeed(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.db" for number in range(40)]
    joined = "\n".join(map(str, paths))
    with workers(*(("open", joined, name) for name in "abc")) as processes:
        for process in processes:
            begin(process)
        assert [process.wait(60) for process in processes] == [0, 0, 0]
    for path in paths:
        assert sorted(texts(path)) == ["a", "b", "c"]
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT version FROM chathistory_schema").fetchall() == [(1,)]
        connection.close()
