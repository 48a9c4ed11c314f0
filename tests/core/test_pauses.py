"""Long decoding and encoding leave the event loop to others, as often as needed and no more often."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from time import perf_counter
from typing import Any

import pytest

from chathistory_core import ChatMessage, MessageCodec, StoredRecord
from chathistory_core.formats import chat_message
from chathistory_core.messages import Origin
from chathistory_core.pauses import SLICE


class Slow:
    """A format whose messages take a slice each."""

    name = "slow"

    def decode(self, payload: bytes) -> Sequence[ChatMessage]:
        work(SLICE)
        return (ChatMessage.user("Hi").with_origin(Origin(self.name, payload)),)


class SlowMessage(ChatMessage):
    """A message that takes a slice to look at."""

    @property
    def origin(self) -> Origin | None:
        work(SLICE)
        return None


def work(seconds: float) -> None:
    end = perf_counter() + seconds
    while perf_counter() < end:
        pass


def records(count: int, format_name: str, payload: bytes) -> list[StoredRecord]:
    return [StoredRecord(payload, format_name, n + 1, "t", datetime.now(UTC)) for n in range(count)]


def others_during(job: Callable[[], Awaitable[Any]]) -> tuple[int, float]:
    """How often another task ran while the job did, and how long the job took."""

    async def run() -> tuple[int, float]:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        start = perf_counter()
        await job()
        took = perf_counter() - start
        task.cancel()
        return turns, took

    return asyncio.run(run())


def decoding(count: int, format_name: str, payload: bytes) -> tuple[int, float]:
    codec = MessageCodec([chat_message, Slow()])
    stored = records(count, format_name, payload)
    return others_during(lambda: codec.decode("k", stored))


def encoding(count: int, message: ChatMessage) -> tuple[int, float]:
    return others_during(lambda: MessageCodec().encode("k", [message] * count))


@pytest.mark.parametrize(
    "measured", [lambda: decoding(20, "slow", b"{}"), lambda: encoding(20, SlowMessage.user("Hi"))]
)
def test_others_run_after_each_slice(measured: Callable[[], tuple[int, float]]) -> None:
    assert measured()[0] == 19


@pytest.mark.parametrize(
    "measured",
    [lambda: decoding(3_000, "chat-message", b'{"role":"user"}'), lambda: encoding(3_000, ChatMessage.user("Hi"))],
)
def test_others_run_no_more_often(measured: Callable[[], tuple[int, float]]) -> None:
    turns, took = measured()
    assert 0 < turns <= took / SLICE
