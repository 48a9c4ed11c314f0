# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "py-key-value-aio[disk,memory,redis]==0.5.0",
#     "hiredis==3.5.0",
#     "redis==8.1.0",
# ]
# ///
"""py-key-value: the messages of a conversation as one value under its key.

https://strawgate.com/py-key-value/stores/

A store of values has no append: the list is read, extended and written whole. A turn extends the list that it loaded
for the model, so that it reads once. A load gives plain dicts, read by `json.loads` and not validated. The disk store
is diskcache: SQLite with WAL and NORMAL, and for each value above 32 KiB a file of its own, which is not synced. It
has no list of keys; the others list those of a collection.
"""

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from key_value.aio.stores.base import BaseStore
from key_value.aio.stores.disk import DiskStore
from key_value.aio.stores.memory import MemoryStore
from key_value.aio.stores.redis import RedisStore

from benchmarks.turns import Turn
from benchmarks.worker import Adapter, NotOffered, Place, serve

COLLECTION = "conversations"


def open_disk(place: Place, stack: AsyncExitStack) -> tuple[str, BaseStore]:
    store = DiskStore(directory=place.folder)
    stack.push_async_callback(store.close)
    return "NORMAL", store


def open_memory(_: Place, __: AsyncExitStack) -> tuple[str, BaseStore]:
    return "memory", MemoryStore()


def open_redis(place: Place, stack: AsyncExitStack) -> tuple[str, BaseStore]:
    store = RedisStore(url=place.url)
    stack.push_async_callback(store.close)
    return "the server's", store


class Store(Adapter):
    distributions = ("py-key-value-aio",)
    returns = "plain dicts"

    def __init__(self, opening: Callable[[Place, AsyncExitStack], tuple[str, BaseStore]]) -> None:
        self._opening = opening
        self._stack = AsyncExitStack()

    async def open(self, place: Place) -> str:
        durability, self._store = self._opening(place, self._stack)
        return durability

    async def close(self) -> None:
        await self._stack.aclose()

    def native(self, turn: Turn) -> Sequence[dict[str, Any]]:
        function = {"name": turn.tool, "arguments": turn.arguments_json}
        call = {"id": turn.call_id, "type": "function", "function": function}
        return [
            {"role": "user", "content": turn.question},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": turn.call_id, "content": turn.result_json},
            {"role": "assistant", "content": turn.answer},
        ]

    async def append(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:
        await self.turn(conversation, messages, turn_id)

    async def load(self, conversation: str) -> Sequence[Any]:
        value = await self._store.get(conversation, collection=COLLECTION)
        return value["messages"] if value else []

    async def turn(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        loaded = await self.load(conversation)
        await self._store.put(conversation, {"messages": [*loaded, *messages]}, collection=COLLECTION)

    async def conversations(self) -> Sequence[str]:
        if isinstance(self._store, DiskStore):
            raise NotOffered
        return await self._store.keys(COLLECTION)


if __name__ == "__main__":
    serve(
        {
            "py-key-value DiskStore": lambda: Store(open_disk),
            "py-key-value MemoryStore": lambda: Store(open_memory),
            "py-key-value RedisStore": lambda: Store(open_redis),
        }
    )
