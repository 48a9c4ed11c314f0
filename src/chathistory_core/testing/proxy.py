"""A proxy between a backend and its server: it counts what passes, and makes trouble where it is told to.

It knows no protocol. A request begins when the client speaks after the server did, or for the first time; a reply when
the server speaks after the client did. What is sent before an answer came is one request: one round trip.
"""

import asyncio
import socket
import struct
import tempfile
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeAlias, TypeVar

Address: TypeAlias = str | tuple[str, int]
"""The path of a Unix socket, or host and port."""

Way: TypeAlias = Literal["request", "reply"]

T = TypeVar("T")

_PATIENCE = 30
"""Seconds after which waiting for the proxy's own thread, or for a reply, is given up."""


class Traffic(NamedTuple):
    """What has passed the proxy so far."""

    connections: int = 0
    round_trips: int = 0
    sent: int = 0
    """Bytes from the client."""
    received: int = 0
    """Bytes from the server."""

    def since(self, before: "Traffic") -> "Traffic":
        """What has passed after `before`."""
        return Traffic(*(now - then for now, then in zip(self, before, strict=True)))


class Break(NamedTuple):
    """The connection that carries the next request or reply goes down once so many bytes of it have passed."""

    way: Way
    after: int
    reset: bool
    stay_down: bool


class Proxy:
    """Listens on an address of its own, with `with`, and passes on to the server; it runs on a thread of its own.

    Its methods may be called from any thread, from inside an event loop too.
    """

    def __init__(self, server: Address) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._listener: asyncio.Server | None = None
        self._address: Address = ""
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._traffic = Traffic()
        self._break: Break | None = None
        self._gate = asyncio.Event()
        """What replies wait for; each time they are held back, another one."""
        self._waiting = threading.Event()
        """A reply is held back."""
        self._is_down = False

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def address(self) -> Address:
        """Where a client has to connect: a Unix socket where the server's is one."""
        return self._address

    @property
    def traffic(self) -> Traffic:
        """What has passed so far."""
        return self._run(self._count())

    def break_next(self, way: Way, *, after: int = 0, reset: bool = False, stay_down: bool = False) -> None:
        """Break the connection of the next request or reply after this many bytes of it.

        A reply that is broken after 0 bytes is a lost reply: the server has done its work, and nobody is told. With
        `reset` the client sees the connection reset, not closed; with `stay_down` the server is gone from then on,
        until `mend`, so that no driver repeats the call by itself unseen.
        """
        self._run(self._set_break(Break(way, after, reset, stay_down)))

    def mend(self) -> bool:
        """Let the server be there again, and break nothing more; whether the last break has happened."""
        return self._run(self._mend())

    def cut(self, *, reset: bool = False) -> None:
        """Break every connection there is."""
        self._run(self._cut(reset=reset))

    @contextmanager
    def down(self) -> Iterator[None]:
        """The server is gone while the block lasts: connections are broken, and new ones closed at once."""
        self._run(self._set_down(down=True))
        try:
            yield
        finally:
            self._run(self._set_down(down=False))

    @contextmanager
    def held(self) -> Iterator[None]:
        """Replies wait until the block is left; requests pass."""
        self._run(self._hold())
        try:
            yield
        finally:
            self._run(self._let_go())

    async def held_reply(self) -> None:
        """Wait, inside `held`, until a reply is held back: the server has done its work."""
        if not await asyncio.to_thread(self._waiting.wait, _PATIENCE):
            raise TimeoutError(f"no reply came within {_PATIENCE} seconds")

    def _run(self, coroutine: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE)

    async def _listen(self) -> None:
        self._gate.set()
        if isinstance(self._server, str):
            self._folder = tempfile.TemporaryDirectory(prefix="chp")  # short: the path of a socket must be
            self._address = str(Path(self._folder.name) / "socket")
            self._listener = await asyncio.start_unix_server(self._connected, self._address)
        else:
            self._listener = await asyncio.start_server(self._connected, "127.0.0.1", 0)
            host, port = self._listener.sockets[0].getsockname()[:2]
            self._address = (host, port)

    async def _stop(self) -> None:
        if self._listener is not None:
            self._listener.close()
        self._gate.set()
        await self._cut(reset=False)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _count(self) -> Traffic:
        return self._traffic

    async def _set_break(self, wanted: Break) -> None:
        self._break = wanted

    async def _mend(self) -> bool:
        has_happened, self._break = self._break is None, None
        self._is_down = False
        return has_happened

    async def _hold(self) -> None:
        self._waiting.clear()
        self._gate = asyncio.Event()

    async def _let_go(self) -> None:
        self._gate.set()

    async def _set_down(self, *, down: bool) -> None:
        self._is_down = down
        if down:
            await self._cut(reset=False)

    async def _cut(self, *, reset: bool) -> None:
        for link in list(self._links):
            link.cut(reset=reset)

    async def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if self._is_down:
            await _close(writer)
            return
        try:
            if isinstance(self._server, str):
                server_reader, server_writer = await asyncio.open_unix_connection(self._server)
            else:
                server_reader, server_writer = await asyncio.open_connection(*self._server)
        except OSError:
            await _close(writer)
            return
        self._add(connections=1)
        link = _Link(writer, server_writer)
        self._links.add(link)
        requests = asyncio.create_task(self._pass(link, "request", reader, server_writer))
        replies = asyncio.create_task(self._pass(link, "reply", server_reader, writer))
        try:
            await asyncio.wait({requests, replies}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            link.cut(reset=False)
            for pump in requests, replies:
                pump.cancel()
            await asyncio.wait({requests, replies})
            self._links.discard(link)
            await _close(writer)
            await _close(server_writer)

    async def _pass(self, link: "_Link", way: Way, reader: StreamReader, writer: StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(2**16):
                link.turn(way)
                if way == "request":
                    self._add(round_trips=link.passed == 0, sent=len(data))
                else:
                    self._add(received=len(data))
                    if not self._gate.is_set():
                        self._waiting.set()
                        await self._gate.wait()
                wanted = self._break
                if wanted is not None and wanted.way == way and link.passed + len(data) >= wanted.after:
                    self._break = None
                    self._is_down |= wanted.stay_down  # at once: the client may have all it waits for before the cut
                    writer.write(data[: max(0, wanted.after - link.passed)])
                    with suppress(TimeoutError):
                        await asyncio.wait_for(writer.drain(), 1)
                    link.cut(reset=wanted.reset)
                    if self._is_down:
                        await self._cut(reset=False)
                    return
                link.passed += len(data)
                writer.write(data)
                await writer.drain()

    def _add(self, *, connections: int = 0, round_trips: int = 0, sent: int = 0, received: int = 0) -> None:
        now = self._traffic
        self._traffic = Traffic(
            now.connections + connections, now.round_trips + round_trips, now.sent + sent, now.received + received
        )


async def _close(writer: StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class _Link:
    """A client's connection and the one that was made to the server for it."""

    def __init__(self, client: StreamWriter, server: StreamWriter) -> None:
        self._client = client
        self._server = server
        self._way: Way = "reply"
        self.passed = 0
        """Bytes of what is passing now."""

    def turn(self, way: Way) -> None:
        if way != self._way:
            self._way, self.passed = way, 0

    def cut(self, *, reset: bool) -> None:
        if reset:
            client = self._client.get_extra_info("socket")
            if client is not None and client.family != getattr(socket, "AF_UNIX", None):
                with suppress(OSError):  # it is closed already
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._client.transport.abort()
        self._client.close()
        self._server.close()
