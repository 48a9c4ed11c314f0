"""What was read before is not decoded again, and is gone with what was taken away."""

import asyncio
import gc
from collections.abc import Sequence
from datetime import UTC, datetime
from weakref import ref

from chathistory_core import ChatMessage, MessageCodec, StoredChatHistoryProvider, StoredRecord
from chathistory_core.conversations.remembering import OVERHEAD, Remembered
from chathistory_memory import MemoryBackend

WHEN = datetime(2026, 1, 1, tzinfo=UTC)


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
    remembered = Remembered(most_bytes=2 * OVERHEAD + 10)
    for key in ("a", "b"):
        remembered.keep(key, record(1, b"12345"), ())
    assert remembered.known("a", [record(1, b"12345")])
    remembered.keep("c", record(1, b"12345"), ())
    assert [key for key in "abc" if remembered.known(key, [record(1, b"12345")])] == ["a", "c"]


def test_a_conversation_that_is_too_large_is_remembered_in_part() -> None:
    remembered = Remembered(most_bytes=2 * OVERHEAD + 10)
    for position in range(1, 5):
        remembered.keep("a", record(position, b"1234"), ())
    assert list(remembered.known("a", [record(position, b"1234") for position in range(1, 5)])) == [1, 2]
    remembered.keep("a", record(1, b"12345"), ())
    assert list(remembered.known("a", [record(1, b"12345")])) == [1]
