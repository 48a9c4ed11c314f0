"""What the service costs beside the least that an HTTP server of the same kind can do.

Beside `chathistory serve` stands a Starlette application which answers the same bytes to a GET without looking anything
up, and takes the body of a POST without reading it; both under uvicorn, uvloop and httptools, each in a process of its
own. They take turns within one run, so that what else the machine does meets both. Measured are how long a client waits
on one connection, how many requests a second eight connections get answered, and the processor time of the server for
each of those: it is the steadiest of the three, for the client shares the machine.

    python benchmarks/http_service.py [--rounds N] [--json FILE]
"""

import argparse
import asyncio
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

MESSAGES = 100
CONNECTIONS = 8
TARGETS = {"GET of 100 messages": 2.0, "POST of one turn": 2.5}
"""How many times the least the service may cost, over memory."""

TEXT = "The quick brown fox jumps over the lazy dog, and says so in about as many words as people use. " * 3
TURN: Sequence[Mapping[str, object]] = (
    {"role": "user", "contents": [{"$type": "text", "text": TEXT}], "messageId": "0123456789abcdef"},
    {
        "role": "assistant",
        "contents": [
            {
                "$type": "functionCall",
                "name": "get_time",
                "arguments": {"zone": "Asia/Tokyo", "format": "iso"},
                "informationalOnly": True,
                "callId": "call_0123456789",
            }
        ],
        "createdAt": "2026-11-30T18:39:22+00:00",
        "messageId": "chatcmpl-0123456789",
    },
    {
        "role": "tool",
        "contents": [{"$type": "functionResult", "result": "2026-11-30T18:39:22", "callId": "call_0123456789"}],
    },
    {
        "role": "assistant",
        "contents": [{"$type": "text", "text": TEXT}],
        "createdAt": "2026-11-30T18:39:23+00:00",
        "messageId": "chatcmpl-0123456789",
    },
)
BODY = json.dumps({"messages": TURN}, separators=(",", ":")).encode()
LISTED = json.dumps([*TURN] * (MESSAGES // len(TURN)), separators=(",", ":")).encode()


def least() -> None:
    """Serve what does nothing, on a free port."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    async def get(_: Request) -> Response:
        return Response(LISTED, media_type="application/json")

    async def post(request: Request) -> Response:
        await request.body()
        return Response(status_code=202)

    routes = [Route("/chat-history/{key:path}", get), Route("/chat-history/{key:path}", post, methods=["POST"])]
    config = uvicorn.Config(Starlette(routes=routes), port=0, access_log=False, loop="uvloop", http="httptools")
    listener = config.bind_socket()
    print(f"answers on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run([listener])


class Server(NamedTuple):
    """A process that answers."""

    name: str
    pid: int
    port: int

    def processor(self) -> float:
        """Seconds of the processor that it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def started(name: str, *command: str) -> Iterator[Server]:
    """The server that the command runs; it prints its address first."""
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            found = re.search(rb"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            assert found is not None
            yield Server(name, process.pid, int(found[1]))
        finally:
            process.terminate()


class Client:
    """One connection; the least that a client can do."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> None:
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 20"), head
        length = re.search(rb"content-length: (\d+)", head)
        if length is not None:
            await self._reader.readexactly(int(length[1]))


@asynccontextmanager
async def connected(server: Server, count: int) -> AsyncIterator[list[Client]]:
    opened = [await asyncio.open_connection("127.0.0.1", server.port, limit=2**20) for _ in range(count)]
    try:
        yield [Client(*each) for each in opened]
    finally:
        for _, writer in opened:
            writer.close()


def request(method: str, key: str, body: bytes | None = None) -> bytes:
    about = b"" if body is None else b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    return b"%b /chat-history/%b HTTP/1.1\r\nHost: localhost\r\n%b\r\n%b" % (
        method.encode(),
        key.encode(),
        about,
        body or b"",
    )


class Sample(NamedTuple):
    """Of one server in one round."""

    wait: float
    """Median seconds that a client waits, alone."""
    rate: float
    """Requests a second, of eight clients at once."""
    work: float
    """Seconds of the server's processor for each of those."""


Ask = Callable[[Client, int], Awaitable[None]]


async def sample(server: Server, ask: Ask, times: int) -> Sample:
    async with connected(server, 1) as (client,):
        waits = []
        for number in range(times):
            start = time.perf_counter()
            await ask(client, number)
            waits.append(time.perf_counter() - start)
    async with connected(server, CONNECTIONS) as clients:

        async def several(client: Client, first: int) -> None:
            for number in range(times):
                await ask(client, first + number)

        before, start = server.processor(), time.perf_counter()
        await asyncio.gather(*(several(client, number * times) for number, client in enumerate(clients)))
        spent, work = time.perf_counter() - start, server.processor() - before
    count = CONNECTIONS * times
    return Sample(median(waits), count / spent, work / count)


async def get(client: Client, _: int) -> None:
    await client.ask(request("GET", "read"))


async def post(client: Client, number: int) -> None:
    await client.ask(request("POST", f"written/{number % 16}", BODY))


OPERATIONS: Mapping[str, Ask] = {"GET of 100 messages": get, "POST of one turn": post}


async def measure(servers: Sequence[Server], rounds: int, times: int) -> dict[str, dict[str, list[Sample]]]:
    """By operation and server, a sample of each round."""
    for server in servers:
        async with connected(server, 1) as (client,):
            for _ in range(MESSAGES // len(TURN)):
                await client.ask(request("POST", "read", BODY))
    found: dict[str, dict[str, list[Sample]]] = {name: {server.name: [] for server in servers} for name in OPERATIONS}
    for number in range(rounds + 1):
        for name, ask in OPERATIONS.items():
            for server in servers:
                one = await sample(server, ask, times)
                if number:  # the first round only warms up
                    found[name][server.name].append(one)
    return found


def spread(values: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the quarters beside it."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return middle, low, high


def report(found: Mapping[str, Mapping[str, Sequence[Sample]]]) -> dict[str, object]:
    """Print what was found; the same for programs."""
    told: dict[str, object] = {}
    for name, by_server in found.items():
        print(f"\n{name}{'':20}us waited    requests/s  us processor     ratio of waits  of rates  of processor")
        base = by_server["least"]
        for server, samples in by_server.items():
            waits, rates, works = ([getattr(one, field) for one in samples] for field in Sample._fields)
            ratios = [
                spread([one.wait / least.wait for one, least in zip(samples, base, strict=True)]),
                spread([least.rate / one.rate for one, least in zip(samples, base, strict=True)]),
                spread([one.work / least.work for one, least in zip(samples, base, strict=True)]),
            ]
            told[f"{name}, {server}"] = {
                "wait_us": [value * 1e6 for value in spread(waits)],
                "requests_per_second": spread(rates),
                "processor_us": [value * 1e6 for value in spread(works)],
                "ratio": dict(zip(("wait", "rate", "processor"), ratios, strict=True)),
            }
            figures = f"{median(waits) * 1e6:14.0f}{median(rates):14.0f}{median(works) * 1e6:14.0f}"
            parts = "".join(f"   {middle:5.2f} ({low:.2f}-{high:.2f})" for middle, low, high in ratios)
            print(f"  {server:24}{figures}{parts}")
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--least", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--times", type=int, default=150)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if arguments.least:
        least()
        return
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        serve = ("-m", "chathistory_core.cli", "serve", "--port", "0", "--log-level", "warning", "--url")
        servers = [
            stack.enter_context(started("least", __file__, "--least")),
            stack.enter_context(started("memory", *serve, "memory://")),
            stack.enter_context(started("sqlite", *serve, f"sqlite:///{folder}/history.db")),
            stack.enter_context(started("sqlite, NORMAL", *serve, f"sqlite:///{folder}/n.db?synchronous=NORMAL")),
        ]
        told = report(asyncio.run(measure(servers, arguments.rounds, arguments.times)))
    if arguments.json is not None:
        about = {"python": platform.python_version(), "machine": platform.machine(), "cores": os.cpu_count()}
        arguments.json.write_text(json.dumps({"about": about, "results": told}, indent=2), "utf-8")


if __name__ == "__main__":
    main()
