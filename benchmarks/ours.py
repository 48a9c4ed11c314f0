"""Ours, as contestants: turns and reads through the provider, as a user has them; `append` through codec and backend.

A `turn` is of a provider that was there before, as in a service; each `load` and `last` is of a new one, which
remembers nothing.
"""

from collections.abc import Sequence
from typing import Any

from benchmarks.contestants import Contestant
from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve
from chathistory_core import ChatHistoryBackend, ChatMessage, MessageCodec, StoredChatHistoryProvider, open_backend
from chathistory_core.conversations import MAX_REMEMBERED_BYTES
from chathistory_core.messages import FunctionCallContent


def messages_of(turn: Turn) -> list[ChatMessage]:
    """The turn's four messages."""
    call = FunctionCallContent(call_id=turn.call_id, name=turn.tool, arguments=turn.arguments)
    return [
        ChatMessage.user(turn.question),
        ChatMessage(role="assistant", contents=[call]),
        ChatMessage.tool(turn.call_id, turn.result),
        ChatMessage.assistant(turn.answer),
    ]


class Ours(Adapter):
    """One of our backends, by its URL."""

    max_remembered_bytes = MAX_REMEMBERED_BYTES
    _backend: ChatHistoryBackend

    def url(self, place: Place) -> str:
        raise NotImplementedError

    async def open(self, place: Place) -> str:
        self._backend = await open_backend(self.url(place)).__aenter__()
        self._codec = MessageCodec()
        self._history = StoredChatHistoryProvider(self._backend, max_remembered_bytes=self.max_remembered_bytes)
        return place.durability

    async def close(self) -> None:
        await self._backend.__aexit__(None, None, None)

    def native(self, turn: Turn) -> Sequence[ChatMessage]:
        return messages_of(turn)

    async def append(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:
        records = await self._codec.encode(conversation, messages)
        await self._backend.append(conversation, records, turn_id=turn_id)

    async def load(self, conversation: str) -> Sequence[ChatMessage]:
        return await self._read(conversation, None)

    async def turn(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:  # noqa: ARG002 - named by itself
        async with self._history.turn(self._history.session(conversation), messages[:1]) as turn:
            turn.add(messages[1:])

    async def last(self, conversation: str, count: int) -> Sequence[ChatMessage]:
        return await self._read(conversation, count)

    async def conversations(self) -> Sequence[object]:
        return await self._backend.summaries()

    async def _read(self, conversation: str, limit: int | None) -> Sequence[ChatMessage]:
        history = StoredChatHistoryProvider(self._backend)
        return await history.messages(history.session(conversation), limit=limit)

    def text(self, message: Any) -> str:
        text: str = message.model_dump_json()
        return text


class Memory(Ours):
    distributions = ("chathistory-core", "chathistory-memory")

    def url(self, place: Place) -> str:  # noqa: ARG002 - it has none
        return "memory://"

    async def open(self, place: Place) -> str:
        await super().open(place)
        return "memory"


class SQLite(Ours):
    distributions = ("chathistory-core", "chathistory-sqlite")

    def url(self, place: Place) -> str:
        return f"sqlite:///{place.folder}/history.db?synchronous={place.durability}"


class Redis(Ours):
    distributions = ("chathistory-core", "chathistory-redis")

    def url(self, place: Place) -> str:
        return place.url

    async def open(self, place: Place) -> str:
        await super().open(place)
        return "the server's"


class MoreSQLite(SQLite):
    max_remembered_bytes = 2**30


class MoreRedis(Redis):
    max_remembered_bytes = 2**30


MEMORY = Contestant("chathistory memory", script="ours.py", family="memory", durabilities=("memory",))
SQLITE = Contestant("chathistory SQLite", script="ours.py", family="file", durabilities=("FULL", "NORMAL"))
REDIS = Contestant("chathistory Redis", script="ours.py", family="redis")
MORE_SQLITE = Contestant("chathistory SQLite, remembering 1 GiB", script="ours.py", family="file")
MORE_REDIS = Contestant("chathistory Redis, remembering 1 GiB", script="ours.py", family="redis")
OURS = (SQLITE, MORE_SQLITE, REDIS, MORE_REDIS, MEMORY)

if __name__ == "__main__":
    serve(
        {
            MEMORY.name: Memory,
            SQLITE.name: SQLite,
            MORE_SQLITE.name: MoreSQLite,
            REDIS.name: Redis,
            MORE_REDIS.name: MoreRedis,
        }
    )
