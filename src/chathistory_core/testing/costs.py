"""What each operation costs at growing lengths: round trips, hops to threads, commits, bytes, and time."""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from itertools import count
from typing import NamedTuple, TypeAlias

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import RevisionConflictError
from chathistory_core.records import Record, new_turn_id
from chathistory_core.testing.meters import Meters, Reading
from chathistory_core.testing.proxy import Proxy
from chathistory_core.testing.scenario import BackendFactory

LENGTHS = (10, 1_000, 10_000)
"""How many records a conversation has that is measured."""

PAYLOAD = bytes(range(32, 127)) * 2
"""Of each record: 190 bytes, about a short message."""

NEIGHBOURS = 30
"""Conversations that stand beside the measured one, of one record each."""

_SAMPLES = 5
_FEW_SAMPLES = 3
"""Of what needs the conversation filled again each time."""

_LONG = 100_000
"""From here on one sample has to do."""

Call: TypeAlias = Callable[[], Awaitable[object]]


class Cost(NamedTuple):
    """What one operation costs on a conversation of this length; None is what nothing could count."""

    operation: str
    length: int
    round_trips: int | None
    """To the server, the most of all samples."""
    hops: int
    """Answers that came from another thread, the most of all samples."""
    commits: int | None
    """Of SQLite databases, the most of all samples."""
    read: int | None
    """Bytes from the server, or from files; the median."""
    written: int | None
    """Bytes to the server, or to files; the median."""
    seconds: float
    """The median: for comparison on one machine alone."""


def measure(
    make_backend: BackendFactory, *, lengths: Sequence[int] = LENGTHS, proxy: Proxy | None = None
) -> Sequence[Cost]:
    """The costs of every operation at every length, in a loop of its own; the store must be empty.

    `proxy` is what the backends reach their server through: it counts round trips and bytes. Without one, bytes are
    those of the process's files, which Linux counts, so let nothing else in the process read or write meanwhile.
    """
    with Meters(proxy) as meters, asyncio.Runner(loop_factory=meters.loop) as runner:
        return runner.run(_measure(make_backend, lengths, meters, on_network=proxy is not None))


def table(costs: Sequence[Cost]) -> str:
    """The costs as lines of text in columns."""
    lines = [_HEADINGS, *(_cells(cost, costs) for cost in costs)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
        )
        for line in lines
    )


def markdown(costs: Sequence[Cost]) -> str:
    """The costs as a table in Markdown."""
    ruler = (":--", *["--:"] * (len(_HEADINGS) - 1))
    return "\n".join(f"| {' | '.join(line)} |" for line in (_HEADINGS, ruler, *(_cells(cost, costs) for cost in costs)))


_HEADINGS = ("operation", "records", "trips", "hops", "commits", "read", "written", "ms", "ratio")


def _cells(cost: Cost, costs: Sequence[Cost]) -> tuple[str, ...]:
    first = next(each for each in costs if each.operation == cost.operation)
    counted = (cost.length, cost.round_trips, cost.hops, cost.commits, cost.read, cost.written)
    return (
        cost.operation,
        *("-" if value is None else f"{value:,}" for value in counted),
        f"{cost.seconds * 1_000:.2f}",
        f"{cost.seconds / first.seconds:.1f}",
    )


class _Bench:
    """A backend with a conversation of each length, and what each operation on it cost."""

    def __init__(self, backend: ChatHistoryBackend, meters: Meters, *, on_network: bool) -> None:
        self.costs: list[Cost] = []
        self._backend = backend
        self._meters = meters
        self._on_network = on_network
        self._turns = (f"turn {number}" for number in count(1))

    async def neighbours(self) -> None:
        for number in range(NEIGHBOURS):
            await self._backend.append(f"neighbour {number}", _records(1), turn_id=new_turn_id())

    async def measure(self, length: int) -> None:
        """Every operation at this length."""
        backend, key = self._backend, f"of {length}"
        few, many = (1, 1) if length >= _LONG else (_FEW_SAMPLES, _SAMPLES)
        await self._fill(key, length)
        last = (await backend.get(key, limit=1)).records[-1].position

        async def conflict() -> None:
            with suppress(RevisionConflictError):
                await backend.append(key, _records(1), turn_id=next(self._turns), expected_revision="another")

        async def replay() -> None:
            await backend.append(key, _records(1), turn_id="replayed")

        async def refill() -> None:
            await backend.clear("changed")
            await self._fill("changed", length)

        async def nothing() -> None:
            pass

        calls: list[tuple[str, Call]] = [
            ("get newest 20", lambda: backend.get(key, limit=20)),
            ("get what follows", lambda: backend.get(key, after=last - 1)),
            ("get all", lambda: backend.get(key)),
            ("append 1", lambda: backend.append(key, _records(1), turn_id=next(self._turns))),
            ("append 100", lambda: backend.append(key, _records(100), turn_id=next(self._turns))),
            ("append, replayed", replay),
            ("append, conflict", conflict),
            ("summaries 20", lambda: backend.summaries(limit=20)),
            ("summaries 20, recent", lambda: backend.summaries(limit=20, order="recent")),
        ]
        for name, call in calls:
            await call()  # what only a first call does: connections, imports, the turn to be replayed
            await self._take(name, length, call, nothing, many)
        changes: list[tuple[str, Call]] = [
            ("replace by 20", lambda: backend.replace("changed", _records(20), turn_id=next(self._turns))),
            ("clear", lambda: backend.clear("changed")),
        ]
        for name, call in changes:
            await self._take(name, length, call, refill, few)
        await backend.clear("changed")
        await backend.clear(key)

    async def _take(self, name: str, length: int, call: Call, before: Call, samples: int) -> None:
        readings: list[Reading] = []
        seconds: list[float] = []
        for _ in range(samples):
            await before()
            start, begin = self._meters.read(), time.perf_counter()
            await call()
            seconds.append(time.perf_counter() - begin)
            readings.append(self._meters.read().since(start))
        counts_bytes = self._meters.counts_bytes
        self.costs.append(
            Cost(
                name,
                length,
                max(each.round_trips for each in readings) if self._on_network else None,
                max(each.hops for each in readings),
                max(each.commits for each in readings) if self._meters.counts_commits else None,
                int(statistics.median(each.read for each in readings)) if counts_bytes else None,
                int(statistics.median(each.written for each in readings)) if counts_bytes else None,
                statistics.median(seconds),
            )
        )

    async def _fill(self, key: str, length: int) -> None:
        most = min(self._backend.limits.max_records, self._backend.limits.max_bytes // len(PAYLOAD), 50_000)
        for size in _sizes(length, most):
            await self._backend.append(key, _records(size), turn_id=next(self._turns))


async def _measure(
    make_backend: BackendFactory, lengths: Sequence[int], meters: Meters, *, on_network: bool
) -> Sequence[Cost]:
    async with make_backend() as backend:
        bench = _Bench(backend, meters, on_network=on_network)
        await bench.neighbours()
        for length in lengths:
            await bench.measure(length)
    names = list(dict.fromkeys(cost.operation for cost in bench.costs))
    return sorted(bench.costs, key=lambda cost: names.index(cost.operation))


def _sizes(length: int, most: int) -> Iterator[int]:
    while length > 0:
        yield min(length, most)
        length -= most


def _records(size: int) -> list[Record]:
    return [Record(PAYLOAD, "text")] * size
