# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "agent-framework-core==1.23.0",
#     "agent-framework-redis==1.0.0b261022",
#     "hiredis==3.5.0",
#     "redis==7.1.1",
# ]
# ///
"""agent-framework: one history provider for all sessions.

https://learn.microsoft.com/en-us/agent-framework/agents/conversations/storage

A load gives message objects made anew; the in-memory provider's are the stored ones themselves. A save reads the
whole history, for it leaves out messages that stand there already; assistant messages have ids, as a model's client
gives them. The file provider writes a line of JSON a message and does not sync the file: what it has written survives
the end of the process, not that of the machine. The last few cannot be asked for, and there is no list of
conversations.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from agent_framework import (
    AgentSession,
    Content,
    FileHistoryProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
)
from agent_framework_redis import RedisHistoryProvider

from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve


def open_file(place: Place, _: AsyncExitStack) -> tuple[str, HistoryProvider]:
    return "no fsync", FileHistoryProvider(place.folder)


def open_redis(place: Place, stack: AsyncExitStack) -> tuple[str, HistoryProvider]:
    provider = RedisHistoryProvider(redis_url=place.url, application_id="benchmark")
    stack.push_async_callback(provider.aclose)
    return "the server's", provider


def open_memory(_: Place, __: AsyncExitStack) -> tuple[str, HistoryProvider]:
    return "memory", InMemoryHistoryProvider()


class Provider(Adapter):
    distributions = ("agent-framework-core", "agent-framework-redis")

    def __init__(self, opening: Callable[[Place, AsyncExitStack], tuple[str, HistoryProvider]]) -> None:
        self._opening = opening
        self._stack = AsyncExitStack()
        self._sessions = defaultdict[str, AgentSession](AgentSession)

    async def open(self, place: Place) -> str:
        durability, self._provider = self._opening(place, self._stack)
        return durability

    async def close(self) -> None:
        await self._stack.aclose()

    def native(self, turn: Turn) -> Sequence[Message]:
        call = Content.from_function_call(turn.call_id, turn.tool, arguments=turn.arguments_json)
        return [
            Message("user", [turn.question]),
            Message("assistant", [call]),
            Message("tool", [Content.from_function_result(turn.call_id, result=turn.result_json)]),
            Message("assistant", [turn.answer]),
        ]

    async def append(self, conversation: str, messages: Sequence[Message], turn_id: str) -> None:
        for number, message in enumerate(messages):
            if message.role == "assistant":
                message.message_id = f"{turn_id}-{number}"
        await self._provider.save_messages(conversation, messages, state=self._state(conversation))

    async def load(self, conversation: str) -> Sequence[Message]:
        return await self._provider.get_messages(conversation, state=self._state(conversation))

    def text(self, message: Message) -> str:
        return str(message.to_dict())

    def _state(self, conversation: str) -> dict[str, Any]:
        state: dict[str, Any] = self._sessions[conversation].state.setdefault(self._provider.source_id, {})
        return state


class InMemory(Provider):
    returns = "the stored objects themselves"


if __name__ == "__main__":
    serve(
        {
            "agent-framework FileHistoryProvider": lambda: Provider(open_file),
            "agent-framework RedisHistoryProvider": lambda: Provider(open_redis),
            "agent-framework InMemoryHistoryProvider": lambda: InMemory(open_memory),
        }
    )
