import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from chathistory_core import AgentSession, ChatMessage, StoredChatHistoryProvider, open_history


@dataclass(frozen=True)
class Agent:
    history: StoredChatHistoryProvider
    model: Callable[[Sequence[ChatMessage]], Awaitable[ChatMessage]]

    async def ask(self, session: AgentSession, question: str) -> str:
        async with self.history.turn(session, [ChatMessage.user(question)]) as turn:
            answer = await self.model(turn.messages)
            turn.add(answer)
        return answer.text


async def echo(messages: Sequence[ChatMessage]) -> ChatMessage:
    """A model that says what it was given."""
    return ChatMessage.assistant(" | ".join(message.text for message in messages))


async def broken(_: Sequence[ChatMessage]) -> ChatMessage:
    raise TimeoutError("the model does not answer")


def on_memory(test: Callable[[StoredChatHistoryProvider], Awaitable[None]]) -> None:
    """Run the test on a store of its own."""

    async def main() -> None:
        async with open_history("memory://") as history:
            await test(history)

    asyncio.run(main())


def test_the_model_is_given_the_history() -> None:
    async def test(history: StoredChatHistoryProvider) -> None:
        agent, session = Agent(history, echo), history.session()
        assert await agent.ask(session, "one") == "one"
        assert await agent.ask(session, "two") == "one | one | two"

    on_memory(test)


def test_question_and_answer_are_stored() -> None:
    async def test(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        await Agent(history, echo).ask(session, "one")
        assert list(await history.messages(session)) == [ChatMessage.user("one"), ChatMessage.assistant("one")]

    on_memory(test)


def test_nothing_is_stored_where_the_model_fails() -> None:
    async def test(history: StoredChatHistoryProvider) -> None:
        session = history.session()
        with pytest.raises(TimeoutError):
            await Agent(history, broken).ask(session, "one")
        assert await history.count(session) == 0

    on_memory(test)


def test_a_second_instance_goes_on_where_the_first_one_was() -> None:
    async def first() -> None:
        async with open_history("memory://shared") as history:  # a named store, as long as the process lives
            await Agent(history, echo).ask(history.session("ann"), "one")

    async def second() -> str:
        async with open_history("memory://shared") as history:
            return await Agent(history, echo).ask(history.session("ann"), "two")

    asyncio.run(first())
    assert asyncio.run(second()) == "one | one | two"


@pytest.mark.parametrize("url", ["memory://", "sqlite:///agent.db"])
def test_a_question_that_is_asked_twice_is_answered_twice(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def main() -> int:
        async with open_history(url) as history:
            agent, session = Agent(history, echo), history.session()
            await agent.ask(session, "yes")
            await agent.ask(session, "yes")
            return await history.count(session)

    assert asyncio.run(main()) == 4
