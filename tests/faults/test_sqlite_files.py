"""What a SQLite store does when its disk is full or fails, and when its file is torn."""

import asyncio
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatHistoryError,
    Record,
    new_turn_id,
)
from chathistory_sqlite import SQLiteBackend

CANARY = "the-content-nobody-may-see"


def records(count: int, size: int = 1_000) -> list[Record]:
    return [Record(f"{CANARY} {number} ".encode().ljust(size, b"."), "text") for number in range(count)]


def limited(path: Path, pages: int) -> AsyncEngine:
    """An engine whose database cannot grow beyond so many pages."""
    engine = create_async_engine(f"sqlite+aiosqlite:///{path}")

    @event.listens_for(engine.sync_engine, "connect")
    def limit(connection: object, _: object) -> None:
        cursor = connection.cursor()  # type: ignore[attr-defined]  # the event does not type it
        cursor.execute(f"PRAGMA max_page_count = {pages}")
        cursor.close()

    return engine


async def fill(backend: ChatHistoryBackend) -> list[str]:
    """Append until the disk is full; the turns that were acknowledged."""
    done: list[str] = []
    for size in (40, 8, 1):
        for number in range(10_000):
            turn = f"{size} {number}"
            try:
                await backend.append("k", records(size), turn_id=turn)
            except BackendUnavailableError as error:
                assert "cannot grow" in str(error)  # noqa: PT017 - the place is what is told
                break
            done.append(turn)
    return done


async def turns_of(backend: ChatHistoryBackend, key: str) -> list[str]:
    return list(dict.fromkeys(record.turn_id for record in (await backend.get(key)).records))


def test_a_disk_that_fills_up_keeps_every_acknowledged_turn_and_reads_go_on(tmp_path: Path) -> None:
    path = tmp_path / "history.db"

    async def full() -> list[str]:
        engine = limited(path, 150)
        async with SQLiteBackend(engine) as backend:
            done = await fill(backend)
            held = await backend.get("k")
            calls: list[Callable[[], Awaitable[object]]] = [
                lambda: backend.append("k", records(40), turn_id="late"),
                lambda: backend.append("another", records(40), turn_id="late"),
                lambda: backend.replace("another", records(40), turn_id="late"),
            ]
            for call in calls:
                with pytest.raises(BackendUnavailableError) as caught:
                    await call()
                assert caught.value.retryable
                assert CANARY not in str(caught.value)
                assert await backend.get("k") == held
                assert [one.key for one in await backend.summaries()] == ["k"]
        async with SQLiteBackend(engine) as backend:
            assert await backend.get("k") == held
        await engine.dispose()
        return done

    async def freed(done: list[str]) -> None:
        async with SQLiteBackend.from_path(path) as backend:
            assert await turns_of(backend, "k") == done
            again = records(int(done[-1].split()[0]))
            assert (await backend.append("k", again, turn_id=done[-1])).replayed
            assert not (await backend.append("k", records(40), turn_id="late")).replayed
            assert await turns_of(backend, "k") == [*done, "late"]

    done = asyncio.run(full())
    assert len(done) > 3
    asyncio.run(freed(done))


def test_a_full_disk_lets_conversations_be_cleared_and_then_takes_new_ones(tmp_path: Path) -> None:
    async def scenario() -> None:
        engine = limited(tmp_path / "history.db", 150)
        async with SQLiteBackend(engine) as backend:
            await backend.append("other", records(1), turn_id="t")
            await fill(backend)
            assert await backend.clear("k")
            assert (await backend.get("k")).record_count == 0
            assert not (await backend.append("k", records(40), turn_id="t")).replayed
            assert (await backend.get("other")).record_count == 1
        await engine.dispose()

    asyncio.run(scenario())


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file that this process writes grows beyond this size: what a disk that fails or is full does to the log."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_log_that_cannot_be_written_stores_nothing_and_the_next_call_works(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    assert signal.getsignal(signal.SIGXFSZ) == signal.SIG_IGN, "Python lets such writes fail, and is not ended by them"

    async def scenario() -> None:
        async with SQLiteBackend.from_path(path) as backend:
            await backend.append("k", records(1), turn_id="t")
            held = await backend.get("k")
            log = path.with_name("history.db-wal").stat().st_size
            for room in (0, 24, 500, 4_096, 4_120, 9_000, 30_000):
                with largest_file(log + room):
                    for write in (backend.append, backend.replace):
                        with pytest.raises(BackendUnavailableError) as caught:
                            await write("k", records(100), turn_id="u")
                        assert CANARY not in str(caught.value)
                    assert await backend.get("k") == held
            assert not (await backend.append("k", records(100), turn_id="u")).replayed
            assert await turns_of(backend, "k") == ["t", "u"]
        async with SQLiteBackend.from_path(path) as backend:
            assert await turns_of(backend, "k") == ["t", "u"]

    asyncio.run(scenario())


WRITER = f"""
import asyncio, os, signal, sys
from chathistory_core import Record
from chathistory_sqlite import SQLiteBackend

async def main():
    async with SQLiteBackend.from_path(sys.argv[1]) as backend:
        for turn in range(30):
            records = [Record(f"{CANARY} {{turn}} {{index}}".encode(), "text") for index in range(3)]
            await backend.append("k", records, turn_id=f"{{turn}}")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a process that was killed: everything is in its log."""
    path = tmp_path_factory.mktemp("killed") / "history.db"
    ended = subprocess.run([sys.executable, "-c", WRITER, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert path.with_name("history.db-wal").stat().st_size > 100_000
    return path


def copied(source: Path, folder: Path) -> Path:
    """A copy of the database and its log; the index of the log is made anew, as after a power cut."""
    folder.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(source.with_name(source.name + suffix), folder / f"history.db{suffix}")
    return folder / "history.db"


async def whole_turns(path: Path) -> int:
    """How many turns a database holds, from the first one on and none of them in part; then it goes on."""
    async with SQLiteBackend.from_path(path) as backend:
        found = await backend.get("k")
        count = len(found.records) // 3
        texts = [f"{CANARY} {turn} {index}" for turn in range(count) for index in range(3)]
        assert [record.payload.decode() for record in found.records] == texts
        assert found.record_count == len(found.records)
        assert [one.record_count for one in await backend.summaries()] == ([count * 3] if count else [])
        batch = [Record(f"{CANARY} {count} {index}".encode(), "text") for index in range(3)]
        assert not (await backend.append("k", batch, turn_id=f"{count}")).replayed
        assert (await backend.append("k", batch, turn_id=f"{count}")).replayed
        return count


def test_a_killed_writer_s_log_is_read_whole(killed: Path, tmp_path: Path) -> None:
    assert asyncio.run(whole_turns(copied(killed, tmp_path / "copy"))) == 30


def test_of_a_log_that_was_cut_off_whole_turns_are_left(killed: Path, tmp_path: Path) -> None:
    """As a power cut leaves it where the log was not synchronised: what is missing is missing from the end."""
    size = killed.with_name("history.db-wal").stat().st_size
    counts = []
    for number, length in enumerate(range(size // 2, size, size // 17)):
        path = copied(killed, tmp_path / f"{number}")
        with path.with_name("history.db-wal").open("r+b") as log:
            log.truncate(length)
        counts.append(asyncio.run(whole_turns(path)))
    assert counts == sorted(counts)
    assert 0 < counts[0] < counts[-1] < 30


def test_of_a_log_that_was_torn_in_the_middle_whole_turns_are_left(killed: Path, tmp_path: Path) -> None:
    size = killed.with_name("history.db-wal").stat().st_size
    for number in range(8):
        path = copied(killed, tmp_path / f"{number}")
        with path.with_name("history.db-wal").open("r+b") as log:
            log.seek(size // 2 + number * size // 20)
            log.write(b"\xa5" * 64)
        assert asyncio.run(whole_turns(path)) < 30


def test_a_torn_file_works_or_says_clearly_why_not_and_is_never_made_anew(tmp_path: Path) -> None:
    source = tmp_path / "source.db"

    async def store() -> None:
        async with SQLiteBackend.from_path(source) as backend:
            for number in range(20):
                await backend.append(f"k{number}", records(20), turn_id="t")

    async def use(path: Path) -> None:
        async with SQLiteBackend.from_path(path) as backend:
            for number in range(20):
                await backend.get(f"k{number}")
            await backend.summaries(order="recent")
            await backend.append("k3", records(5), turn_id=new_turn_id())
            await backend.clear("k4")

    asyncio.run(store())
    whole = source.read_bytes()
    chance = random.Random(5)
    told: list[ChatHistoryError] = []
    damages: list[Callable[[bytes], bytes]] = [
        lambda data: data[: chance.randrange(1, len(data))],
        lambda data: data[: chance.randrange(1, len(data) // 4_096) * 4_096],
        lambda data: _overwritten(data, chance.randrange(len(data) - 4_096), bytes(4_096)),
        lambda data: _overwritten(data, chance.randrange(100, len(data) - 64), chance.randbytes(64)),
        lambda data: _overwritten(data, chance.randrange(1, len(data) // 4_096) * 4_096, chance.randbytes(16)),
        lambda data: _overwritten(data, 0, chance.randbytes(100)),
    ]
    for number in range(36):
        path = tmp_path / f"{number}.db"
        path.write_bytes(damages[number % len(damages)](whole))
        size = path.stat().st_size
        try:
            asyncio.run(use(path))
        except ChatHistoryError as error:
            told.append(error)
        assert path.stat().st_size >= size
    assert len(told) > 10
    for each in told:
        assert CANARY not in str(each)
        assert str(tmp_path) in str(each)
        assert each.__cause__ is None
    (tmp_path / "0.db").write_bytes(whole)
    asyncio.run(use(tmp_path / "0.db"))


def _overwritten(data: bytes, at: int, by: bytes) -> bytes:
    return data[:at] + by + data[at + len(by) :]
