"""The proxy counts what passes it, and breaks what it is told to break."""

import asyncio
import tempfile
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from chathistory_core.testing.proxy import Address, Proxy, Traffic

ANSWER = b"a" * 100


class Server:
    """Answers each line with 100 bytes, and keeps what it got."""

    def __init__(self) -> None:
        self.got = b""
        self._serving: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._serving.add(asyncio.current_task())
        while data := await reader.read(2**16):
            self.got += data
            for _ in range(data.count(b"\n")):
                writer.write(ANSWER)
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    async def served(self) -> None:
        """Wait until every client has left."""
        await asyncio.gather(*(task for task in self._serving if task is not None))


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[tuple[StreamReader, StreamWriter]]:
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*address)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def run(scenario: Callable[[Server, Proxy], Awaitable[None]], *, unix: bool = False) -> None:
    async def opened() -> None:
        server = Server()
        with tempfile.TemporaryDirectory(prefix="chf") as folder:
            address: Address = ""
            if unix:
                address = path = str(Path(folder, "s"))
                listener = await asyncio.start_unix_server(server.serve, path)
            else:
                listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
                address = listener.sockets[0].getsockname()
            async with asyncio.timeout(30), listener:
                with Proxy(address) as proxy:
                    await scenario(server, proxy)
                await server.served()

    asyncio.run(opened())


async def asked(reader: StreamReader, writer: StreamWriter, request: bytes = b"ask\n") -> bytes:
    writer.write(request)
    return await reader.readexactly(len(ANSWER))


@pytest.mark.parametrize("unix", [False, True])
def test_what_passes_is_counted(*, unix: bool) -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            for _ in range(3):
                assert await asked(reader, writer) == ANSWER
            writer.write(b"two\nof them\n")
            await reader.readexactly(200)
        assert proxy.traffic == Traffic(connections=1, round_trips=4, sent=3 * 4 + 12, received=500)
        before = proxy.traffic
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
        assert proxy.traffic.since(before) == Traffic(1, 1, 4, 100)
        assert isinstance(proxy.address, str) == unix

    run(scenario, unix=unix)


def test_a_lost_reply_is_lost_once_the_server_has_done_its_work() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
            proxy.break_next("reply")
            writer.write(b"lost\n")
            assert await reader.read() == b""
        assert server.got == b"ask\nlost\n"
        assert proxy.mend()
        async with connected(proxy.address) as (reader, writer):
            assert await asked(reader, writer) == ANSWER

    run(scenario)


def test_a_reply_is_cut_where_it_was_said() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
            proxy.break_next("reply", after=7)
            writer.write(b"cut\n")
            assert await reader.read() == ANSWER[:7]

    run(scenario)


def test_of_a_request_that_is_cut_the_server_gets_the_beginning() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
            proxy.break_next("request", after=2)
            writer.write(b"cut\n")
            assert await reader.read() == b""
            async with connected(proxy.address) as (other_reader, other_writer):
                await asked(other_reader, other_writer, b"next\n")
        assert server.got == b"ask\ncunext\n"

    run(scenario)


def test_a_break_behind_the_end_of_a_request_does_not_happen() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            proxy.break_next("request", after=1_000)
            assert await asked(reader, writer) == ANSWER
            assert not proxy.mend()
            assert await asked(reader, writer, b"b" * 2_000 + b"\n") == ANSWER

    run(scenario)


def test_a_reset_is_seen_as_one() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
            proxy.cut(reset=True)
            with pytest.raises(ConnectionResetError):
                await reader.read()

    run(scenario)


def test_held_replies_wait_and_come_in_the_end() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            with proxy.held():
                asking = asyncio.create_task(asked(reader, writer))
                await proxy.held_reply()
                assert server.got == b"ask\n"
                assert not asking.done()
            assert await asking == ANSWER

    run(scenario)


def test_while_the_server_is_down_every_connection_ends() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer):
            await asked(reader, writer)
            with proxy.down():
                assert await reader.read() == b""
                async with connected(proxy.address) as (new_reader, _):
                    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                        await new_reader.readexactly(1)
        async with connected(proxy.address) as (reader, writer):
            assert await asked(reader, writer) == ANSWER
        assert server.got == b"ask\nask\n"

    run(scenario)


def test_a_server_that_stays_down_after_a_break_is_back_when_it_was_mended() -> None:
    async def scenario(server: Server, proxy: Proxy) -> None:
        async with connected(proxy.address) as (reader, writer), connected(proxy.address) as (other, _):
            await asked(reader, writer)
            proxy.break_next("reply", stay_down=True)
            writer.write(b"lost\n")
            assert (await reader.read(), await other.read()) == (b"", b"")
            async with connected(proxy.address) as (new_reader, _):
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await new_reader.readexactly(1)
            assert proxy.mend()
        async with connected(proxy.address) as (reader, writer):
            assert await asked(reader, writer) == ANSWER

    run(scenario)


def test_a_server_that_is_not_there_ends_the_connection() -> None:
    async def scenario(server: Server, _: Proxy) -> None:
        with Proxy("/nobody/here") as proxy:
            async with connected(proxy.address) as (reader, _writer):
                with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                    await reader.readexactly(1)
            assert proxy.traffic == Traffic()

    run(scenario)
