"""What storing a turn costs."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from statistics import median
from typing import TypeVar

from redis.asyncio import Redis

from benchmarks.floors import by_hand
from benchmarks.floors.bench import STORES, Bench, Store, timed
from benchmarks.floors.row import Row
from benchmarks.rounds import Sample
from chathistory_core import ChatHistoryBackend, ChatMessage, Record, new_turn_id

T = TypeVar("T")

TASKS = 32

Append = Callable[[str, T], Awaitable[object]]
"""Puts what was prepared, messages or records, into the conversation of this key."""


def sample(bench: Bench, append: Append[T], prepare: Callable[[], Awaitable[T]], *, tasks: int) -> Sample:
    """Appends of as many tasks at once, each to a conversation of its own: seconds an append."""
    each = bench.sizes.times if tasks == 1 else max(1, bench.sizes.times // 4)

    async def write(key: str, work: Sequence[T]) -> None:
        for turn in work:
            await append(key, turn)

    async def measured() -> float:
        work = [[await prepare() for _ in range(each)] for _ in range(tasks)]
        seconds = await timed([lambda: asyncio.gather(*(write(f"k{task}", its) for task, its in enumerate(work)))])
        return seconds / tasks / each

    return measured


def ours(bench: Bench, backend: ChatHistoryBackend) -> Append[Sequence[ChatMessage]]:
    async def append(key: str, messages: Sequence[ChatMessage]) -> None:
        records = await bench.codec.encode(key, messages)
        await backend.append(key, records, turn_id=new_turn_id())

    return append


def ours_of_records(backend: ChatHistoryBackend) -> Append[Sequence[Record]]:
    async def append(key: str, records: Sequence[Record]) -> None:
        await backend.append(key, records, turn_id=new_turn_id())

    return append


async def _messages(bench: Bench) -> Sequence[ChatMessage]:
    return bench.turn()


async def sqlite(bench: Bench, *, store: Store, tasks: int) -> tuple[Sample, Sample]:
    """Encoding and backend, and encoding and the same rows by hand: one connection, one hop to a thread an append."""
    backend = await bench.backend(store)
    await bench.backend(store, "by hand")  # makes the tables
    connection = await bench.enter(by_hand.connected(bench.path(store, "by hand"), store.removeprefix("SQLite ")))
    free = asyncio.Lock()

    async def append(key: str, messages: Sequence[ChatMessage]) -> None:
        records = await bench.codec.encode(key, messages)
        async with free:
            await asyncio.to_thread(by_hand.append, connection, key, records)

    prepare = partial(_messages, bench)
    return (
        sample(bench, ours(bench, backend), prepare, tasks=tasks),
        sample(bench, append, prepare, tasks=tasks),
    )


async def sqlite_in_thread(bench: Bench) -> tuple[Sample, Sample]:
    """Records that are encoded already: through the backend, and by hand on the loop, which stands still meanwhile."""
    backend = await bench.backend("SQLite FULL")
    await bench.backend("SQLite FULL", "by hand")
    connection = await bench.enter(by_hand.connected(bench.path("SQLite FULL", "by hand"), "FULL"))

    async def append(key: str, records: Sequence[Record]) -> None:
        by_hand.append(connection, key, records)

    return (
        sample(bench, ours_of_records(backend), bench.encoded, tasks=TASKS),
        sample(bench, append, bench.encoded, tasks=TASKS),
    )


async def redis(bench: Bench, *, tasks: int) -> tuple[Sample, Sample]:
    """Records that are encoded already: through the backend, and their payloads pushed behind a list."""
    backend = await bench.backend("Redis")
    client = await bench.enter(Redis.from_url(bench.redis_url()))

    async def append(key: str, records: Sequence[Record]) -> None:
        await client.rpush(f"bare {key}", *[record.payload for record in records])

    return (
        sample(bench, ours_of_records(backend), bench.encoded, tasks=tasks),
        sample(bench, append, bench.encoded, tasks=tasks),
    )


async def at_length(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """The same append to the longest conversation, and to one that begins."""
    backend = await bench.backend(store, "long")

    def at(key: str) -> Sample:
        async def measured() -> float:
            work = [await bench.encoded() for _ in range(bench.sizes.times)]
            return await timed([partial(ours_of_records(backend), key, records) for records in work])

        return measured

    return at(await bench.filled(backend, bench.sizes.longest)), at("new")


async def beside_a_reader(bench: Bench, *, store: Store, decoded: bool) -> tuple[Sample, Sample]:
    """Appends while another task reads all of a long conversation again and again, and alone: the median."""
    backend = await bench.backend(store, "read")
    long = await bench.filled(backend, bench.sizes.long)

    async def read(reading: asyncio.Event) -> None:
        while reading.is_set():
            found = await backend.get(long)
            if decoded:
                await bench.codec.decode(long, found.records)

    async def alone() -> float:
        work = [await bench.encoded() for _ in range(bench.sizes.times)]
        return median([await timed([partial(ours_of_records(backend), "beside", records)]) for records in work])

    async def beside() -> float:
        reading = asyncio.Event()
        reading.set()
        reader = asyncio.create_task(read(reading))
        seconds = await alone()
        reading.clear()
        await reader
        return seconds

    return beside, alone


_BY_HAND = "encoding and the same rows by hand in sqlite3, a transaction and a hop to a thread each"
_SQLITE: tuple[Store, ...] = ("SQLite NORMAL", "SQLite FULL")

ROWS = (
    *(Row(f"{one}: append, one task", _BY_HAND, 1.10, partial(sqlite, store=one, tasks=1)) for one in _SQLITE),
    *(
        Row(f"{one}: append, 32 tasks", f"{_BY_HAND}, 32 tasks", 0.30, partial(sqlite, store=one, tasks=TASKS))
        for one in _SQLITE
    ),
    Row(
        "SQLite FULL: append of records, 32 tasks",
        "the same rows by hand in sqlite3, on the loop's own thread",
        0.25,
        sqlite_in_thread,
    ),
    Row("Redis: append of records, one task", "bare RPUSH of the payloads", 2.0, partial(redis, tasks=1)),
    Row("Redis: append of records, 32 tasks", "bare RPUSH of the payloads, 32 tasks", 1.5, partial(redis, tasks=TASKS)),
    *(
        Row(f"{one}: append to 1,000,000 messages", "append to a new conversation", 1.10, partial(at_length, store=one))
        for one in STORES
    ),
    *(
        Row(
            f"{one}: append while another task reads 10,000 records in a loop, median",
            "append alone",
            2.0,
            partial(beside_a_reader, store=one, decoded=False),
        )
        for one in STORES[1:]
    ),
    *(
        Row(
            f"{one}: append while another task reads and decodes 10,000 messages in a loop, median",
            "append alone",
            None,
            partial(beside_a_reader, store=one, decoded=True),
        )
        for one in STORES[1:]
    ),
)
