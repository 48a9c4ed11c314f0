"""For how long a long read keeps the event loop from everybody else."""

import asyncio
import gc
import time
from collections.abc import Callable
from functools import partial

from benchmarks.floors.bench import STORES, Bench, Store
from benchmarks.floors.row import Row
from benchmarks.rounds import Sample
from chathistory_core import ChatHistoryBackend, StoredChatHistoryProvider

_LONGEST = 0.005
"""Seconds that nobody may notice."""


async def longest_stall(backend: ChatHistoryBackend, key: str, *, then: Callable[[], object]) -> float:
    """The seconds between two turns of another task, at most, while a provider that remembers nothing reads it all."""
    longest = 0.0

    async def other() -> None:
        nonlocal longest
        last = time.perf_counter()
        while True:
            await asyncio.sleep(0)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now

    history = StoredChatHistoryProvider(backend)
    task = asyncio.create_task(other())
    await asyncio.sleep(0)
    messages = await history.messages(history.session(key))
    await asyncio.sleep(0)
    task.cancel()
    then()
    return longest if messages else 0.0


async def without_collections(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """The longest stall while the garbage collector is off, and what it may be."""
    backend = await bench.backend(store)
    key = await bench.filled(backend, bench.sizes.long)

    async def stall() -> float:
        gc.disable()
        try:
            return await longest_stall(backend, key, then=int)
        finally:
            gc.enable()

    async def allowed() -> float:
        return _LONGEST

    return stall, allowed


async def with_collections(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """The longest stall while the garbage collector is on, and one collection of all that is there when it is read."""
    backend = await bench.backend(store)
    key = await bench.filled(backend, bench.sizes.long)

    async def stall() -> float:
        return await longest_stall(backend, key, then=int)

    async def collection() -> float:
        taken = 0.0

        def collect() -> None:
            nonlocal taken
            begun = time.perf_counter()
            gc.collect()
            taken = time.perf_counter() - begun

        await longest_stall(backend, key, then=collect)
        return taken

    return stall, collection


ROWS = (
    *(
        Row(
            f"{one}: longest stall of the loop in a 10,000-message read, without garbage collections",
            f"{_LONGEST * 1_000:.0f} ms",
            1.0,
            partial(without_collections, store=one),
            rounds=9,
        )
        for one in STORES
    ),
    *(
        Row(
            f"{one}: longest stall of the loop in a 10,000-message read",
            "one full garbage collection of that heap",
            1.5,
            partial(with_collections, store=one),
            rounds=9,
        )
        for one in STORES
    ),
)
