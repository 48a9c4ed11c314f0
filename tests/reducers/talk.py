"""Conversations for the tests, and models that summarise them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from chathistory_core import (
    ChatHistoryBackend,
    ChatMessage,
    Conversation,
    InvokingContext,
    StoredChatHistoryProvider,
)
from chathistory_core.formats.note import is_note
from chathistory_core.messages import FunctionCallContent
from chathistory_core.reducers import SummarizingReducer
from chathistory_core.views.windows import Window

MakeBackend = Callable[[], ChatHistoryBackend]
Work = Callable[[ChatHistoryBackend], Awaitable[None]]

USER, ASSISTANT, SYSTEM, TOOL = ChatMessage.user, ChatMessage.assistant, ChatMessage.system, ChatMessage.tool


class Model:
    """Answers with the texts that it was asked about, in one line; fails, waits or says something else, when told."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.failure: BaseException | None = None
        self.answer: str | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        self.asked.append([message.text for message in messages[:-1]])
        if self.meanwhile is not None:
            await self.meanwhile()
        if self.failure is not None:
            raise self.failure
        told = " ".join(text.removeprefix("[Summary]\n") for text in self.asked[-1])
        return f"<{told}>" if self.answer is None else self.answer


def reducer(model: Model, *, keep: int = 2, above: int = 4, **options: Any) -> SummarizingReducer:
    return SummarizingReducer(model, keep=Window(messages=keep), above=Window(messages=above), **options)


def run(make_backend: MakeBackend, *works: Work) -> None:
    """Do one work after another, each with a backend of its own in a loop of its own: with a restart between."""

    async def opened(work: Work) -> None:
        async with make_backend() as backend:
            await work(backend)

    for work in works:
        asyncio.run(opened(work))


async def put(history: StoredChatHistoryProvider, *messages: ChatMessage, key: str = "k") -> None:
    """Store the messages as one turn, whatever the provider makes of what is stored."""
    backend = history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract] # the protocol stands for any
    assert backend is not None
    async with StoredChatHistoryProvider(backend).turn(history.session(key), messages):
        pass


async def talk(history: StoredChatHistoryProvider, start: int, stop: int, *, key: str = "k") -> None:
    """Turns of a question and an answer each: q1 a1 q2 a2 and so on."""
    for number in range(start, stop):
        await put(history, USER(f"q{number}"), ASSISTANT(f"a{number}"), key=key)


async def seen(history: StoredChatHistoryProvider, *, key: str = "k") -> list[str]:
    """The texts that a run is shown of the conversation."""
    shown = await history.invoking(InvokingContext(None, history.session(key), [USER("what now?")]))
    return [message.text for message in shown[:-1]]


async def held(history: StoredChatHistoryProvider, *, key: str = "k") -> list[str]:
    """The texts of what is stored."""
    return [message.text for message in await history.messages(history.session(key))]


def notes(conversation: Conversation) -> int:
    return sum(is_note(record.format) for record in conversation.records)


def call(call_id: str, name: str = "look", **arguments: str) -> FunctionCallContent:
    return FunctionCallContent(call_id=call_id, name=name, arguments=arguments)
