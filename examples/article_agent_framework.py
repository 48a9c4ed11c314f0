"""The article's agent in Microsoft Agent Framework: a tool that tells the time, and a history that stays.

    python examples/article_agent_framework.py                  a scripted model answers: no key, no network
    python examples/article_agent_framework.py --session KEY    goes on with a conversation of an earlier run
    OPENAI_BASE_URL=http://localhost:1234/v1 python examples/article_agent_framework.py    a model of your own answers

The store is `--url`, else the one that is configured, else `chathistory.db` in this directory.
"""

import asyncio
import json
from argparse import ArgumentParser
from datetime import datetime

from agent_framework import Agent, AgentSession, tool
from agent_framework.openai import OpenAIChatCompletionClient

from chathistory_core.demo import DemoError, open_endpoint
from chathistory_core.faces.agent_framework import StoredHistoryProvider

INSTRUCTIONS = "Answer with the tools you have. Never guess the time: take it from get_time."

# A question, and how many messages its turn adds where the model calls the tool once, or not at all.
FIRST = ("What time is it?", 4)
AGAIN = ("Please look again: what time is it now?", 4)
PASSED = ("How much time has passed since the first time you told me?", 2)


@tool(approval_mode="never_require")
def get_time() -> str:
    """The date and time now, in ISO 8601."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


async def play(
    agent: Agent, history: StoredHistoryProvider, session: AgentSession, turns: list[tuple[str, int]], *, checked: bool
) -> None:
    """Ask the questions one after the other. `checked`: it is known how many messages each turn adds."""
    count = await stored(history, session)
    for question, added in turns:
        print(f"user:  {question}")
        answer = await agent.run(question, session=session)
        print(f"model: {answer.text}")
        before, count = count, await stored(history, session)
        print(f"       {count} messages are stored")
        if checked and count != before + added:
            raise DemoError(f"there are {count} messages in the store instead of {before + added}")


async def stored(history: StoredHistoryProvider, session: AgentSession) -> int:
    return await history.history.count(history.key_of(session))


async def converse(client: OpenAIChatCompletionClient, url: str | None, key: str | None, *, checked: bool) -> None:
    async with StoredHistoryProvider(url) as history:
        # The one line that differs from an agent that keeps its history in memory: `context_providers`.
        agent = Agent(client, INSTRUCTIONS, name="Clock", tools=[get_time], context_providers=[history])
        if key is not None and not await history.history.exists(key):
            print(f"session {key} is unknown: a new one starts")
            key = None
        if key is not None:
            session = AgentSession()
            history.attach(session, key)
            print(f"session {key} goes on behind its {await stored(history, session)} messages")
            await play(agent, history, session, [AGAIN, PASSED], checked=checked)
            return
        first, second = agent.create_session(), agent.create_session()
        print("session 1")
        await play(agent, history, first, [FIRST, AGAIN], checked=checked)
        first = AgentSession.from_dict(json.loads(json.dumps(first.to_dict())))  # as after a restart
        await play(agent, history, first, [PASSED], checked=checked)
        print("session 2")
        await play(agent, history, second, [FIRST], checked=checked)
        print(f"go on with session 1 in any process that reaches this store: --session {history.key_of(first)}")


def main() -> None:
    parser = ArgumentParser(
        description="Talk with an agent whose conversation is still there when its process is gone."
    )
    parser.add_argument("--session", metavar="KEY", help="go on with this conversation")
    parser.add_argument("--url", help="the store, as in sqlite:///chat.db")
    parser.add_argument("--model", help="the model; else the first that the server offers")
    given = parser.parse_args()

    async def start() -> None:
        async with endpoint.connect(given.model) as (server, model):
            client = OpenAIChatCompletionClient(model, async_client=server)
            await converse(client, given.url, given.session, checked=endpoint.scripted)

    with open_endpoint() as endpoint:
        asyncio.run(start())


if __name__ == "__main__":
    main()
