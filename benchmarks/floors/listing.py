"""What a page of conversations costs."""

import asyncio
from functools import partial

from benchmarks.floors.bench import Bench, Store, timed
from benchmarks.floors.row import Row
from benchmarks.rounds import Sample
from chathistory_core import ChatHistoryBackend, Order, Record, new_turn_id

_PAGE = 50
_FEW = 100
_AT_ONCE = 1_000


async def page(bench: Bench, *, store: Store, order: Order) -> tuple[Sample, Sample]:
    """The page in the middle of very many conversations, and of a few."""
    many, few = bench.sizes.conversations, _FEW
    return await _page(bench, store, many, order), await _page(bench, store, few, order)


async def _page(bench: Bench, store: Store, count: int, order: Order) -> Sample:
    backend = await bench.backend(store, f"of {count} conversations")
    await bench.once(backend, "fill", partial(fill, backend, count))
    before = await backend.summaries(order=order, limit=count // 2)
    read = partial(backend.summaries, after=before[-1], limit=_PAGE, order=order)
    return partial(timed, [read] * bench.sizes.times)


async def fill(backend: ChatHistoryBackend, count: int) -> None:
    """As many conversations of one record, through the backend."""
    record = Record(b"{}", "filled")
    for start in range(0, count, _AT_ONCE):
        await asyncio.gather(
            *(
                backend.append(f"conversation {number:07}", [record], turn_id=new_turn_id())
                for number in range(start, min(start + _AT_ONCE, count))
            )
        )


_STORES: tuple[Store, ...] = ("SQLite NORMAL", "Redis")
_ORDERS: tuple[tuple[Order, str], ...] = (("key", "by key"), ("recent", "newest first"))

ROWS = tuple(
    Row(
        f"{one}: page of 50 conversations of 1,000,000, {words}",
        "page of 50 of 100",
        1.3,
        partial(page, store=one, order=order),
    )
    for one in _STORES
    for order, words in _ORDERS
)
