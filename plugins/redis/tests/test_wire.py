"""What goes over the wire: how often, and what becomes of replies that are lost, late, wrong or no longer wanted."""

import asyncio
import gc
import tracemalloc
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import hiredis
import pytest
from redis.asyncio import BlockingConnectionPool, Redis, RedisCluster
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ReadOnlyError

from chathistory_core import (
    BackendError,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatHistoryError,
    Conversation,
    Record,
    RevisionConflictError,
    TurnConflictError,
    new_turn_id,
)
from chathistory_redis import RedisBackend, RedisOptions

MIB = 2**20

Call = Callable[[ChatHistoryBackend], Awaitable[object]]


class Proxy:
    """Stands between client and server, counts the commands that run scripts, and makes trouble."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.count = 0
        self.lost = 0
        """How many of the next replies get lost, each with its connection, once the server has done its work."""
        self.held: asyncio.Event | None = None
        """What the next replies wait for."""
        self.answer = b""
        """What is answered in place of the server."""
        self.before: Callable[[int], Awaitable[None]] | None = None
        """What happens before the server sees a command, by its number."""
        self.arrived = asyncio.Event()
        """A reply came from the server."""

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        parts = urlsplit(self._upstream)
        if parts.scheme == "unix":
            return await asyncio.open_unix_connection(parts.path)
        return await asyncio.open_connection(parts.hostname, parts.port)

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        upstream_reader, upstream_writer = await self._connect()
        commands = hiredis.Reader()
        try:
            while data := await reader.read(2**16):
                commands.feed(data)
                await self._forward(data, commands, upstream_reader, upstream_writer, writer)
        except (OSError, LostReplyError):
            pass
        finally:
            upstream_writer.close()
            writer.close()

    async def _forward(
        self, data: bytes, commands: hiredis.Reader, server: StreamReader, to_server: StreamWriter, client: StreamWriter
    ) -> None:
        whole = []
        while (command := commands.gets()) is not False:
            whole.append(command)
        counted = [command for command in whole if command[0] in (b"EVALSHA", b"EVAL")]
        for _ in counted:
            self.count += 1
            if self.before is not None:
                await self.before(self.count)
        if self.answer and (counted or not whole):  # nor does a part of a command go to the server
            if counted:
                client.write(self.answer)
            return
        to_server.write(data)
        replies = hiredis.Reader()
        for _ in whole:
            while replies.gets() is False:
                received = await server.read(2**16)
                replies.feed(received)
                if counted:
                    self.arrived.set()
                    if self.held is not None:
                        await self.held.wait()
                if counted and self.lost:
                    self.lost -= 1
                    raise LostReplyError
                client.write(received)
        await client.drain()


class LostReplyError(Exception):
    pass


@asynccontextmanager
async def proxied(url: str, path: Path) -> AsyncIterator[tuple[Proxy, str]]:
    proxy = Proxy(url)
    server = await asyncio.start_unix_server(proxy.serve, path)
    try:
        yield proxy, f"unix://{path}"
    finally:
        server.close()


@pytest.fixture
def path(folder: Path) -> Path:
    return folder / "proxy"


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "text") for text in texts]


def texts(conversation: Conversation) -> list[str]:
    return [record.payload.decode() for record in conversation.records]


def run(url: str, path: Path, scenario: Callable[[Proxy, str], Awaitable[None]]) -> None:
    async def proxied_scenario() -> None:
        async with asyncio.timeout(60), proxied(url, path) as (proxy, through):
            await scenario(proxy, through)

    asyncio.run(proxied_scenario())


OPERATIONS: dict[str, Call] = {
    "append": lambda backend: backend.append("k", records("b", "c"), turn_id="u"),
    "append to a new one": lambda backend: backend.append("new", records("b"), turn_id="u"),
    "append expecting": lambda backend: backend.append("k", records("b"), turn_id="u", expected_revision="x"),
    "append again": lambda backend: backend.append("k", records("a"), turn_id="t"),
    "append otherwise": lambda backend: backend.append("k", records("b"), turn_id="t"),
    "append 10,000": lambda backend: backend.append("k", records("b") * 10_000, turn_id="u"),
    "replace": lambda backend: backend.replace("k", records("b"), turn_id="u"),
    "replace with nothing": lambda backend: backend.replace("k", [], turn_id="u"),
    "clear": lambda backend: backend.clear("k"),
    "clear nothing": lambda backend: backend.clear("unknown"),
    "get": lambda backend: backend.get("k"),
    "get the newest": lambda backend: backend.get("k", limit=1),
    "get the head": lambda backend: backend.get("k", limit=0),
    "get what follows": lambda backend: backend.get("k", after=0, limit=1),
    "get nothing": lambda backend: backend.get("unknown"),
    "summaries": lambda backend: backend.summaries(),
    "summaries of a prefix": lambda backend: backend.summaries(prefix="k", limit=5, order="recent"),
    "newest summaries": lambda backend: backend.summaries(limit=5, order="recent"),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_is_one_round_trip(name: str, valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            await backend.append("k", records("a"), turn_id="t")
            proxy.count = 0
            with suppress(RevisionConflictError, TurnConflictError):
                await OPERATIONS[name](backend)
            assert proxy.count == 1

    run(valkey, path, scenario)


SIZES = [
    ([1], 1),
    ([4 * MIB], 1),
    ([MIB] * 4, 1),
    ([4 * MIB, 1], 2),
    ([MIB] * 8, 2),
    ([MIB] * 10, 3),
    ([16 * MIB], 1),
    ([1, 16 * MIB, 1], 2),
    ([3 * MIB] * 4, 2),
    ([4_096] * 1_024, 1),
    ([4_096] * 3_000, 3),
    ([10] * 10_000, 1),
    ([10] * 20_000, 2),
    ([0] * 10_001, 2),
    ([1] * 9_000 + [MIB] * 5, 2),
]


@pytest.mark.parametrize(("sizes", "trips"), SIZES)
def test_a_read_is_one_round_trip_for_each_started_4_mebibytes(
    sizes: list[int], trips: int, valkey: str, path: Path
) -> None:
    batch = [Record(bytes([number % 256]) * size, "text") for number, size in enumerate(sizes)]

    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            await backend.append("k", batch, turn_id="t")
            for cursors in ({}, {"after": 0}, {"before": 2**60}):
                proxy.count = 0
                found = await backend.get("k", **cursors)
                assert proxy.count == trips
                assert [record.payload for record in found.records] == [record.payload for record in batch]
                assert [record.position for record in found.records] == list(range(1, len(batch) + 1))

    run(valkey, path, scenario)


def test_a_conversation_that_grew_bit_by_bit_is_read_in_pages_too(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            for start in ("append", "replace"):
                payloads = [b"a", b"\0b\0", *(bytes([number]) * MIB for number in range(10))]
                await backend.replace("k", records("before"), turn_id=new_turn_id())
                await backend.replace("k", [], turn_id=new_turn_id())
                for number, payload in enumerate(payloads):
                    write = backend.replace if start == "replace" and number == 0 else backend.append
                    await write("k", [Record(payload, "text")], turn_id=new_turn_id())
                proxy.count = 0
                found = await backend.get("k")
                assert [record.payload for record in found.records] == payloads
                assert proxy.count == 3
                found = await backend.get("k", after=2)
                assert [record.payload for record in found.records] == payloads[2:]
                assert proxy.count == 3 + 3

    run(valkey, path, scenario)


def test_the_newest_records_of_a_large_conversation_are_one_round_trip(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            await backend.append("k", [Record(bytes(100_000), "text")] * 200, turn_id="t")
            await backend.append("k", records("a", "b"), turn_id="u")
            proxy.count = 0
            assert texts(await backend.get("k", limit=2)) == ["a", "b"]
            assert texts(await backend.get("k", after=200)) == ["a", "b"]
            assert len((await backend.get("k", before=201, limit=5)).records) == 5
            assert proxy.count == 3

    run(valkey, path, scenario)


def test_a_read_in_pages_ends_at_the_head_it_saw_first(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend, RedisOptions(url=valkey).open() as other:
            written = await other.append("k", [Record(bytes(3 * MIB), "text")] * 4, turn_id="t")

            async def append(number: int) -> None:
                await other.append("k", records("late"), turn_id=new_turn_id())

            proxy.count, proxy.before = 0, append
            found = await backend.get("k")
            assert texts(await other.get("k", after=4)) == ["late"] * 3
            assert len(found.records) == found.record_count == 5
            assert found.records == (await other.get("k", before=6)).records
            assert found.epoch == written.epoch
            assert proxy.count == 3

    run(valkey, path, scenario)


def test_a_read_in_pages_starts_again_when_records_are_taken_away(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend, RedisOptions(url=valkey).open() as other:
            for change in ("replace", "clear", "clear and start again"):
                await other.replace("k", [Record(b"old" * MIB, "text")] * 4, turn_id=new_turn_id())

                async def interfere(number: int, change: str = change) -> None:
                    if number != 2:
                        return
                    if change == "replace":
                        await other.replace("k", records("new"), turn_id=new_turn_id())
                    else:
                        await other.clear("k")
                    if change == "clear and start again":
                        await other.append("k", records("new"), turn_id=new_turn_id())

                proxy.count, proxy.before = 0, interfere
                found = await backend.get("k")
                assert texts(found) == ([] if change == "clear" else ["new"])
                assert proxy.count == 3

    run(valkey, path, scenario)


@pytest.mark.parametrize("name", ["append", "append to a new one", "append 10,000", "replace", "replace with nothing"])
@pytest.mark.parametrize("repeated", ["by the driver", "by the caller"])
def test_a_write_whose_reply_is_lost_is_stored_once(name: str, repeated: str, valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        client = Redis.from_url(url, retry=Retry(NoBackoff(), 3 if repeated == "by the driver" else 0))
        async with client, RedisBackend(client) as backend:
            await backend.append("k", records("a"), turn_id="t")
            proxy.lost = 1
            if repeated == "by the caller":
                with pytest.raises(BackendUnavailableError) as caught:
                    await OPERATIONS[name](backend)
                assert caught.value.retryable
            written = await OPERATIONS[name](backend)
            assert written.replayed  # type: ignore[attr-defined] # all of them are writes
            held = [await backend.get(key) for key in ("k", "new")]
            again = await OPERATIONS[name](backend)
            assert again == written
            assert [await backend.get(key) for key in ("k", "new")] == held
            expected = {
                "append": ["a", "b", "c"],
                "append to a new one": ["a", "b"],
                "append 10,000": ["a", *["b"] * 10_000],
                "replace": ["b"],
                "replace with nothing": [],
            }
            assert texts(held[0]) + texts(held[1]) == expected[name]

    run(valkey, path, scenario)


def test_writes_that_share_a_round_trip_whose_reply_is_lost_are_stored_once(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        client = Redis.from_url(url, retry=Retry(NoBackoff(), 3))
        async with client, RedisBackend(client) as backend:
            proxy.lost = 1
            keys = [f"k{number}" for number in range(8)]
            written = await asyncio.gather(*(backend.append(key, records("a"), turn_id="t") for key in keys))
            assert all(one.replayed for one in written)
            assert [texts(await backend.get(key)) for key in keys] == [["a"]] * 8

    run(valkey, path, scenario)


@pytest.mark.parametrize("name", ["get", "get the newest", "summaries", "newest summaries"])
def test_a_read_whose_reply_is_lost_is_asked_again(name: str, valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            await backend.append("k", records("a"), turn_id="t")
            wanted = await OPERATIONS[name](backend)
            proxy.lost = 1
            assert await OPERATIONS[name](backend) == wanted

    run(valkey, path, scenario)


def test_a_clear_whose_reply_is_lost_is_not_repeated_by_the_driver(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with (
            Redis.from_url(url, retry=Retry(NoBackoff(), 3)) as eager,
            RedisOptions(url=url).open() as owned,
            RedisBackend(eager) as borrowed,
            RedisOptions(url=valkey).open() as other,
        ):
            for backend in (owned, borrowed):
                await other.append("k", records("old"), turn_id="t")
                proxy.count, proxy.lost, proxy.held = 0, 1, asyncio.Event()
                proxy.arrived.clear()
                clearing = asyncio.create_task(backend.clear("k"))
                await proxy.arrived.wait()
                assert await other.get("k") == Conversation("k")
                await other.append("k", records("new"), turn_id="t")
                proxy.held.set()
                with pytest.raises(BackendUnavailableError):
                    await clearing
                assert proxy.count == 1
                assert texts(await other.get("k")) == ["new"]
                assert await backend.clear("k")

    run(valkey, path, scenario)


def test_a_clear_whose_reply_is_lost_is_not_repeated_by_the_client_of_a_cluster(
    cluster: str, cluster_nodes: list[str]
) -> None:
    ports = [urlsplit(url).port for url in cluster_nodes]
    node = cluster_nodes[key_slot(b"{chathistory:0}:heads") * 3 // 2**14]

    async def scenario() -> None:
        proxy = Proxy(node)
        server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
        through = server.sockets[0].getsockname()

        def remap(address: tuple[str, int]) -> tuple[str, int]:
            return through if address[1] == urlsplit(node).port else address

        client = RedisCluster("127.0.0.1", ports[0] or 0, address_remap=remap)
        async with (
            client,
            RedisBackend(client) as backend,
            RedisOptions(url=cluster, cluster=True).open() as other,
        ):
            await backend.append("k", records("old"), turn_id="t")
            proxy.count, proxy.lost = 0, 1
            assert (await backend.append("k", records("old"), turn_id="t")).replayed  # the client repeats an append
            assert proxy.count == 2
            proxy.count, proxy.lost, proxy.held = 0, 1, asyncio.Event()
            proxy.arrived.clear()
            clearing = asyncio.create_task(backend.clear("k"))
            await proxy.arrived.wait()
            await other.append("k", records("new"), turn_id="t")
            proxy.held.set()
            with pytest.raises(BackendUnavailableError):
                await clearing
            assert proxy.count == 1
            assert texts(await backend.get("k")) == ["new"]
            assert await backend.clear("k")
        server.close()

    asyncio.run(scenario())


def test_after_a_cancelled_call_the_next_one_gets_its_own_reply(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        pool = BlockingConnectionPool.from_url(url, max_connections=1)
        async with (
            Redis.from_pool(pool) as client,
            RedisBackend(client) as borrowed,
            RedisOptions(url=url, max_connections=1).open() as owned,
        ):
            for backend in (owned, borrowed):
                await backend.replace("k", records("a"), turn_id=new_turn_id())
                for name in ("get", "append", "summaries", "replace", "clear", "get"):
                    proxy.held = asyncio.Event()
                    proxy.arrived.clear()
                    task = asyncio.create_task(_as_coroutine(OPERATIONS[name](backend)))
                    await proxy.arrived.wait()
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                    proxy.held.set()
                    proxy.held = None
                    written = await backend.replace("other", records(name), turn_id=new_turn_id())
                    found = await backend.get("other")
                    assert (texts(found), found.revision) == ([name], written.revision)

    run(valkey, path, scenario)


async def _as_coroutine(call: Awaitable[object]) -> object:
    return await call


def test_a_reply_that_does_not_come_in_time_is_an_error_and_the_next_call_works(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url, max_connections=1, timeout=timedelta(milliseconds=200)).open() as backend:
            for name in ("append", "get", "clear"):
                proxy.held = asyncio.Event()
                with pytest.raises(BackendUnavailableError, match="in time") as caught:
                    await OPERATIONS[name](backend)
                assert caught.value.retryable
                proxy.held.set()
                proxy.held = None
                await backend.append("other", records(name), turn_id=name)
            assert texts(await backend.get("other")) == ["append", "get", "clear"]

    run(valkey, path, scenario)


def test_writes_that_share_a_round_trip_wait_no_longer_than_one(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url, max_connections=1, timeout=timedelta(milliseconds=200)).open() as backend:
            proxy.held = asyncio.Event()
            appends = [backend.append(f"{number}", records("a"), turn_id="t") for number in range(8)]
            outcomes = await asyncio.gather(*appends, return_exceptions=True)
            assert {type(outcome) for outcome in outcomes} == {BackendUnavailableError}
            assert all("in time" in str(outcome) for outcome in outcomes)
            proxy.held.set()
            proxy.held = None
            for number in range(8):
                await backend.append(f"{number}", records("a"), turn_id="t")
                assert texts(await backend.get(f"{number}")) == ["a"]

    run(valkey, path, scenario)


def test_each_call_waits_its_own_time_for_an_answer(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url, timeout=timedelta(milliseconds=400)).open() as backend:
            await asyncio.gather(backend.get("a"), backend.get("b"))  # so that there are two connections
            proxy.held = asyncio.Event()
            early = asyncio.create_task(_as_coroutine(backend.get("a")))
            await asyncio.sleep(0.2)
            late = asyncio.create_task(_as_coroutine(backend.get("b")))
            done, _ = await asyncio.wait([early, late], return_when=asyncio.FIRST_COMPLETED)
            assert done == {early}
            proxy.held.set()
            assert await late == Conversation("b")
            with pytest.raises(BackendUnavailableError, match="in time"):
                await early
            assert await backend.get("a") == Conversation("a")

    run(valkey, path, scenario)


def test_a_call_that_is_on_its_way_when_the_backend_closes_waits_no_longer_for_that(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with Redis.from_url(url, socket_timeout=None) as client:
            async with RedisBackend(client, timeout=timedelta(milliseconds=200)) as backend:
                await backend.get("k")
                proxy.held = asyncio.Event()
                waiting = asyncio.create_task(_as_coroutine(backend.get("k")))
                await asyncio.sleep(0)
            done, _ = await asyncio.wait([waiting], timeout=10)
            proxy.held.set()
            assert done == {waiting}
            with pytest.raises(BackendUnavailableError, match="in time"):
                await waiting

    run(valkey, path, scenario)


def test_a_closing_that_is_cancelled_leaves_no_connection_behind(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        opened = asyncio.Event()

        async def life() -> None:
            async with RedisOptions(url=url).open() as backend:
                proxy.held = asyncio.Event()
                proxy.arrived.clear()
                appends = [
                    asyncio.create_task(_as_coroutine(backend.append(key, records("a"), turn_id="t"))) for key in "ab"
                ]
                await proxy.arrived.wait()
                for task in appends:
                    task.cancel()
                await asyncio.wait(appends)
                opened.set()

        others = asyncio.all_tasks()
        living = asyncio.create_task(life())
        await opened.wait()
        await asyncio.sleep(0)
        living.cancel()
        await asyncio.wait([living])
        assert living.cancelled()
        assert proxy.held is not None
        proxy.held.set()
        await asyncio.wait(asyncio.all_tasks() - others, timeout=10)  # the proxy's, for each connection that it has
        assert asyncio.all_tasks() == others

    run(valkey, path, scenario)


def test_an_error_that_the_client_retries_is_retried(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async def promote(number: int) -> None:
            if number == proxy.count == 2:
                proxy.answer = b""

        async with (
            Redis.from_url(url, retry=Retry(NoBackoff(), 1), retry_on_error=[ReadOnlyError]) as client,
            RedisBackend(client) as backend,
        ):
            for name in ("append", "get"):
                proxy.count, proxy.before, proxy.answer = 0, promote, b"-READONLY of a replica\r\n"
                await OPERATIONS[name](backend)
                assert proxy.count == 2
            proxy.count, proxy.before, proxy.answer = 0, None, b"-READONLY of a replica\r\n"
            for name in ("append", "clear"):
                with pytest.raises(BackendUnavailableError, match="replica"):
                    await OPERATIONS[name](backend)
            assert proxy.count == 2 + 1

    run(valkey, path, scenario)


def test_a_task_that_goes_on_after_a_cancellation_is_told_that_no_answer_came_in_time(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url, timeout=timedelta(milliseconds=100)).open() as backend:
            begun, never, told = asyncio.Event(), asyncio.Event(), asyncio.Event()

            async def save_at_last() -> None:
                begun.set()
                try:
                    await never.wait()
                finally:
                    with pytest.raises(BackendUnavailableError, match="in time"):
                        await backend.append("k", records("a"), turn_id="t")
                    told.set()

            proxy.held = asyncio.Event()
            task = asyncio.create_task(save_at_last())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert told.is_set()

    run(valkey, path, scenario)


ANSWERS = [
    ("LOADING Redis is loading the dataset in memory", BackendUnavailableError, "loading"),
    (
        "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to",
        BackendUnavailableError,
        "disk",
    ),
    ("BUSY Redis is busy running a script.", BackendUnavailableError, "busy"),
    ("CLUSTERDOWN The cluster is down", BackendUnavailableError, "down"),
    ("MASTERDOWN Link with MASTER is down", BackendUnavailableError, "primary"),
    ("READONLY You can't write against a read only replica.", BackendUnavailableError, "replica"),
    ("NOREPLICAS Not enough good replicas to write.", BackendUnavailableError, "replicas"),
    ("TRYAGAIN Multiple keys request during rehashing of slot", BackendUnavailableError, "moving"),
    ("ERR max number of clients reached", BackendUnavailableError, "clients"),
    (
        "ERR Error running script (call to f_0): @user_script:9: -OOM command not allowed",
        BackendUnavailableError,
        "memory",
    ),
    ("ERR unknown command 'EVALSHA', with args beginning with: 'the-content'", BackendError, "no known code"),
    ("ERR the-content", BackendError, "no known code"),
]


@pytest.mark.parametrize(("answer", "error", "words"), ANSWERS)
def test_an_error_of_the_server_is_ours_says_why_and_shows_no_content(
    answer: str, error: type[ChatHistoryError], words: str, valkey: str, path: Path
) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            for call in (
                backend.append("k", records("the-content"), turn_id="t"),
                backend.get("k"),
                backend.clear("k"),
                backend.summaries(),
            ):
                proxy.answer = f"-{answer}\r\n".encode()
                with pytest.raises(error, match=words) as caught:
                    await call
                assert "the-content" not in str(caught.value)
                assert caught.value.__cause__ is None
                assert caught.value.__suppress_context__
                proxy.answer = b""
                await backend.append("other", records("a"), turn_id=new_turn_id())
            assert await backend.get("k") == Conversation("k")

    run(valkey, path, scenario)


@pytest.mark.parametrize(("times", "size"), [(3, MIB), (300, 10 * 1024)], ids=["large", "small"])
def test_nothing_of_a_write_that_was_refused_is_kept(times: int, size: int, valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            proxy.answer = b"-OOM command not allowed\r\n"
            gc.collect()
            gc.disable()
            tracemalloc.start()
            try:
                for number in range(times):
                    with suppress(BackendUnavailableError):
                        await backend.append("k", [Record(bytes(size), "text")], turn_id=f"t{number}")
                kept, _ = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
                gc.enable()
            assert kept < MIB

    run(valkey, path, scenario)


def test_a_reply_that_is_none_is_an_error_and_shows_no_content(valkey: str, path: Path) -> None:
    async def scenario(proxy: Proxy, url: str) -> None:
        async with RedisOptions(url=url).open() as backend:
            proxy.answer = b"HTTP/1.1 400 the-content\r\n\r\n"
            with pytest.raises(BackendError) as caught:
                await backend.append("k", records("a"), turn_id="t")
            assert "the-content" not in str(caught.value)
            proxy.answer = b""
            assert not (await backend.append("k", records("a"), turn_id="t")).replayed

    run(valkey, path, scenario)
