"""A payload that is no longer what its format says: told with its place, and nothing else is lost."""

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    ChatMessage,
    CorruptRecordError,
    MessageCodec,
    Record,
    StoredChatHistoryProvider,
    UnknownFormatError,
    iter_records,
    new_turn_id,
    open_backend,
)

CANARY = "the-content-nobody-may-see"
CORRUPT = (
    b"",
    b"\0" * 40,
    b"{",
    b"[]",
    b"null",
    b'"text"',
    f'{{"role": "user", "contents": [{{"$type": "text", "text": "{CANARY}"'.encode(),
    f'{{"contents": "{CANARY}"}}'.encode(),
    b'{"role": 1}',
    b"\xff\xfe" + CANARY.encode(),
    b"[" * 100_000,
)


@pytest.fixture(params=["memory://corrupt", "sqlite:///history.db"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    suffix = f"-{request.node.name}" if request.param.startswith("memory") else ""
    return f"{request.param}{suffix.replace('[', '-').replace(']', '')}"


async def readable(backend: ChatHistoryBackend, key: str) -> Sequence[str]:
    """What paging finds readable, record by record."""
    codec = MessageCodec()
    found = []
    async for record in iter_records(backend, key, page=2):
        try:
            ((message,),) = await codec.decode(key, [record])
        except CorruptRecordError as error:
            if error.position != record.position:
                raise
        else:
            found.append(message.text)
    return found


@pytest.mark.parametrize("payload", CORRUPT, ids=range(len(CORRUPT)))
def test_a_corrupt_payload_is_told_with_its_position_and_everything_else_stays(payload: bytes, url: str) -> None:
    async def scenario() -> None:
        async with open_backend(url) as backend:
            provider = StoredChatHistoryProvider(backend)
            session = provider.session("k")
            async with provider.turn(session, [ChatMessage.user("before")]):
                pass
            await backend.append("k", [Record(payload, "chat-message")], turn_id=new_turn_id())
            good = await MessageCodec().encode("k", [ChatMessage.user("behind 1"), ChatMessage.user("behind 2")])
            await backend.append("k", good, turn_id=new_turn_id())
            held = await backend.get("k")
            corrupt = held.records[1].position
            for reader in (provider, StoredChatHistoryProvider(backend)):
                for _ in range(2):
                    with pytest.raises(CorruptRecordError) as caught:
                        await reader.messages(reader.session("k"))
                    assert (caught.value.key, caught.value.position) == ("k", corrupt)
                    assert CANARY not in str(caught.value)
                    assert caught.value.__cause__ is None
                with pytest.raises(CorruptRecordError):
                    async with reader.turn(reader.session("k"), [ChatMessage.user("next")]):
                        pass
            assert await backend.get("k") == held
            assert await readable(backend, "k") == ["before", "behind 1", "behind 2"]
            newest = await provider.messages(session, limit=2)
            assert [message.text for message in newest] == ["behind 1", "behind 2"]
            assert not (await backend.append("k", good, turn_id="t")).replayed
            assert (await backend.get("k")).record_count == held.record_count + 2

    asyncio.run(scenario())


def test_an_unknown_format_is_told_and_everything_stays(url: str) -> None:
    async def scenario() -> None:
        async with open_backend(url) as backend:
            await backend.append("k", [Record(CANARY.encode(), "chat-message+zstd")], turn_id="t")
            held = await backend.get("k")
            provider = StoredChatHistoryProvider(backend)
            with pytest.raises(UnknownFormatError) as caught:
                await provider.messages(provider.session("k"))
            assert CANARY not in str(caught.value)
            assert await backend.get("k") == held

    asyncio.run(scenario())


def test_a_payload_that_was_overwritten_in_the_file_is_told_with_its_position(tmp_path: Path) -> None:
    path = tmp_path / "history.db"

    async def store() -> None:
        async with open_backend(f"sqlite:///{path}") as backend:
            good = await MessageCodec().encode("k", [ChatMessage.user(f"{CANARY} {number}") for number in range(5)])
            await backend.append("k", good, turn_id="t")

    async def check() -> None:
        async with open_backend(f"sqlite:///{path}") as backend:
            held = await backend.get("k")
            provider = StoredChatHistoryProvider(backend)
            with pytest.raises(CorruptRecordError) as caught:
                await provider.messages(provider.session("k"))
            assert caught.value.position == held.records[2].position
            assert CANARY not in str(caught.value)
            assert await readable(backend, "k") == [f"{CANARY} {number}" for number in (0, 1, 3, 4)]
            assert held.record_count == 5

    asyncio.run(store())
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("UPDATE chathistory_records SET payload = substr(payload, 1, 20) WHERE position = 3")
    connection.close()
    asyncio.run(check())
