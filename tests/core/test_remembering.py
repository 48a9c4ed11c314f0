"""What was read before is not decoded again, and is gone with what was taken away."""

import asyncio
import gc
import sqlite3
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Self, TypeVar
from weakref import ref

import pytest
from tests.passing import Call, Passing

from chathistory_core import (
    AgentSession,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatMessage,
    Conversation,
    InvokedContext,
    InvokingContext,
    MessageCodec,
    Record,
    StoredChatHistoryProvider,
    StoredRecord,
    TurnConflictError,
    Window,
)
from chathistory_core.conversations import Loaded
from chathistory_core.conversations.marking import Marking
from chathistory_core.conversations.remembering import Remembered, size_of
from chathistory_core.messages import CHAT_HISTORY, FunctionCallContent, SourceAttribution
from chathistory_memory import MemoryBackend
from chathistory_sqlite import SQLiteBackend

WHEN = datetime(2026, 1, 1, tzinfo=UTC)

T = TypeVar("T")


class Counting(MessageCodec):
    """Counts the records that it decodes."""

    decoded = 0

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        self.decoded += len(records)
        return await super().decode(key, records)


def record(position: int, payload: bytes = b"x", *, turn_id: str = "t") -> StoredRecord:
    return StoredRecord(payload, "chat-message", position, turn_id, WHEN)


def test_a_turn_decodes_what_was_added_since_the_one_before() -> None:
    async def run() -> None:
        codec = Counting()
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, codec=codec)
            session = history.session("ann")
            for number in range(5):
                codec.decoded = 0
                async with history.turn(session, [ChatMessage.user(str(number))]) as turn:
                    turn.add(ChatMessage.assistant("ok"))
                assert codec.decoded == min(2, number * 2)
            stored = await history.messages(session)
            assert [message.text for message in stored] == ["0", "ok", "1", "ok", "2", "ok", "3", "ok", "4", "ok"]

    asyncio.run(run())


def test_what_was_taken_away_is_forgotten_with_it() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend)
            session = history.session("ann")
            for take_away in (history.clear(session), history.set_messages(session, [])):
                await history.set_messages(session, [ChatMessage.user("Hi")])
                message = ref((await history.messages(session))[0])
                gc.collect()
                assert message() is not None
                await take_away
                gc.collect()
                assert message() is None

    asyncio.run(run())


def test_a_record_is_the_same_only_to_the_last_byte() -> None:
    remembered = Remembered()
    first, made = record(1), [ChatMessage.user("Hi")]
    remembered.keep("k", first, made)
    assert remembered.known("k", [first]) == {1: made}
    for other in (record(1, b"y"), record(2), record(1, turn_id="u"), first._replace(format="openai-chat")):
        assert remembered.known("k", [other]) == {}
    assert remembered.known("another", [first]) == {}
    remembered.forget("k")
    assert remembered.known("k", [first]) == {}


def test_the_conversations_that_were_longest_not_asked_for_make_room() -> None:
    remembered = Remembered(most_bytes=2 * size_of(record(1, b"12345")))
    for key in ("a", "b"):
        remembered.keep(key, record(1, b"12345"), ())
    assert remembered.known("a", [record(1, b"12345")])
    remembered.keep("c", record(1, b"12345"), ())
    assert [key for key in "abc" if remembered.known(key, [record(1, b"12345")])] == ["a", "c"]


def test_a_conversation_that_is_too_large_is_remembered_in_part() -> None:
    remembered = Remembered(most_bytes=2 * size_of(record(1, b"12345")))
    for position in range(1, 5):
        remembered.keep("a", record(position, b"1234"), ())
    assert list(remembered.known("a", [record(position, b"1234") for position in range(1, 5)])) == [1, 2]
    remembered.keep("a", record(1, b"12345"), ())
    assert list(remembered.known("a", [record(1, b"12345")])) == [1]


class Watched(Passing):
    """A store whose reads are counted."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        super().__init__(backend)
        self.read: list[int] = []

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, limit=limit, before=before, after=after)
        self.read.append(len(found.records))
        return found


async def said(history: StoredChatHistoryProvider, session: AgentSession) -> list[str]:
    return [message.text for message in await history.messages(session)]


def test_a_turn_reads_what_was_added_since_the_one_before() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            store = Watched(backend)
            history = StoredChatHistoryProvider(store)
            session = history.session("ann")
            await history.set_messages(session, [ChatMessage.user(str(number)) for number in range(1_000)])
            await history.messages(session)
            for _ in range(3):
                store.read.clear()
                async with history.turn(session, [ChatMessage.user("Hi")]) as turn:
                    turn.add(ChatMessage.assistant("ok"))
                assert len(store.read) == 1
                assert store.read[0] <= 3  # the last one that is known, and the turn before
                assert len(turn.messages) >= 1_002

    asyncio.run(run())


def test_what_others_do_meanwhile_is_seen(tmp_path: Path) -> None:
    path, backup = tmp_path / "history.db", tmp_path / "backup.db"

    def copy(source: Path, target: Path) -> None:
        with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
            one.backup(other)

    async def run(seed: int) -> None:
        random = Random(seed)
        async with SQLiteBackend.from_path(path) as backend:
            remembering, others = StoredChatHistoryProvider(backend), StoredChatHistoryProvider(backend)
            session = others.session("ann")
            copy(path, backup)
            for step in range(60):
                match random.randrange(8):
                    case 0:
                        await others.set_messages(session, [ChatMessage.user(f"replaced {step}")])
                    case 1:
                        await others.clear(session)
                    case 2:
                        copy(path, backup)
                    case 3:
                        copy(backup, path)
                    case _:
                        writer = random.choice([remembering, others])
                        turn_id = f"turn {random.randrange(20)}"  # after a backup was restored some come again
                        with suppress(TurnConflictError):
                            async with writer.turn(session, [ChatMessage.user(turn_id)], turn_id=turn_id) as turn:
                                if not turn.replayed:
                                    turn.add(ChatMessage.assistant(f"{step}"))
                fresh = StoredChatHistoryProvider(backend)
                assert await said(remembering, session) == await said(fresh, session)
            await others.clear(session)

    for seed in range(8):
        asyncio.run(run(seed))


@pytest.mark.parametrize("window", [None, Window(messages=50)])
def test_what_is_cleared_while_it_is_being_read_is_not_remembered(window: Window | None) -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend)
            session = history.session("ann")
            await history.set_messages(session, [ChatMessage.user("Hi")] * 200)

            class Clearing(MessageCodec):
                async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
                    groups = await super().decode(key, records)
                    if records:
                        await reading.clear(session)
                        messages.extend(ref(message) for group in groups for message in group)
                    return groups

            messages: list[ref[ChatMessage]] = []
            reading = StoredChatHistoryProvider(backend, codec=Clearing(), window=window)
            await reading.invoking(InvokingContext(None, session, []))
            gc.collect()
            assert len(messages) >= 50
            assert not any(message() for message in messages)

    asyncio.run(run())


def test_what_is_read_while_another_conversation_is_cleared_is_remembered() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            store = Watched(backend)
            history = StoredChatHistoryProvider(store)
            ann, bob = history.session("ann"), history.session("bob")
            for session in ann, bob:
                await history.set_messages(session, [ChatMessage.user("Hi")] * 200)

            class Clearing(MessageCodec):
                async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
                    groups = await super().decode(key, records)
                    if records:
                        await reading.clear(bob)
                    return groups

            reading = StoredChatHistoryProvider(store, codec=Clearing())
            await reading.messages(ann)
            store.read.clear()
            await reading.messages(ann)
            assert store.read == [1]

    asyncio.run(run())


def test_where_there_is_no_room_for_all_the_newest_is_remembered() -> None:
    remembered = Remembered(3 * size_of(record(1)))
    for key in "a", "b":
        for position in 1, 2:
            remembered.keep(key, record(position), ())
        found = Loaded(Conversation(key, "r", "e", 2, WHEN, WHEN, (record(1), record(2))), [(), ()])
        remembered.hold(found)
        assert (whole := remembered.whole(key)) is not None
        assert whole.loaded is found
    assert remembered.whole("a") is None
    remembered.hold(Loaded(Conversation("b", "s", "e", 1, WHEN, WHEN, (record(2),)), [()]))
    assert remembered.known("b", [record(1), record(2)]) == {2: ()}
    held = (record(2), record(3), record(4))
    remembered.hold(Loaded(Conversation("b", "s", "e", 3, WHEN, WHEN, held), [(), (), ()]))
    assert remembered.whole("b") is None
    remembered.hold(Loaded(Conversation("b", "s", "f", 1, WHEN, WHEN, (record(5),)), [()]))
    assert remembered.whole("b") is None  # as many are remembered, but of those that were there before


def test_nothing_is_remembered_where_nothing_may_be() -> None:
    async def run() -> None:
        codec = Counting()
        async with MemoryBackend() as backend:
            store = Watched(backend)
            history = StoredChatHistoryProvider(store, codec=codec, max_remembered_bytes=0)
            session = history.session("ann")
            await history.set_messages(session, [ChatMessage.user("Hi")] * 5)
            for turns in 1, 2, 3:
                message = ref((await history.messages(session))[0])
                gc.collect()
                assert message() is None
                assert (codec.decoded, store.read) == (5 * turns, [5] * turns)

    asyncio.run(run())


HISTORY = SourceAttribution(CHAT_HISTORY, "test")


def test_of_a_history_that_grew_what_is_new_is_marked() -> None:
    history = [ChatMessage.user(str(number)) for number in range(3)]
    marking = Marking()
    first = asyncio.run(marking.marked(history, HISTORY))
    marked: list[str] = []

    class Seen(ChatMessage):
        def with_source(self, source: SourceAttribution) -> Self:
            marked.append(self.text)
            return super().with_source(source)

    again = asyncio.run(marking.marked([*history, Seen.user("3")], HISTORY))
    assert marked == ["3"]
    assert [message.source for message in again] == [HISTORY] * 4
    assert all(one is other for one, other in zip(first, again, strict=False))


def test_a_history_that_is_another_is_marked_anew() -> None:
    history = [ChatMessage.user(str(number)) for number in range(3)]
    marking = Marking()
    for now in (history, history[1:], [ChatMessage.user("0"), *history[1:]], [], history):
        for mark in HISTORY, SourceAttribution(CHAT_HISTORY, "other"):
            marked = asyncio.run(marking.marked(now, mark))
            assert [message.without_source() for message in marked] == now
            assert [message.source for message in marked] == [mark] * len(now)
            assert all(message.text == given.text for message, given in zip(marked, now, strict=True))


def test_a_history_that_its_owner_changed_is_marked_as_it_is_now() -> None:
    history, marking = [ChatMessage.user("0"), ChatMessage.user("1")], Marking()
    asyncio.run(marking.marked(history, HISTORY))
    history[0] = ChatMessage.user("changed")
    assert [message.text for message in asyncio.run(marking.marked(history, HISTORY))] == ["changed", "1"]


def test_what_a_run_was_given_is_not_stored_again_wherever_it_stands() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend)
            session = history.session("ann")
            ask = ChatMessage.user("Hi")
            for number, arranged in enumerate((list, reversed, lambda given: given[1:], lambda given: [ask, *given])):
                began = InvokingContext(None, session, [ask])
                given = list(arranged(await history.invoking(began)))
                answer = [ChatMessage.assistant(str(number))]
                await history.invoked(InvokedContext.succeeded(None, session, given, answer, invoking=began))
            assert await said(history, session) == ["Hi", "0", "Hi", "1", "Hi", "2", "Hi", "Hi", "3"]

    asyncio.run(run())


class Down(Passing):
    """A store that takes nothing."""

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        if call.operation == "append":
            raise BackendUnavailableError("down")
        return await go_on()


@pytest.mark.parametrize("turn_id", [None, "turn"])
def test_a_run_that_waits_holds_nothing_of_the_history_that_it_was_given(turn_id: str | None) -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            session = StoredChatHistoryProvider(backend).session("ann")
            await StoredChatHistoryProvider(backend).set_messages(session, [ChatMessage.user("Hi")])
            history = StoredChatHistoryProvider(Down(backend), on_save_error="outbox", max_remembered_bytes=0)
            began = InvokingContext(None, session, [ChatMessage.user("And?")], turn_id=turn_id)
            given = await history.invoking(began)
            message = ref(given[0])
            await history.invoked(
                InvokedContext.succeeded(None, session, given, [ChatMessage.assistant("ok")], invoking=began)
            )
            del given, began
            gc.collect()
            assert [len(waiting.request_messages) for waiting in history.unsaved] == [1]
            assert message() is None

    asyncio.run(run())


CALL = FunctionCallContent(
    call_id="c", name="find_trains", arguments={"to": "Köln", "after": "18:30", "classes": [1, 2]}
)


@pytest.mark.parametrize(
    "message",
    [
        ChatMessage.user("Hi"),
        ChatMessage.assistant("Certainly. " * 1_000),
        ChatMessage.assistant("Certainly. " * 1_000 + "🙂"),
        ChatMessage(role="assistant", contents=[CALL]),
        ChatMessage.tool("c", [{"leaves": "18:30", "platform": number, "late": [True, None]} for number in range(50)]),
    ],
    ids=["short", "long", "emoji", "call", "result"],
)
def test_what_is_remembered_takes_about_as_much_as_is_counted(message: ChatMessage) -> None:
    async def run() -> float:
        async with MemoryBackend() as backend:
            writer = StoredChatHistoryProvider(backend)
            session = writer.session("ann")
            await writer.set_messages(session, [message] * 200)
            records = (await backend.get("ann")).records
            history = StoredChatHistoryProvider(backend)
            gc.collect()
            tracemalloc.start()
            try:
                for given in await history.invoking(InvokingContext(None, session, [])):
                    given.model_dump()  # makes what is made late
                gc.collect()
                taken = tracemalloc.get_traced_memory()[0] + sum(len(each.payload) for each in records)
            finally:
                tracemalloc.stop()
            return taken / sum(map(size_of, records))

    assert 0.75 < asyncio.run(run()) < 1.25


class Compressing(MessageCodec):
    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [
            Record(zlib.compress(record.payload), f"{record.format}+zlib", record.payload)
            for record in await super().encode(key, messages)
        ]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        inner = [
            record._replace(payload=zlib.decompress(record.payload), format=record.format.partition("+")[0])
            for record in records
        ]
        return await super().decode(key, inner)


def test_what_a_codec_compresses_is_counted_as_it_is_remembered() -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            for codec in MessageCodec(), Compressing():
                history = StoredChatHistoryProvider(backend, codec=codec, max_remembered_bytes=100_000)
                session = history.session("ann")
                await history.set_messages(session, [ChatMessage.assistant("Certainly. " * 1_000)] * 20)
                remembered = [ref(message) for message in await history.messages(session)]
                gc.collect()
                assert sum(message() is not None for message in remembered) == 4  # of some 23,000 bytes each

    asyncio.run(run())


def test_a_codec_may_use_its_lists_again() -> None:
    class Again(MessageCodec):
        def __init__(self) -> None:
            super().__init__()
            self.group: list[ChatMessage] = []

        async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
            if len(records) != 1:
                return await super().decode(key, records)
            self.group[:] = (await super().decode(key, records))[0]
            return [self.group]

    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, codec=Again())
            session = history.session("ann")
            for text in "abc":
                async with history.turn(session, []) as turn:
                    turn.add(ChatMessage.assistant(text))
                assert await said(history, session) == [*"abc"[: "abc".index(text) + 1]]

            class KeepAll:
                async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
                    return [*messages, ChatMessage.user("d")]

            await history.compact(session, KeepAll(), archive=False)
            assert await said(history, session) == [*"abcd"]

    asyncio.run(run())


def test_a_remembered_message_is_nine_objects_to_the_garbage_collector() -> None:
    """Which looks at all of them again and again: it is most of what a long read costs."""

    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend)
            session = history.session("ann")
            await history.set_messages(session, [ChatMessage.user("Hi")] * 1_000)
            gc.collect()
            before = len(gc.get_objects())
            given = await history.invoking(InvokingContext(None, session, []))
            gc.collect()
            # group, origin, contents; message, content and marked copy, each with the dict of its members
            assert (len(gc.get_objects()) - before) / len(given) == pytest.approx(9, abs=0.2)

    asyncio.run(run())
