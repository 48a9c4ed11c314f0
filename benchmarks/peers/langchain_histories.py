# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "langchain-community==0.4.2",
#     "langchain-core==1.8.3",
#     "aiosqlite==0.22.1",
#     "hiredis==3.5.0",
#     "redis==8.1.0",
#     "sqlalchemy[asyncio]==2.1.9",
# ]
# ///
"""langchain-community: one history object a conversation, made when the conversation is first asked for, then kept.

- https://reference.langchain.com/v0.3/python/community/chat_message_histories/langchain_community.chat_message_histories.sql.SQLChatMessageHistory.html
- https://reference.langchain.com/v0.3/python/community/chat_message_histories/langchain_community.chat_message_histories.redis.RedisChatMessageHistory.html

A load gives validated message objects. The engine is the application's, shared by all histories, and the table stands
before the first is used. With a synchronous engine the history is called as a program without asyncio calls it: the
quickest way, and it blocks an event loop. Each Redis history makes a client of its own; its asynchronous methods,
inherited from the library, call the synchronous ones in threads, a command a message. The last few cannot be asked
for, and there is no list of conversations.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack

from langchain_community.chat_message_histories import RedisChatMessageHistory, SQLChatMessageHistory
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from sqlalchemy import create_engine
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.peers.engines import set_durability
from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve

Opened = tuple[str, Callable[[str], BaseChatMessageHistory]]
"""The durability, and what makes the history object of a conversation."""


async def open_sync_sql(place: Place, stack: AsyncExitStack) -> Opened:
    engine = create_engine(f"sqlite:///{place.folder}/conversations.db")
    stack.callback(engine.dispose)
    set_durability(engine, place.durability)
    SQLChatMessageHistory("", connection=engine)
    return place.durability, lambda conversation: SQLChatMessageHistory(conversation, connection=engine)


async def open_async_sql(place: Place, stack: AsyncExitStack) -> Opened:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.folder}/conversations.db")
    stack.push_async_callback(engine.dispose)
    set_durability(engine.sync_engine, place.durability)
    await SQLChatMessageHistory("", connection=engine).aget_messages()
    return place.durability, lambda conversation: SQLChatMessageHistory(conversation, connection=engine)


async def open_redis(place: Place, _: AsyncExitStack) -> Opened:
    return "the server's", lambda conversation: RedisChatMessageHistory(conversation, url=place.url)


class Histories(Adapter):
    distributions = ("langchain-community", "langchain-core")

    def __init__(self, opening: Callable[[Place, AsyncExitStack], Awaitable[Opened]]) -> None:
        self._opening = opening
        self._stack = AsyncExitStack()
        self._histories: dict[str, BaseChatMessageHistory] = {}

    async def open(self, place: Place) -> str:
        durability, self._new = await self._opening(place, self._stack)
        return durability

    async def close(self) -> None:
        self._histories.clear()
        await self._stack.aclose()

    def native(self, turn: Turn) -> Sequence[BaseMessage]:
        return [
            HumanMessage(turn.question),
            AIMessage("", tool_calls=[{"id": turn.call_id, "name": turn.tool, "args": turn.arguments}]),
            ToolMessage(turn.result_json, tool_call_id=turn.call_id),
            AIMessage(turn.answer),
        ]

    async def append(self, conversation: str, messages: Sequence[BaseMessage], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        await self._history(conversation).aadd_messages(messages)

    async def load(self, conversation: str) -> Sequence[BaseMessage]:
        return await self._history(conversation).aget_messages()

    def _history(self, conversation: str) -> BaseChatMessageHistory:
        if conversation not in self._histories:
            self._histories[conversation] = self._new(conversation)
        return self._histories[conversation]


class SyncHistories(Histories):
    async def append(self, conversation: str, messages: Sequence[BaseMessage], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        self._history(conversation).add_messages(messages)

    async def load(self, conversation: str) -> Sequence[BaseMessage]:
        return self._history(conversation).messages


if __name__ == "__main__":
    serve(
        {
            "langchain SQLChatMessageHistory": lambda: SyncHistories(open_sync_sql),
            "langchain SQLChatMessageHistory, async engine": lambda: Histories(open_async_sql),
            "langchain RedisChatMessageHistory": lambda: Histories(open_redis),
        }
    )
