"""What a provider and a codec that encrypts make of real backends, beside what the kit's own tests ask of each."""

import asyncio
import re
import traceback
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    CorruptRecordError,
    TurnConflictError,
    UnknownFormatError,
    new_turn_id,
)
from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.testing.cipher import EncryptingCodec

MakeBackend = Callable[[], ChatHistoryBackend]

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant

OLD = {"k1": b"the first key"}
BOTH = {**OLD, "k2": b"the second key"}


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
