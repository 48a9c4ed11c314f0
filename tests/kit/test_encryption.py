"""A codec that encrypts, over real backends: what fingerprints, keys and format names are for.

The cipher here is a test double out of the standard library. Use a real one.
"""

import asyncio
import hashlib
import hmac
import re
import traceback
from collections.abc import Callable, Coroutine, Sequence
from itertools import count
from secrets import token_bytes
from typing import Any

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    CorruptRecordError,
    Record,
    StoredRecord,
    TurnConflictError,
    UnknownFormatError,
    new_turn_id,
)
from chathistory_core.codec import MessageCodec
from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage
from chathistory_core.stored import StoredChatHistoryProvider

MakeBackend = Callable[[], ChatHistoryBackend]

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant

OLD = {"k1": b"the first key"}
BOTH = {**OLD, "k2": b"the second key"}


def digest(key: bytes, *parts: bytes) -> bytes:
    made = hmac.new(key, digestmod=hashlib.sha256)
    for part in parts:
        made.update(len(part).to_bytes(8, "big") + part)
    return made.digest()


class ToyCipher:
    """Not for use: a keystream of HMAC-SHA256 and a seal over nonce, conversation, format and text."""

    def __init__(self, key: bytes) -> None:
        self._stream = digest(key, b"stream")
        self._seal = digest(key, b"seal")

    def close(self, plain: bytes, *bound: bytes) -> bytes:
        nonce = token_bytes(16)
        hidden = self._mixed(nonce, plain)
        return nonce + digest(self._seal, nonce, hidden, *bound) + hidden

    def open(self, sealed: bytes, *bound: bytes) -> bytes | None:
        nonce, seal, hidden = sealed[:16], sealed[16:48], sealed[48:]
        whole = hmac.compare_digest(seal, digest(self._seal, nonce, hidden, *bound))
        return self._mixed(nonce, hidden) if whole else None

    def _mixed(self, nonce: bytes, text: bytes) -> bytes:
        stream = b""
        for number in count():
            if len(stream) >= len(text):
                return bytes(one ^ other for one, other in zip(text, stream, strict=False))
            stream += digest(self._stream, nonce, number.to_bytes(8, "big"))
        raise AssertionError


class EncryptingCodec:
    """Adds `+test-enc.<key id>` to the format; the fingerprint's key never changes."""

    def __init__(self, keys: dict[str, bytes], *, fingerprints: bool = True) -> None:
        self._ciphers = {name: ToyCipher(key) for name, key in keys.items()}
        self._current = list(keys)[-1]
        self._fingerprints = fingerprints
        self._inner = MessageCodec()

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        return [
            Record(
                self._ciphers[self._current].close(plain, key.encode(), format_name.encode()),
                f"{format_name}+test-enc.{self._current}",
                digest(b"a key that stays", key.encode(), plain) if self._fingerprints else None,
            )
            for plain, format_name, _ in await self._inner.encode(key, messages)
        ]

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        return await self._inner.decode(key, [self._opened(key, record) for record in records])

    def _opened(self, key: str, record: StoredRecord) -> StoredRecord:
        inner, _, encoding = record.format.rpartition("+")
        name, _, key_id = encoding.partition(".")
        cipher = self._ciphers.get(key_id)
        if name != "test-enc" or cipher is None:
            raise UnknownFormatError(record.format, tuple(f"…+test-enc.{each}" for each in self._ciphers))
        plain = cipher.open(record.payload, key.encode(), inner.encode())
        if plain is None:
            raise CorruptRecordError(key, record.position, "the seal is broken")
        return record._replace(payload=plain, format=inner)


def run(make_backend: MakeBackend, work: Callable[[ChatHistoryBackend], Coroutine[Any, Any, None]]) -> None:
    async def opened() -> None:
        async with make_backend() as backend:
            await work(backend)

    asyncio.run(opened())


def history_of(backend: ChatHistoryBackend, keys: dict[str, bytes]) -> StoredChatHistoryProvider:
    return StoredChatHistoryProvider(backend, codec=EncryptingCodec(keys))


async def write(backend: ChatHistoryBackend, codec: EncryptingCodec, *texts: str, turn_id: str) -> bool:
    """Append the messages to conversation `k`; whether they were stored already."""
    records = await codec.encode("k", [USER(text) for text in texts])
    return (await backend.append("k", records, turn_id=turn_id)).replayed


async def texts(backend: ChatHistoryBackend, codec: EncryptingCodec, key: str = "k") -> list[str]:
    groups = await codec.decode(key, (await backend.get(key)).records)
    return [message.text for group in groups for message in group]


def test_no_two_encodings_of_a_message_are_the_same_and_none_shows_it(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD)
        for number in range(10):
            await write(backend, codec, "yes, of course", turn_id=f"t{number}")
        payloads = {record.payload for record in (await backend.get("k")).records}
        assert len(payloads) == 10
        assert not any(b"course" in payload for payload in payloads)
        assert await texts(backend, codec) == ["yes, of course"] * 10

    run(make_backend, work)


def test_a_retry_that_is_encrypted_anew_is_a_replay(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD)
        assert not await write(backend, codec, "a", "b", turn_id="t")
        assert await write(backend, codec, "a", "b", turn_id="t")
        assert await texts(backend, codec) == ["a", "b"]

    run(make_backend, work)


def test_a_retry_under_a_new_key_is_a_replay(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        await write(backend, EncryptingCodec(OLD), "a", turn_id="t")
        assert await write(backend, EncryptingCodec(BOTH), "a", turn_id="t")
        assert (await backend.get("k")).record_count == 1

    run(make_backend, work)


def test_other_messages_under_a_stored_turn_are_a_conflict(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD)
        await write(backend, codec, "a", turn_id="t")
        with pytest.raises(TurnConflictError):
            await write(backend, codec, "b", turn_id="t")

    run(make_backend, work)


def test_without_fingerprints_a_retry_that_is_encrypted_anew_would_be_a_conflict(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD, fingerprints=False)
        await write(backend, codec, "a", turn_id="t")
        with pytest.raises(TurnConflictError):
            await write(backend, codec, "a", turn_id="t")

    run(make_backend, work)


def test_a_turn_of_a_provider_is_known_again_after_its_key_was_changed(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        before, after = history_of(backend, OLD), history_of(backend, BOTH)
        async with before.turn(before.session("k"), [USER("q")], turn_id="t") as turn:
            turn.add(ASSISTANT("a"))
        async with after.turn(after.session("k"), [USER("q")], turn_id="t") as turn:
            assert turn.replayed
            assert turn.answer is not None
            assert [message.text for message in turn.answer] == ["a"]
        assert await after.count("k") == 2

    run(make_backend, work)


def test_records_of_all_keys_are_read_together_and_without_a_key_the_format_is_unknown(
    make_backend: MakeBackend,
) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        await write(backend, EncryptingCodec(OLD), "a", turn_id="t1")
        await write(backend, EncryptingCodec(BOTH), "b", turn_id="t2")
        assert await texts(backend, EncryptingCodec(BOTH)) == ["a", "b"]
        with pytest.raises(UnknownFormatError) as caught:
            await texts(backend, EncryptingCodec(OLD))
        assert caught.value.format == "chat-message+test-enc.k2"
        assert (await backend.get("k")).record_count == 2

    run(make_backend, work)


def test_rotating_the_keys_of_what_is_stored_is_reading_and_replacing(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        old = history_of(backend, OLD)
        await old.set_messages(old.session("k"), [USER("a"), ASSISTANT("b")])
        new = history_of(backend, BOTH)
        session = new.session("k")
        held = await new.messages(session)
        await new.set_messages(session, held, expected_revision=held.revision)
        assert {record.format for record in (await backend.get("k")).records} == {"chat-message+test-enc.k2"}
        later = history_of(backend, {"k2": BOTH["k2"]})
        assert [message.text for message in await later.messages(later.session("k"))] == ["a", "b"]

    run(make_backend, work)


def test_format_names_are_those_of_the_messages_and_the_encoding(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        history = history_of(backend, BOTH)
        theirs = openai_chat.load({"role": "user", "content": "from a client"})
        await history.set_messages(history.session("k"), [USER("ours"), *theirs])
        formats = [record.format for record in (await backend.get("k")).records]
        assert formats == ["chat-message+test-enc.k2", "openai-chat+test-enc.k2"]
        grammar = r"[a-z0-9-]+(\+[a-z0-9-]+(\.[A-Za-z0-9_-]+)?)*"
        assert all(re.fullmatch(grammar, name) for name in formats)
        found = await history.messages(history.session("k"))
        assert [message.text for message in found] == ["ours", "from a client"]
        assert openai_chat.dump(found[1:]) == [{"role": "user", "content": "from a client"}]

    run(make_backend, work)


def test_a_record_that_is_moved_to_another_conversation_does_not_decode(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD)
        await write(backend, codec, "for Ann alone", turn_id="t")
        stolen = [record.record for record in (await backend.get("k")).records]
        await backend.append("another", stolen, turn_id=new_turn_id())
        with pytest.raises(CorruptRecordError) as caught:
            await texts(backend, codec, "another")
        assert (caught.value.key, caught.value.position) == ("another", 1)
        assert await texts(backend, codec) == ["for Ann alone"]

    run(make_backend, work)


@pytest.mark.parametrize("place", [0, 20, -1], ids=["nonce", "seal", "text"])
def test_a_changed_record_is_corrupt_by_its_position_and_shows_nothing(make_backend: MakeBackend, place: int) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        codec = EncryptingCodec(OLD)
        good, bad = await codec.encode("k", [USER("the good one"), USER("the bad one")])
        payload = bytearray(bad.payload)
        payload[place] ^= 1
        await backend.append("k", [good, bad._replace(payload=bytes(payload))], turn_id=new_turn_id())
        history = history_of(backend, OLD)
        with pytest.raises(CorruptRecordError) as caught:
            await history.messages(history.session("k"))
        assert (caught.value.key, caught.value.position) == ("k", 2)
        assert " one" not in "".join(traceback.format_exception(caught.value))
        assert (await backend.get("k")).record_count == 2

    run(make_backend, work)


def test_a_wrong_key_reads_nothing_and_takes_nothing_away(make_backend: MakeBackend) -> None:
    async def work(backend: ChatHistoryBackend) -> None:
        right, wrong = history_of(backend, OLD), history_of(backend, {"k1": b"a wrong key"})
        await right.set_messages(right.session("k"), [USER(str(number)) for number in range(5)])
        with pytest.raises(CorruptRecordError):
            await wrong.messages(wrong.session("k"))
        assert await wrong.count("k") == 5
        assert [message.text for message in await right.messages(right.session("k"))] == ["0", "1", "2", "3", "4"]

    run(make_backend, work)
