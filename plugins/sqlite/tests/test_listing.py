"""Pages of the newest under a prefix: found in one way among few conversations, and in another among many."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from chathistory_core import ChatHistoryBackend, ConversationSummary
from chathistory_sqlite import SQLiteBackend


@pytest.mark.parametrize("count", [999, 1_000, 1_001, 1_100])
def test_the_newest_under_a_prefix_are_its_listing_in_another_order(
    path: Path, fill: Callable[[ChatHistoryBackend, str, int], Awaitable[None]], count: int
) -> None:
    async def scenario() -> None:
        async with SQLiteBackend.from_path(path, synchronous="NORMAL") as backend:
            for prefix, conversations in ("a/", 50), ("b/", count), ("b0", 50):
                await fill(backend, prefix, conversations)
            listed = await backend.summaries(prefix="b/")
            assert len(listed) == count
            expected = sorted(sorted(listed), key=lambda summary: summary.updated_at, reverse=True)

            found: list[ConversationSummary] = []
            while page := await backend.summaries(
                prefix="b/", order="recent", after=found[-1] if found else None, limit=100
            ):
                found += page
            assert len(found) == count
            assert found == expected
            assert list(await backend.summaries(prefix="b/", order="recent")) == expected

    asyncio.run(scenario())
