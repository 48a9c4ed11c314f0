"""Obligation 12, and 5 by fingerprints, with a codec that encrypts: no two encodings of a message are the same."""

import re
from itertools import chain

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import CorruptRecordError, RevisionConflictError, TurnConflictError
from chathistory_core.messages import ChatMessage
from chathistory_core.records import Written, new_turn_id
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.testing.cipher import EncryptingCodec
from chathistory_core.testing.scenario import with_backend

OLD = {"k1": b"the first key"}
BOTH = {**OLD, "k2": b"the second key"}

TEXTS = ["yes", "yes", "", "\0 NUL, é, שלום, 😀", "x" * 5_000]

NAME = r"[a-z0-9-]+(\+[a-z0-9-]+(\.[A-Za-z0-9_-]+)?)*"
"""What a format may be called."""


class EncryptionTests:
    """Records that are encrypted come back as they were, and a retry is known although its bytes are others."""

    @with_backend
    async def test_encrypted_messages_come_back_and_no_record_shows_or_repeats_one(
        self, backend: ChatHistoryBackend
    ) -> None:
        codec = EncryptingCodec(OLD)
        await _say(backend, codec, *TEXTS)
        await _say(backend, codec, *TEXTS)
        assert await _texts(backend, codec) == TEXTS * 2
        held = (await backend.get("k")).records
        assert len({record.payload for record in held}) == len(held)
        assert not any(b"xxxxxxxx" in record.payload for record in held)
        assert {record.format for record in held} == {"chat-message+test-enc.k1"}
        assert all(re.fullmatch(NAME, record.format) for record in held)

    @with_backend
    async def test_a_retry_that_is_encrypted_anew_or_under_a_new_key_is_a_replay(
        self, backend: ChatHistoryBackend
    ) -> None:
        first = await _say(backend, EncryptingCodec(OLD), *TEXTS, turn_id="t")
        for keys in (OLD, BOTH):
            again = await _say(backend, EncryptingCodec(keys), *TEXTS, turn_id="t")
            assert again == first._replace(replayed=True)
        assert await _texts(backend, EncryptingCodec(OLD)) == TEXTS
        with pytest.raises(TurnConflictError):
            await _say(backend, EncryptingCodec(OLD), *TEXTS[:-1], "another", turn_id="t")

    @with_backend
    async def test_records_of_an_old_and_a_new_key_stand_beside_each_other(self, backend: ChatHistoryBackend) -> None:
        await _say(backend, EncryptingCodec(OLD), "a")
        await _say(backend, EncryptingCodec(BOTH), "b")
        assert await _texts(backend, EncryptingCodec(BOTH)) == ["a", "b"]
        held = (await backend.get("k")).records
        assert [record.format for record in held] == ["chat-message+test-enc.k1", "chat-message+test-enc.k2"]

    @with_backend
    async def test_what_is_stored_can_be_encrypted_under_a_new_key(self, backend: ChatHistoryBackend) -> None:
        old = _history(backend, OLD)
        await old.set_messages(old.session("k"), [ChatMessage.user(text) for text in TEXTS])
        new = _history(backend, BOTH)
        held = await new.messages(new.session("k"))
        await new.set_messages(new.session("k"), held, expected_revision=held.revision)
        with pytest.raises(RevisionConflictError):
            await old.set_messages(old.session("k"), held, expected_revision=held.revision)
        later = EncryptingCodec({"k2": BOTH["k2"]})
        assert await _texts(backend, later) == TEXTS

    @with_backend
    async def test_a_record_that_is_moved_to_another_conversation_does_not_decode(
        self, backend: ChatHistoryBackend
    ) -> None:
        codec = EncryptingCodec(OLD)
        await _say(backend, codec, "for Ann alone")
        moved = [record.record for record in (await backend.get("k")).records]
        await backend.append("another", moved, turn_id=new_turn_id())
        with pytest.raises(CorruptRecordError) as caught:
            await codec.decode("another", (await backend.get("another")).records)
        assert caught.value.key == "another"
        assert await _texts(backend, codec) == ["for Ann alone"]


def _history(backend: ChatHistoryBackend, keys: dict[str, bytes]) -> StoredChatHistoryProvider:
    return StoredChatHistoryProvider(backend, codec=EncryptingCodec(keys))


async def _say(backend: ChatHistoryBackend, codec: EncryptingCodec, *texts: str, turn_id: str | None = None) -> Written:
    """Append a message for each text to conversation `k`."""
    records = await codec.encode("k", [ChatMessage.user(text) for text in texts])
    return await backend.append("k", records, turn_id=turn_id or new_turn_id())


async def _texts(backend: ChatHistoryBackend, codec: EncryptingCodec) -> list[str]:
    groups = await codec.decode("k", (await backend.get("k")).records)
    return [message.text for message in chain.from_iterable(groups)]
