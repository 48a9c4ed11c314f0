# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "llama-index-core==0.14.25",
#     "llama-index-storage-chat-store-redis==0.8.0",
#     "llama-index-storage-chat-store-sqlite==0.4.0",
#     "aiosqlite==0.21.0",
#     "hiredis==3.5.0",
#     "redis==8.1.0",
#     "sqlalchemy[asyncio]==2.1.9",
# ]
# ///
"""llama-index: one chat store for all conversations.

- https://developers.llamaindex.ai/python/framework-api-reference/storage/chat_store/sqlite
- https://redis.io/docs/latest/integrate/llamaindex/ (RedisChatStore)
- https://docs.llamaindex.ai/en/stable/module_guides/deploying/agents/memory/ (SQLAlchemyChatStore)

A load gives validated message objects. SQLiteChatStore and RedisChatStore take one message a call;
SQLAlchemyChatStore, "meant to replace all other chat store classes", takes several in one transaction. Lists are of
keys alone. The last few cannot be asked for: SQLAlchemyChatStore's `limit` counts from the oldest.
"""

from collections.abc import Sequence

from llama_index.core.base.llms.types import ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.storage.chat_store.base import BaseChatStore
from llama_index.core.storage.chat_store.sql import SQLAlchemyChatStore
from llama_index.storage.chat_store.redis import RedisChatStore
from llama_index.storage.chat_store.sqlite import SQLiteChatStore
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker, create_async_engine
from sqlalchemy.orm import sessionmaker

from benchmarks.peers.engines import set_durability
from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve


def messages_of(turn: Turn) -> Sequence[ChatMessage]:
    call = ToolCallBlock(tool_call_id=turn.call_id, tool_name=turn.tool, tool_kwargs=turn.arguments)
    return [
        ChatMessage(role="user", content=turn.question),
        ChatMessage(role="assistant", blocks=[call]),
        ChatMessage(role="tool", content=turn.result_json, additional_kwargs={"tool_call_id": turn.call_id}),
        ChatMessage(role="assistant", content=turn.answer),
    ]


class SQLite(Adapter):
    distributions = ("llama-index-core", "llama-index-storage-chat-store-sqlite")
    _store: BaseChatStore
    _engine: AsyncEngine | None = None

    async def open(self, place: Place) -> str:
        engine = create_engine(f"sqlite:///{place.folder}/conversations.db")
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{place.folder}/conversations.db")
        for each in (engine, self._engine.sync_engine):
            set_durability(each, place.durability)
        self._store = SQLiteChatStore(sessionmaker(engine), async_sessionmaker(self._engine), table_name="chatstore")
        return place.durability

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.dispose()

    def native(self, turn: Turn) -> Sequence[ChatMessage]:
        return messages_of(turn)

    async def append(self, conversation: str, messages: Sequence[ChatMessage], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        for message in messages:
            await self._store.async_add_message(conversation, message)

    async def load(self, conversation: str) -> Sequence[ChatMessage]:
        return await self._store.aget_messages(conversation)

    async def conversations(self) -> Sequence[str]:
        return await self._store.aget_keys()

    def text(self, message: ChatMessage) -> str:
        return message.model_dump_json()


class Redis(SQLite):
    distributions = ("llama-index-core", "llama-index-storage-chat-store-redis")

    async def open(self, place: Place) -> str:
        self._store = RedisChatStore(redis_url=place.url)
        return "the server's"


class SQLAlchemy(Adapter):
    distributions = ("llama-index-core",)

    async def open(self, place: Place) -> str:
        self._engine = create_async_engine(f"sqlite+aiosqlite:///{place.folder}/conversations.db")
        set_durability(self._engine.sync_engine, place.durability)
        self._store = SQLAlchemyChatStore(table_name="messages", async_engine=self._engine)
        await self._store.get_keys()  # makes the table
        return place.durability

    async def close(self) -> None:
        await self._engine.dispose()

    def native(self, turn: Turn) -> Sequence[ChatMessage]:
        return messages_of(turn)

    async def append(self, conversation: str, messages: Sequence[ChatMessage], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        await self._store.add_messages(conversation, list(messages))

    async def load(self, conversation: str) -> Sequence[ChatMessage]:
        return await self._store.get_messages(conversation)

    async def conversations(self) -> Sequence[str]:
        return await self._store.get_keys()

    def text(self, message: ChatMessage) -> str:
        return message.model_dump_json()


if __name__ == "__main__":
    serve(
        {
            "llama-index SQLiteChatStore": SQLite,
            "llama-index SQLAlchemyChatStore": SQLAlchemy,
            "llama-index RedisChatStore": Redis,
        }
    )
