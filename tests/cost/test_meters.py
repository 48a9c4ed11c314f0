"""The meters count what happens, whoever makes it happen."""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest

from chathistory_core.testing.meters import Meters, Reading


def metered(scenario: Callable[[Meters], Coroutine[object, object, Reading]]) -> Reading:
    with Meters() as meters, asyncio.Runner(loop_factory=meters.loop) as runner:
        return runner.run(scenario(meters))


def test_each_answer_of_another_thread_is_a_hop() -> None:
    async def scenario(meters: Meters) -> Reading:
        await asyncio.to_thread(int)  # the pool's thread begins
        start = meters.read()
        for _ in range(3):
            await asyncio.to_thread(int)
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_soon_threadsafe(int)
        return meters.read().since(start)

    assert metered(scenario).hops == 3


@pytest.mark.parametrize("mode", ["WAL", "DELETE"])
def test_commits_that_changed_something_are_counted(tmp_path: Path, mode: str) -> None:
    async def scenario(meters: Meters) -> Reading:
        database = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
        assert meters.counts_commits
        database.execute(f"PRAGMA journal_mode = {mode}")
        database.execute("CREATE TABLE t (a)")
        start = meters.read()
        database.execute("INSERT INTO t VALUES (1)")
        for end in ("COMMIT", "ROLLBACK"):
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT INTO t VALUES (?)", [(each,) for each in range(100)])
            database.execute(end)
        database.execute("BEGIN")
        database.execute("SELECT * FROM t").fetchall()
        database.execute("COMMIT")
        found = meters.read().since(start)
        database.close()
        return found

    assert metered(scenario).commits == 2


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux counts the bytes of a process")
def test_bytes_of_files_are_counted_and_those_of_the_meters_are_not(tmp_path: Path) -> None:
    path = tmp_path / "file"

    async def scenario(meters: Meters) -> Reading:
        assert meters.counts_bytes
        start = meters.read()
        for _ in range(10):
            assert meters.read().since(start)[3:] == (0, 0)
        path.write_bytes(bytes(5_000))
        path.read_bytes()
        return meters.read().since(start)

    found = metered(scenario)
    assert (found.read, found.written) == (5_000, 5_000)


def test_a_database_of_another_time_is_not_counted(tmp_path: Path) -> None:
    async def scenario(meters: Meters) -> Reading:
        return meters.read()

    sqlite3.connect(tmp_path / "before.db").close()
    with Meters() as meters:
        sqlite3.connect(":memory:").close()
        assert not meters.counts_commits
    sqlite3.connect(tmp_path / "after.db").close()
    assert not meters.counts_commits
    assert metered(scenario).commits == 0
