# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "openai-agents[redis,sqlalchemy]==0.24.0",
#     "aiosqlite==0.22.1",
#     "hiredis==3.5.0",
#     "redis==8.1.0",
#     "sqlalchemy[asyncio]==2.1.9",
# ]
# ///
"""openai-agents: one session object a conversation, made when the conversation is first asked for, then kept.

- https://openai.github.io/openai-agents-python/sessions/
- https://openai.github.io/openai-agents-python/sessions/sqlalchemy_session/

A load gives plain dicts, read by `json.loads` and not validated. SQLiteSession and AsyncSQLiteSession set WAL and
leave `synchronous` at SQLite's default, FULL, without a public way to change it. The engine and the Redis client are
the application's, shared by all sessions, and the tables are made once. There is no list of sessions.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from agents import Session, SQLiteSession
from agents.extensions.memory import AsyncSQLiteSession, RedisSession, SQLAlchemySession
from redis.asyncio import Redis
from sqlalchemy.ext.asyncio import create_async_engine

from benchmarks.peers.engines import set_durability
from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve

Opened = tuple[str, Callable[[str], Session]]
"""The durability, and what makes the session object of a conversation."""


async def open_sqlite(place: Place, stack: AsyncExitStack) -> Opened:
    def session(conversation: str) -> Session:
        opened = SQLiteSession(conversation, place.folder / "conversations.db")
        stack.callback(opened.close)
        return opened

    return "FULL", session


async def open_async_sqlite(place: Place, stack: AsyncExitStack) -> Opened:
    def session(conversation: str) -> Session:
        opened = AsyncSQLiteSession(conversation, place.folder / "conversations.db")
        stack.push_async_callback(opened.close)
        return opened

    return "FULL", session


async def open_sqlalchemy(place: Place, stack: AsyncExitStack) -> Opened:
    engine = create_async_engine(f"sqlite+aiosqlite:///{place.folder}/conversations.db")
    stack.push_async_callback(engine.dispose)
    set_durability(engine.sync_engine, place.durability)
    await SQLAlchemySession("", engine=engine, create_tables=True).get_items()
    return place.durability, lambda conversation: SQLAlchemySession(conversation, engine=engine)


async def open_redis(place: Place, stack: AsyncExitStack) -> Opened:
    client = Redis.from_url(place.url)
    stack.push_async_callback(client.aclose)
    return "the server's", lambda conversation: RedisSession(conversation, redis_client=client)


class Sessions(Adapter):
    distributions = ("openai-agents",)
    returns = "plain dicts"

    def __init__(self, opening: Callable[[Place, AsyncExitStack], Awaitable[Opened]]) -> None:
        self._opening = opening
        self._stack = AsyncExitStack()
        self._sessions: dict[str, Session] = {}

    async def open(self, place: Place) -> str:
        durability, self._new = await self._opening(place, self._stack)
        return durability

    async def close(self) -> None:
        self._sessions.clear()
        await self._stack.aclose()

    def native(self, turn: Turn) -> Sequence[dict[str, Any]]:
        answer = {"type": "output_text", "text": turn.answer, "annotations": []}
        return [
            {"role": "user", "content": turn.question},
            {"type": "function_call", "call_id": turn.call_id, "name": turn.tool, "arguments": turn.arguments_json},
            {"type": "function_call_output", "call_id": turn.call_id, "output": turn.result_json},
            {"type": "message", "role": "assistant", "status": "completed", "content": [answer]},
        ]

    async def append(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:  # noqa: ARG002 - it names no writes
        await self._session(conversation).add_items(list(messages))

    async def load(self, conversation: str) -> Sequence[Any]:
        return await self._session(conversation).get_items()

    async def last(self, conversation: str, count: int) -> Sequence[Any]:
        return await self._session(conversation).get_items(limit=count)

    def _session(self, conversation: str) -> Session:
        if conversation not in self._sessions:
            self._sessions[conversation] = self._new(conversation)
        return self._sessions[conversation]


if __name__ == "__main__":
    serve(
        {
            "openai-agents SQLiteSession": lambda: Sessions(open_sqlite),
            "openai-agents AsyncSQLiteSession": lambda: Sessions(open_async_sqlite),
            "openai-agents SQLAlchemySession": lambda: Sessions(open_sqlalchemy),
            "openai-agents RedisSession": lambda: Sessions(open_redis),
        }
    )
