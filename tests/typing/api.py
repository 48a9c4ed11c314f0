"""What a type checker must know of the public API; checked, never run."""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import assert_type

from openai import AsyncStream
from openai.types.chat import ChatCompletionChunk
from redis.asyncio import Redis

from chathistory_core import (
    AgentSession,
    ChatHistoryBackend,
    ChatMessage,
    Compacted,
    Conversation,
    ConversationSummary,
    History,
    InvokedContext,
    Limits,
    MessageCodec,
    Record,
    Selection,
    StateBag,
    StoredChatHistoryProvider,
    StoredRecord,
    Stream,
    Turn,
    Unit,
    View,
    Window,
    Written,
    blocking,
    erase,
    estimate_tokens,
    iter_records,
    open_backend,
    open_history,
    read_on,
    tiktoken_counter,
    units,
)
from chathistory_core.formats import openai_chat
from chathistory_core.reducers import CountingReducer, Reducer, ReducerPipeline, SummarizingReducer, ToolResultReducer
from chathistory_memory import MemoryBackend, MemoryOptions
from chathistory_redis import RedisBackend, RedisOptions
from chathistory_sqlite import SQLiteBackend

RECORDS = [Record(b"{}", "chat-message")]


def a_backend_fulfils_the_protocol() -> list[ChatHistoryBackend]:
    return [
        MemoryBackend(),
        SQLiteBackend.from_path("chat.db"),
        RedisBackend(Redis()),
        RedisOptions(url="redis://localhost").open(),
    ]


async def backends(last: ConversationSummary) -> None:
    async with open_backend() as backend:
        assert_type(backend, ChatHistoryBackend)
        assert_type(backend.limits, Limits)
        assert_type(await backend.get("k"), Conversation)
        assert_type(await backend.get("k", limit=1, before=2), Conversation)
        assert_type(await backend.append("k", RECORDS, turn_id="1", expected_epoch="e"), Written)
        assert_type(await backend.replace("k", RECORDS, turn_id="1", expected_revision="r"), Written)
        assert_type(await backend.clear("k", expected_revision="r"), bool)
        assert_type(await backend.summaries(prefix="a", after=last, order="recent"), Sequence[ConversationSummary])
        assert_type(iter_records(backend, "k", page=1), AsyncIterator[StoredRecord])
        assert_type(await read_on(backend, "k", Conversation("k"), limit=1), Conversation | None)
        assert_type(await erase(backend, "", everything=True), int)

        await backend.get("k", 1)  # type: ignore[call-arg] # only the key is positional
        await backend.append("k", RECORDS)  # type: ignore[call-arg] # a write names its turn
        await backend.summaries(order="age")  # type: ignore[arg-type] # no such order
    open_backend("memory", options={"ttl": "30d"})
    open_backend(MemoryOptions(url="memory://"))
    open_backend(MemoryOptions(url="memory://"), options={})  # type: ignore[call-overload] # it has its options


async def texts() -> AsyncIterator[str]:
    yield "a"


async def histories(chunks: AsyncStream[ChatCompletionChunk]) -> None:
    async with open_history("memory://", codec=MessageCodec(), scope=["tenant"]) as history:
        assert_type(history, StoredChatHistoryProvider)
        assert_type(history.scoped("ann"), StoredChatHistoryProvider)
        session = history.session("k")
        assert_type(session, AgentSession)
        assert_type(session.state, StateBag)
        assert_type(session.state.get("k", str), str | None)
        assert_type(history.key_of(session), str | None)
        async with history.turn(session, [ChatMessage.user("q")], turn_id="1") as turn:
            assert_type(turn, Turn)
            assert_type(turn.messages, tuple[ChatMessage, ...])
            assert_type(turn.answer, tuple[ChatMessage, ...] | None)
            turn.add(ChatMessage.assistant("a"))
            turn.add(openai_chat.load({"role": "assistant", "content": "a"}))
            turn.add("a")  # type: ignore[arg-type] # text is no message
            stream = turn.stream(chunks, openai_chat.load_chunks)
            assert_type(stream, Stream[ChatCompletionChunk])
            assert_type([chunk async for chunk in stream], list[ChatCompletionChunk])
            turn.stream(texts(), lambda pieces: ChatMessage.assistant("".join(pieces)))
            turn.stream(texts(), lambda pieces: "".join(pieces))  # type: ignore[arg-type,return-value] # no messages
        assert_type(history.unsaved, Sequence[InvokedContext])
        await history.save_unsaved()
        stored = await history.messages(session, limit=1)
        assert_type(stored, History)
        assert_type(stored[0], ChatMessage)
        assert_type(stored[1:], tuple[ChatMessage, ...])
        assert_type(await history.set_messages(session, stored, expected_revision=stored.revision), Written)
        assert_type(await history.clear(session), bool)
        assert_type(await history.count("k"), int)
        assert_type(await history.exists("k"), bool)
        assert_type(await history.summaries(limit=1), Sequence[ConversationSummary])
        assert_type(history.get_service(MemoryBackend), MemoryBackend | None)


async def views(message: ChatMessage) -> None:
    window = Window(turns=3, tokens=1_000, count_tokens=tiktoken_counter())
    assert_type(window.select([message]), Selection)
    assert_type(window.select([message]).left_out, Sequence[ChatMessage])
    assert_type(units([message]), list[Unit])
    assert_type(estimate_tokens(message), int)
    history = StoredChatHistoryProvider(MemoryBackend(), window=window, repair="drop", trusted_roles={"user"})
    assert_type(history.turn(history.session(), [message]).view, View | None)
    open_history("memory://", repair="mend")  # type: ignore[arg-type] # no such repair
    Window(20)  # type: ignore[call-arg] # what is counted has a name


async def model(messages: Sequence[ChatMessage]) -> str:
    return messages[-1].text


def blocking_model(messages: Sequence[ChatMessage]) -> str:
    return messages[-1].text


async def reducers(history: StoredChatHistoryProvider, message: ChatMessage) -> None:
    summarizing: Reducer = SummarizingReducer(model, keep=Window(turns=3), trigger="after_append")
    pipeline = ReducerPipeline(ToolResultReducer(keep=2), summarizing, CountingReducer(20))
    assert_type(await pipeline.reduce([message]), Sequence[ChatMessage])
    open_history("memory://", reducer=pipeline)
    assert_type(await history.compact(history.session("k"), pipeline, archive="old"), Compacted)
    SummarizingReducer(blocking_model)  # type: ignore[arg-type] # it is awaited
    await history.compact(history.session("k"), CountingReducer)  # type: ignore[arg-type] # a class is no reducer


def blocking_backends(last: ConversationSummary) -> None:
    with blocking.open_backend() as backend:
        assert_type(backend, blocking.BlockingBackend)
        assert_type(backend.target, ChatHistoryBackend)
        assert_type(backend.limits, Limits)
        assert_type(backend.get("k"), Conversation)
        assert_type(backend.get("k", limit=1, before=2), Conversation)
        assert_type(backend.append("k", RECORDS, turn_id="1", expected_epoch="e"), Written)
        assert_type(backend.replace("k", RECORDS, turn_id="1", expected_revision="r"), Written)
        assert_type(backend.clear("k", expected_revision="r"), bool)
        assert_type(backend.summaries(prefix="a", after=last, order="recent"), Sequence[ConversationSummary])
        assert_type(blocking.iter_records(backend, "k", page=1), Iterator[StoredRecord])
        assert_type(blocking.read_on(backend, "k", Conversation("k"), limit=1), Conversation | None)
        assert_type(blocking.erase(backend, "", everything=True), int)

        backend.get("k", 1)  # type: ignore[call-arg] # only the key is positional
        backend.append("k", RECORDS)  # type: ignore[call-arg] # a write names its turn
        backend.summaries(order="age")  # type: ignore[arg-type] # no such order
        blocking.erase(backend.target, "a/")  # type: ignore[arg-type] # the asynchronous one
    blocking.open_backend("memory", options={"ttl": "30d"})
    blocking.open_backend(MemoryOptions(url="memory://"))
    blocking.open_backend(MemoryOptions(url="memory://"), options={})  # type: ignore[call-overload] # it has its options
    assert_type(blocking.BlockingBackend(MemoryBackend(), save_timeout=1), blocking.BlockingBackend)


def blocking_histories() -> None:
    opened = blocking.open_history("memory://", codec=MessageCodec(), scope=["tenant"])
    assert_type(opened, AbstractContextManager[blocking.BlockingProvider])
    with opened as history:
        assert_type(history, blocking.BlockingProvider)
        assert_type(history.target, StoredChatHistoryProvider)
        assert_type(history.scoped("ann"), blocking.BlockingProvider)
        session = history.session("k")
        assert_type(session, AgentSession)
        history.attach(session, "other")
        assert_type(history.key_of(session), str | None)
        with history.turn(session, [ChatMessage.user("q")], turn_id="1") as turn:
            assert_type(turn, blocking.BlockingTurn)
            assert_type(turn.messages, tuple[ChatMessage, ...])
            assert_type(turn.answer, tuple[ChatMessage, ...] | None)
            assert_type(turn.request, tuple[ChatMessage, ...])
            assert_type((turn.turn_id, turn.replayed), tuple[str, bool])
            turn.add(ChatMessage.assistant("a"))
            turn.add(openai_chat.load({"role": "assistant", "content": "a"}))
            turn.add("a")  # type: ignore[arg-type] # text is no message
            stream = turn.stream(["a", "b"], lambda pieces: ChatMessage.assistant("".join(pieces)))
            assert_type(stream, blocking.BlockingStream[str])
            assert_type(list(stream), list[str])
        turn.save()
        history.save_unsaved()
        stored = history.messages(session, limit=1)
        assert_type(stored, History)
        assert_type(history.set_messages(session, stored, expected_revision=stored.revision), Written)
        assert_type(history.clear(session), bool)
        assert_type(history.count("k"), int)
        assert_type(history.exists("k"), bool)
        assert_type(history.summaries(limit=1), Sequence[ConversationSummary])
        history.count(1)  # type: ignore[arg-type] # neither key nor session
