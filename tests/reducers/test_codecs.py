"""Summaries and copies go through the codec like messages: what is encrypted there stays so."""

import hashlib
from collections.abc import Sequence

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    CorruptRecordError,
    MessageCodec,
    Record,
    StoredChatHistoryProvider,
    StoredRecord,
)
from chathistory_core.formats import chat_message, note
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import CountingReducer

from .between import AtTheLastMoment
from .talk import ASSISTANT, USER, MakeBackend, Model, held, notes, reducer, run, seen


class SealingCodec:
    """Not for use: hides payloads from a reader's eye, each differently, and binds them to the conversation's key."""

    def __init__(self) -> None:
        self._inner = MessageCodec()
        self._count = 0

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        records = await self._inner.encode(key, messages)
        return [Record(self._closed(key, payload), f"{name}+test-seal", None) for payload, name, _ in records]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        return await self._inner.decode(key, [self._opened(key, record) for record in records])

    def _closed(self, key: str, payload: bytes) -> bytes:
        self._count += 1
        return hashlib.sha256(key.encode()).digest() + bytes([self._count % 256]) + payload.hex().encode()

    def _opened(self, key: str, record: StoredRecord) -> StoredRecord:
        if record.payload[:32] != hashlib.sha256(key.encode()).digest():
            raise CorruptRecordError(key, record.position, "it is another conversation's")
        return record._replace(
            payload=bytes.fromhex(record.payload[33:].decode()), format=record.format.removesuffix("+test-seal")
        )


async def begin(history: StoredChatHistoryProvider, *, turns: int = 3) -> None:
    messages = [one for number in range(1, turns + 1) for one in (USER(f"q{number}"), ASSISTANT(f"a{number}"))]
    await history.set_messages(history.session("k"), messages)


def test_a_summary_is_sealed_like_the_messages_and_found_again(make_backend: MakeBackend, model: Model) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, codec=SealingCodec(), reducer=reducer(model))
        await begin(history)
        for _ in range(2):
            assert await seen(history) == ["[Summary]\n<q1 a1 q2 a2>", "q3", "a3"]
        found = await backend.get("k")
        assert notes(found) == 1
        assert found.records[-1].format == "chathistory-note+test-seal"
        assert not any(b"a1" in record.payload for record in found.records)

    run(make_backend, work)
    assert len(model.asked) == 1


def test_a_copy_is_sealed_for_its_own_key_and_kept_records_stay_as_they_are(
    make_backend: MakeBackend, model: Model
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = SealingCodec()
        history = StoredChatHistoryProvider(backend, codec=codec, reducer=reducer(model))
        await begin(history)
        await seen(history)
        before = (await backend.get("k")).records
        for _ in range(2):
            await history.compact(history.session("k"), CountingReducer(2))
        after = (await backend.get("k")).records
        assert [record.record for record in after] == [record.record for record in before[4:6]]
        assert await held(history) == ["q3", "a3"]
        assert await held(history, key="k.archive.1") == ["q1", "a1", "q2", "a2", "q3", "a3"]
        assert await seen(history, key="k.archive.1") == ["[Summary]\n<q1 a1 q2 a2>", "q3", "a3"]

    run(make_backend, work)
    assert len(model.asked) == 1


def test_several_copy_at_once_though_no_two_of_their_records_are_the_same(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, codec=SealingCodec())
        session = history.session("k")
        await begin(history, turns=9)
        late = AtTheLastMoment(backend)
        late.before, late.action = "append", lambda: history.compact(session, CountingReducer(2))
        done = await StoredChatHistoryProvider(late, codec=SealingCodec()).compact(session, CountingReducer(2))
        assert done.written is not None
        assert done.written.replayed
        assert await held(history) == ["q9", "a9"]
        assert {one.key for one in await history.summaries()} == {"k", "k.archive.1"}
        assert len(await held(history, key="k.archive.1")) == 18

    run(make_backend, work)


class Silent:
    """A format of somebody else's, of records without messages."""

    name = "test-silent"

    def decode(self, payload: bytes) -> Sequence[ChatMessage]:
        return ()


def test_records_without_messages_stay_and_are_copied(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, codec=MessageCodec([chat_message, note, Silent()]))
        await begin(history)
        await backend.append("k", [Record(b"theirs", "test-silent")], turn_id="T")
        before = [(record.payload, record.format) for record in (await backend.get("k")).records]
        await history.compact(history.session("k"), CountingReducer(2))
        assert [(record.payload, record.format) for record in (await backend.get("k")).records] == before[4:]
        assert [(record.payload, record.format) for record in (await backend.get("k.archive.1")).records] == before

    run(make_backend, work)


class NotelessCodec:
    """Writes every message anew as its own JSON: it knows no origins, and so no notes."""

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [Record(chat_message.encode(message), chat_message.name) for message in messages]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        return [chat_message.decode(record.payload) for record in records]


def test_with_a_codec_that_writes_no_notes_a_summary_is_shown_and_not_kept(
    model: Model, make_backend: MakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = StoredChatHistoryProvider(backend, codec=NotelessCodec(), reducer=reducer(model))
        await begin(history)
        assert await seen(history) == ["[Summary]\n<q1 a1 q2 a2>", "q3", "a3"]
        assert await held(history) == ["q1", "a1", "q2", "a2", "q3", "a3"]

    run(make_backend, work)
    assert "writes no notes" in caplog.text
