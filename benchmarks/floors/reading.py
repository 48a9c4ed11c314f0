"""What reading a conversation costs."""

from functools import partial

from pydantic import TypeAdapter

from benchmarks.floors.bench import STORES, Bench, Store, timed
from benchmarks.floors.row import Row
from benchmarks.rounds import Sample
from chathistory_core import ChatHistoryBackend, ChatMessage, StoredChatHistoryProvider

_LAST = 20
_SHORT = 100


def first_read(backend: ChatHistoryBackend, key: str, *, limit: int | None = None, times: int = 1) -> Sample:
    """Through a provider that has read nothing before."""

    async def read() -> object:
        history = StoredChatHistoryProvider(backend)
        return await history.messages(history.session(key), limit=limit)

    return partial(timed, [read] * times)


async def validation(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """A first read of a conversation, and pydantic's validation of the same payloads, one after the other."""
    backend = await bench.backend(store)
    key = await bench.filled(backend, bench.sizes.first)
    payloads = [record.payload for record in (await backend.get(key)).records]
    validate = TypeAdapter(ChatMessage).validate_json

    async def alone() -> object:
        return [validate(payload) for payload in payloads]

    return first_read(backend, key), partial(timed, [alone])


async def next_turn(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """A turn of a provider that has read the conversation before, and the first read of it."""
    backend = await bench.backend(store)
    key = await bench.filled(backend, bench.sizes.long)
    history = StoredChatHistoryProvider(backend)

    async def turn() -> None:
        messages = bench.turn()
        async with history.turn(history.session(key), messages[:1]) as turn:
            turn.add(messages[1:])

    return partial(timed, [turn] * 4), first_read(backend, key)


async def newest(bench: Bench, *, store: Store) -> tuple[Sample, Sample]:
    """The newest messages of the longest conversation, and of a short one."""
    backend = await bench.backend(store, "long")
    times = bench.sizes.times
    return (
        first_read(backend, await bench.filled(backend, bench.sizes.longest), limit=_LAST, times=times),
        first_read(backend, await bench.filled(backend, _SHORT), limit=_LAST, times=times),
    )


ROWS = (
    *(
        Row(f"{one}: get of 1,000, first time", "validation alone", 1.20, partial(validation, store=one))
        for one in STORES
    ),
    *(
        Row(
            f"{one}: next turn of a 10,000-message conversation",
            "first full read of it",
            0.02,
            partial(next_turn, store=one),
            rounds=9,
        )
        for one in STORES
    ),
    *(Row(f"{one}: last 20 of 1,000,000", "last 20 of 100", 1.15, partial(newest, store=one)) for one in STORES),
)
