"""Obligation 10: the listing has an order, pages and prefixes."""

from collections.abc import Sequence
from random import Random

import pytest

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.records import Conversation, ConversationSummary, new_turn_id
from chathistory_core.testing.reads import HUGE
from chathistory_core.testing.scenario import keys_of, next_instant, records, say, with_backend

BY_CODE_POINT = [
    "\x01",
    "A",
    "B",
    "a",
    "a\x01",
    "a%",
    "a/",
    "a/b",
    "aA",
    "a_",
    "aa",
    "a\ud7ff",
    "a\ue000",
    "a\uffff",
    "a\U00010000",
    "a\U0001f600",
    "a\U0010ffff",
    "a\U0010ffff\U0010ffff",
    "b",
    "\x7f",
    "é",
    "\ud7ff",
    "\ue000",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "\U0010ffffz",
]
"""Keys in the order of code points, which neither UTF-16, nor a locale, nor a case-blind comparison gives."""


class SummaryTests:
    """What a summary tells, and in which order."""

    @with_backend
    async def test_an_empty_store_lists_nothing(self, backend: ChatHistoryBackend) -> None:
        assert list(await backend.summaries()) == []
        assert list(await backend.summaries(prefix="a", limit=3, order="recent")) == []

    @with_backend
    async def test_a_summary_is_the_head_that_get_tells(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        await say(backend, "k", "c")
        await backend.replace("replaced", records("x"), turn_id=new_turn_id())
        for summary in await backend.summaries():
            assert type(summary) is ConversationSummary
            assert await backend.get(summary.key, limit=0) == Conversation(*summary)

    @with_backend
    async def test_keys_are_listed_by_code_point(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, BY_CODE_POINT)
        assert keys_of(await backend.summaries()) == BY_CODE_POINT

    @with_backend
    async def test_recent_lists_the_newest_update_first_and_equal_ones_by_key(
        self, backend: ChatHistoryBackend
    ) -> None:
        await _fill(backend, BY_CODE_POINT)
        found = await backend.summaries(order="recent")
        assert sorted(keys_of(found)) == sorted(BY_CODE_POINT)
        assert list(found) == _by_recency(found)

    @with_backend
    async def test_a_write_moves_its_conversation_to_the_front_of_recent(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, ["c", "b", "a"])
        await next_instant()
        await say(backend, "b", "again")
        await next_instant()
        await backend.replace("c", [], turn_id=new_turn_id())
        for limit in (None, 3, 2):  # a store may have a way of its own for a page
            assert keys_of(await backend.summaries(order="recent", limit=limit))[:2] == ["c", "b"], limit

    @with_backend
    async def test_an_unknown_order_is_refused(self, backend: ChatHistoryBackend) -> None:
        with pytest.raises(ValueError, match="order"):
            await backend.summaries(order="oldest")  # type: ignore[arg-type] # a wrong value is what is tested


class PageTests:
    """Pages give each conversation once."""

    @with_backend
    async def test_pages_together_are_the_whole_listing(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, BY_CODE_POINT)
        orders: tuple[Order, ...] = ("key", "recent")
        for order in orders:
            whole = list(await backend.summaries(order=order))
            for limit in (1, 2, 5, len(whole) - 1, len(whole), len(whole) + 1):
                assert await _paged(backend, prefix="", limit=limit, order=order) == whole, (limit, order)

    @with_backend
    async def test_pages_of_a_prefix_together_are_its_listing(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, BY_CODE_POINT)
        orders: tuple[Order, ...] = ("key", "recent")
        for order in orders:
            whole = list(await backend.summaries(prefix="a", order=order))
            assert len(whole) == 15
            assert await _paged(backend, prefix="a", limit=4, order=order) == whole

    @with_backend
    async def test_a_limit_of_0_lists_nothing_and_a_huge_one_everything(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, ["a", "b"])
        assert list(await backend.summaries(limit=0)) == []
        for huge in HUGE:
            assert keys_of(await backend.summaries(limit=huge)) == ["a", "b"]
            assert len(await backend.summaries(limit=huge, order="recent")) == 2

    @with_backend
    async def test_a_negative_limit_is_refused(self, backend: ChatHistoryBackend) -> None:
        with pytest.raises(ValueError, match="limit"):
            await backend.summaries(limit=-1)

    @with_backend
    async def test_a_page_goes_on_behind_a_conversation_that_was_cleared(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, ["a", "b", "c", "d"])
        orders: tuple[Order, ...] = ("key", "recent")
        for order, cleared in zip(orders, ("b", "c"), strict=True):
            whole = await backend.summaries(order=order)
            (last,) = [summary for summary in whole if summary.key == cleared]
            rest = list(whole)[list(whole).index(last) + 1 :]
            await backend.clear(cleared)
            assert list(await backend.summaries(after=last, order=order)) == rest

    @with_backend
    async def test_a_page_goes_on_behind_a_key_outside_its_prefix(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, ["a", "m/1", "m/2", "z"])
        whole = {summary.key: summary for summary in await backend.summaries()}
        assert keys_of(await backend.summaries(prefix="m/", after=whole["a"])) == ["m/1", "m/2"]
        assert keys_of(await backend.summaries(prefix="m/", after=whole["z"])) == []

    @with_backend
    async def test_conversations_that_stay_are_listed_once_while_others_come_and_go(
        self, backend: ChatHistoryBackend
    ) -> None:
        stay = [f"{number:02}" for number in range(0, 40, 2)]
        await _fill(backend, stay)
        found: list[str] = []
        after = None
        number = 1
        while page := await backend.summaries(after=after, limit=3):
            assert not {*keys_of(page)} & {*found}, "a conversation came twice"
            found += keys_of(page)
            after = page[-1]
            await say(backend, f"{number:02}", "new")
            await backend.clear(f"{number - 2:02}" if number > 2 else "none")
            number += 2
        assert [key for key in found if key in stay] == stay


class PrefixTests:
    """A prefix is text, no pattern."""

    @with_backend
    async def test_a_prefix_lists_the_keys_that_begin_with_it(self, backend: ChatHistoryBackend) -> None:
        await _fill(backend, BY_CODE_POINT)
        prefixes = ["", "a", "a\uffff", "a\ud7ff", "a\U0010ffff", "\ud7ff", "\uffff", "\U0010ffff", "é", "e", "A", "zz"]
        for prefix in prefixes:
            wanted = [key for key in BY_CODE_POINT if key.startswith(prefix)]
            assert keys_of(await backend.summaries(prefix=prefix)) == wanted, prefix
            assert sorted(keys_of(await backend.summaries(prefix=prefix, order="recent"))) == sorted(wanted), prefix

    @with_backend
    async def test_pattern_characters_in_a_prefix_stand_for_themselves(self, backend: ChatHistoryBackend) -> None:
        keys = sorted(["%", "%a", "_", "_a", "*", "*a", "?", "?a", "[a]", "[a]b", "\\", "\\%", "\\_", "a", "a%", "a_b"])
        await _fill(backend, keys)
        for prefix in ("%", "_", "*", "?", "[", "[a]", "\\", "\\%", "a%", "a_", "a*", "^a", "a$", ".", "'", '"'):
            wanted = [key for key in keys if key.startswith(prefix)]
            assert keys_of(await backend.summaries(prefix=prefix)) == wanted, prefix

    @with_backend
    async def test_a_prefix_may_be_as_long_as_a_key(self, backend: ChatHistoryBackend) -> None:
        keys = ["k" * 511, "k" * 512, "\U0010ffff" * 128]
        await _fill(backend, keys)
        assert keys_of(await backend.summaries(prefix="k" * 511)) == keys[:2]
        assert keys_of(await backend.summaries(prefix="k" * 512)) == keys[1:2]
        assert keys_of(await backend.summaries(prefix="\U0010ffff" * 128)) == keys[2:]


async def _fill(backend: ChatHistoryBackend, keys: Sequence[str]) -> None:
    for key in Random(1).sample(keys, len(keys)):  # noqa: S311 - an order, not a secret
        await say(backend, key, "a")


def _by_recency(summaries: Sequence[ConversationSummary]) -> list[ConversationSummary]:
    by_key = sorted(summaries, key=lambda summary: summary.key)
    return sorted(by_key, key=lambda summary: summary.updated_at, reverse=True)


async def _paged(backend: ChatHistoryBackend, *, prefix: str, limit: int, order: Order) -> list[ConversationSummary]:
    found: list[ConversationSummary] = []
    after = None
    while True:
        page = await backend.summaries(prefix=prefix, after=after, limit=limit, order=order)
        assert len(page) <= limit
        assert not {*keys_of(page)} & {*keys_of(found)}, "a conversation came twice"
        found += page
        if len(page) < limit:
            return found
        after = page[-1]
