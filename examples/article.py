"""A conversation that is still there when its process is gone: an agent with a tool, on a store of one's choice.

    python examples/article.py                  a scripted model on this machine answers: no key, no network
    python examples/article.py --session KEY    goes on with a conversation that an earlier run left in the store
    OPENAI_BASE_URL=http://localhost:1234/v1 python examples/article.py    LM Studio, Ollama, vLLM, OpenAI answers

`chathistory demo` runs this file.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from openai import AsyncOpenAI
from openai.types.chat import (
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageParam,
    ChatCompletionMessageToolCallUnion,
)
from rich.console import Console
from typer import Option

from chathistory_core import AgentSession, ChatMessage, StoredChatHistoryProvider, open_history
from chathistory_core.cli import run
from chathistory_core.demo import DemoError, open_endpoint
from chathistory_core.formats import openai_chat

INSTRUCTIONS: ChatCompletionMessageParam = {
    "role": "system",  # stands beside the conversation and is never stored
    "content": "Answer with the tools you have. Never guess the time: take it from get_time.",
}
TOOLS: list[ChatCompletionFunctionToolParam] = [
    {"type": "function", "function": {"name": "get_time", "description": "The date and time now, in ISO 8601."}}
]
ROUNDS = 8  # of tool calls in one turn

# A question, and how many messages its turn adds where the model calls the tool once, or not at all.
FIRST = ("What time is it?", 4)
AGAIN = ("Please look again: what time is it now?", 4)
PASSED = ("How much time has passed since the first time you told me?", 2)

console = Console(highlight=False, markup=False, soft_wrap=True)
log = logging.getLogger("chathistory.demo")


def get_time() -> str:
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def call_tool(call: ChatCompletionMessageToolCallUnion) -> str:
    if call.type == "function" and call.function.name == "get_time":
        return get_time()
    return "There is no such tool."


@dataclass(frozen=True)
class Agent:
    client: AsyncOpenAI
    model: str
    history: StoredChatHistoryProvider

    async def ask(self, session: AgentSession, question: str) -> str:
        """The answer. Leaving the block stores the whole turn in one write; an exception in it stores nothing."""
        async with self.history.turn(session, [ChatMessage.user(question)]) as turn:
            for _ in range(ROUNDS):
                reply = await self.client.chat.completions.create(
                    model=self.model, tools=TOOLS, messages=[INSTRUCTIONS, *openai_chat.dump(turn.messages)]
                )
                if not reply.choices:  # how some servers say that they failed
                    raise DemoError(f"model {self.model!r} gave no answer")
                message = reply.choices[0].message
                turn.add(openai_chat.load(message))
                if not message.tool_calls:
                    return message.content or ""
                for call in message.tool_calls:
                    turn.add(ChatMessage.tool(call.id, call_tool(call)))
            raise DemoError(f"the model still calls tools after {ROUNDS} rounds")


async def converse(agent: Agent, key: str | None, *, checked: bool) -> None:
    """The scenario. `checked`: the model calls the tool as expected, so the number of stored messages is known."""
    history = agent.history
    await show_store(history)
    if key is not None and await history.exists(key):
        first, second = history.session(key), None
        console.print(f"Session {shown(key)} goes on behind its {await history.count(key)} messages.")
        await play(agent, "Session 1", first, [AGAIN, PASSED], checked=checked)
    else:
        first, second = history.session(), history.session()
        console.print("A new session starts." if key is None else f"Session {shown(key)} is unknown: a new one starts.")
        await play(agent, "Session 1", first, [FIRST, AGAIN, PASSED], checked=checked)
        await play(agent, "Session 2", second, [FIRST], checked=checked)
    console.print("What a session holds: the key of its conversation, and no message.", style="bold")
    for name, session in {"Session 1": first, "Session 2": second}.items():
        if session is not None:
            console.print(f"  {name}: {json.dumps(session.to_json())}")
    kept = shown(history.key_of(first) or "")
    console.print(f"To go on with session 1 in any process that reaches this store: --session {kept}")


async def play(
    agent: Agent, name: str, session: AgentSession, turns: Sequence[tuple[str, int]], *, checked: bool
) -> None:
    expected = await agent.history.count(session)
    for question, added in turns:
        console.print(f"{name}, user:  {question}", style="cyan")
        console.print(f"{name}, model: {await agent.ask(session, question)}", style="green")
        await show_store(agent.history)
        log.info("state %s", json.dumps(session.to_json()))
        stored, expected = await agent.history.count(session), expected + added
        if checked and stored != expected:
            raise DemoError(f"{name} has {stored} messages in the store instead of {expected}")


async def show_store(history: StoredChatHistoryProvider) -> None:
    summaries = await history.summaries(order="recent", limit=20)
    console.print("The store, latest conversation first:" if summaries else "The store is empty.", style="bold")
    for summary in summaries:
        console.print(f"  {shown(summary.key)}  {summary.record_count} messages")


def shown(key: str) -> str:
    return key if key.isprintable() else repr(key)  # a key may hold what steers a terminal


def demo(
    *,
    session: Annotated[str | None, Option(metavar="KEY", help="Go on with this conversation.")] = None,
    url: Annotated[str | None, Option(help="The store, as in sqlite:///chat.db; else as configured.")] = None,
    model: Annotated[str | None, Option(help="The model; else the first that the server offers.")] = None,
    verbose: Annotated[bool, Option("-v", "--verbose", help="Show loads, stores and state.")] = False,
) -> None:
    """Talk with an agent that tells the time, and see its conversations stored, continued and still there."""
    if verbose:
        logging.basicConfig(stream=sys.stdout, format="  %(name)s: %(message)s")
        logging.getLogger("chathistory").setLevel(logging.DEBUG)

    async def start() -> None:
        async with endpoint.connect(model) as (client, name), open_history(url) as history:
            console.print(f"Model {name}, on {endpoint.description}.")
            await converse(Agent(client, name, history), session, checked=endpoint.scripted)

    with open_endpoint() as endpoint:
        asyncio.run(start())


if __name__ == "__main__":
    run(demo)
