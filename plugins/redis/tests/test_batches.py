"""Small writes that are begun at the same time: one round trip for all, and each its own outcome."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence

import pytest
from redis.asyncio import ConnectionPool, Redis, UnixDomainSocketConnection

from chathistory_core import BackendError, Record, RevisionConflictError, TurnConflictError, Written
from chathistory_redis import RedisBackend

SHORT = Record(b"x", "chat-message")


@pytest.fixture(params=["valkey", "redis"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


async def reads_of(client: "Redis", *operations: Awaitable[object]) -> tuple[int, Sequence[object]]:
    """How often the server had something to read meanwhile, and the outcomes."""
    before = (await client.info("stats"))["total_reads_processed"]
    outcomes = await asyncio.gather(*operations, return_exceptions=True)
    after = (await client.info("stats"))["total_reads_processed"]
    return after - before - 1, outcomes


def test_writes_that_begin_at_the_same_time_share_one_round_trip(url: str) -> None:
    async def scenario() -> None:
        async with Redis.from_url(url) as client, RedisBackend(client) as backend:
            await backend.append("k", [SHORT], turn_id="first")
            appends = [backend.append(f"k{number % 2}", [SHORT] * 2, turn_id=f"t{number}") for number in range(6)]
            reads, outcomes = await reads_of(client, *appends, backend.replace("k", [SHORT], turn_id="r"))
            assert reads == 1
            assert all(isinstance(outcome, Written) for outcome in outcomes)
            assert [record.turn_id for record in (await backend.get("k1")).records] == [
                turn for turn in ("t1", "t3", "t5") for _ in range(2)
            ]

    asyncio.run(scenario())


def test_what_fails_touches_none_of_the_writes_beside_it(url: str) -> None:
    async def scenario() -> None:
        async with Redis.from_url(url) as client, RedisBackend(client) as backend:
            await backend.append("broken", [SHORT], turn_id="first")
            (records,) = [key async for key in client.scan_iter("*broken*") if await client.type(key) == b"list"]
            await client.delete(records)
            await client.set(records, "of another application")
            before = await backend.append("k", [SHORT], turn_id="first")
            reads, outcomes = await reads_of(
                client,
                backend.append("broken", [SHORT], turn_id="t"),
                backend.append("k", [SHORT], turn_id="second"),
                backend.append("k", [SHORT], turn_id="third", expected_revision=before.revision),
                backend.append("k", [SHORT] * 2, turn_id="first"),
                backend.append("k", [SHORT], turn_id="first"),
            )
            assert reads == 1
            kinds = [type(outcome) for outcome in outcomes]
            assert kinds == [BackendError, Written, RevisionConflictError, TurnConflictError, Written]
            assert outcomes[-1] == before._replace(replayed=True)
            assert [record.turn_id for record in (await backend.get("k")).records] == ["first", "second"]

    asyncio.run(scenario())


def test_a_cancelled_task_takes_no_other_write_along(url: str) -> None:
    async def scenario(turns_of_the_loop: int) -> None:
        async with Redis.from_url(url) as client, RedisBackend(client) as backend:
            key = f"k{turns_of_the_loop}"
            tasks = [asyncio.create_task(backend.append(key, [SHORT], turn_id=f"t{number}")) for number in range(4)]
            for _ in range(turns_of_the_loop):
                await asyncio.sleep(0)
            tasks[0].cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(outcome, Written) for outcome in outcomes] == [False, True, True, True]
            again = await backend.append(key, [SHORT], turn_id="t0")  # whether it was stored or not: now it is, once
            turns = [record.turn_id for record in (await backend.get(key)).records]
            assert sorted(turns) == ["t0", "t1", "t2", "t3"]
            assert again.replayed == (turns[-1] != "t0")

    for turns_of_the_loop in range(6):
        asyncio.run(scenario(turns_of_the_loop))


def test_a_server_that_has_forgotten_the_scripts_is_told_them_again(url: str) -> None:
    async def scenario() -> None:
        async with Redis.from_url(url) as client, RedisBackend(client) as backend:
            await client.script_flush()
            await asyncio.gather(*(backend.append("k", [SHORT], turn_id=f"t{number}") for number in range(8)))
            assert (await backend.get("k")).record_count == 8

    asyncio.run(scenario())


class CountingConnection(UnixDomainSocketConnection):
    """Counts what is sent at a time, on all connections, and of how many pieces the last was."""

    sent = 0
    pieces = 0

    async def send_packed_command(self, command: bytes | str | Iterable[bytes], check_health: bool = True) -> None:
        CountingConnection.sent += 1
        CountingConnection.pieces = 1 if isinstance(command, bytes | str) else len(list(command))
        await super().send_packed_command(command, check_health)


@pytest.mark.parametrize("large", [[Record(b"x" * 2**24, "chat-message")], [SHORT] * 1_000], ids=["bytes", "records"])
def test_a_large_write_keeps_no_small_one_waiting(large: Sequence[Record], url: str) -> None:
    pool = ConnectionPool(connection_class=CountingConnection, path=url.removeprefix("unix://"))

    async def sent(*operations: Awaitable[object]) -> int:
        before = CountingConnection.sent
        await asyncio.gather(*operations)
        return CountingConnection.sent - before

    async def scenario() -> None:
        async with Redis.from_pool(pool) as client, RedisBackend(client) as backend:
            await asyncio.gather(backend.get("a"), backend.get("b"))  # so that there are two connections
            large_one = backend.append("large", large, turn_id="t")
            assert await sent(large_one, backend.append("small", [SHORT], turn_id="t")) == 2
            assert (await backend.get("small")).record_count == 1
            assert await sent(*(backend.append(key, [SHORT], turn_id="t") for key in ("a", "b"))) == 1

    asyncio.run(scenario())


def test_a_write_is_sent_in_few_pieces_for_tls_wraps_each_by_itself(url: str) -> None:
    pool = ConnectionPool(connection_class=CountingConnection, path=url.removeprefix("unix://"))

    async def scenario() -> None:
        async with Redis.from_pool(pool) as client, RedisBackend(client) as backend:
            for key, sizes, most in (
                ("a", [1] * 40, 1),
                ("b", [1] * 1_000, 1),
                ("c", [2**16], 3),
                ("d", [0, 2**16, 1], 3),
            ):
                payloads = [b"x" * size for size in sizes]
                await backend.append(key, [Record(payload, "text") for payload in payloads], turn_id="t")
                assert CountingConnection.pieces <= most
                found = await backend.get(key)
                assert [len(record.payload) for record in found.records] == sizes

    asyncio.run(scenario())


def test_closing_waits_for_what_is_on_its_way(url: str) -> None:
    async def scenario() -> None:
        async with Redis.from_url(url) as client:
            async with RedisBackend(client) as backend:
                tasks = [asyncio.create_task(backend.append("k", [SHORT], turn_id=f"t{number}")) for number in range(4)]
                for _ in range(3):
                    await asyncio.sleep(0)
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)
            assert asyncio.all_tasks() == {asyncio.current_task()}
            async with RedisBackend(client) as backend:
                assert (await backend.get("k")).record_count in (0, 4)

    asyncio.run(scenario())
