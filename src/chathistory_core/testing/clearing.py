"""Obligations 8 and 9: empty conversations, and what is gone."""

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import RevisionConflictError
from chathistory_core.reading import erase
from chathistory_core.records import NO_REVISION, Conversation, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, keys_of, records, say, texts_of, with_backend


class ReplaceTests:
    """`replace` puts records in the place of those that are there, also none."""

    @with_backend
    async def test_replacing_takes_the_old_records_away(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b", "c")
        written = await backend.replace("k", records("x"), turn_id="t")
        found = await backend.get("k")
        assert texts_of(found) == ["x"]
        assert (found.record_count, found.revision, found.records[0].turn_id) == (1, written.revision, "t")

    @with_backend
    async def test_replacing_an_unknown_key_begins_a_conversation(self, backend: ChatHistoryBackend) -> None:
        await backend.replace("k", records("x", "y"), turn_id="t")
        assert texts_of(await backend.get("k")) == ["x", "y"]
        assert keys_of(await backend.summaries()) == ["k"]

    @with_backend
    async def test_replacing_one_conversation_leaves_the_others(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        await say(backend, "k2", "b")
        await backend.replace("k", records("x"), turn_id="t")
        assert texts_of(await backend.get("k2")) == ["b"]

    @with_backend
    async def test_appending_nothing_is_refused(self, backend: ChatHistoryBackend) -> None:
        with pytest.raises(ValueError, match="nothing"):
            await backend.append("k", [], turn_id="t")
        assert await backend.get("k") == Conversation("k")
        assert not (await say(backend, "k", "a", turn_id="t")).replayed

    @with_backend
    async def test_replacing_with_nothing_leaves_an_empty_conversation(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        written = await backend.replace("k", [], turn_id="t")
        found = await backend.get("k")
        assert found.records == ()
        assert (found.revision, found.epoch, found.record_count) == (written.revision, written.epoch, 0)
        assert found.revision != NO_REVISION
        assert found.created_at is not None

    @with_backend
    async def test_an_empty_conversation_is_listed_with_count_0(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "emptied", "a")
        await backend.replace("emptied", [], turn_id="t")
        await backend.replace("begun empty", [], turn_id="t")
        assert [(each.key, each.record_count) for each in await backend.summaries()] == [
            ("begun empty", 0),
            ("emptied", 0),
        ]

    @with_backend
    async def test_an_empty_conversation_goes_on(self, backend: ChatHistoryBackend) -> None:
        empty = await backend.replace("k", [], turn_id="t")
        written = await backend.append("k", records("a"), turn_id="u", expected_revision=empty.revision)
        assert written.epoch == empty.epoch
        assert texts_of(await backend.get("k", after=0)) == ["a"]


class ClearTests:
    """`clear` takes everything of one conversation, and nothing else."""

    @with_backend
    async def test_clearing_says_whether_there_was_something(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        await backend.replace("empty", [], turn_id="t")
        assert await backend.clear("k") is True
        assert await backend.clear("k") is False
        assert await backend.clear("empty") is True
        assert await backend.clear("unknown") is False

    @with_backend
    async def test_what_is_cleared_is_neither_read_nor_listed(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        await backend.clear("k")
        assert await backend.get("k") == Conversation("k")
        assert keys_of(await backend.summaries()) == []
        assert keys_of(await backend.summaries(order="recent")) == []

    @with_backend
    async def test_a_new_start_holds_nothing_that_was_cleared(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b", "c")
        await backend.clear("k")
        await say(backend, "k", "new")
        found = await backend.get("k")
        assert texts_of(found) == ["new"]
        assert found.record_count == 1
        assert texts_of(await backend.get("k", after=0)) == ["new"]

    @with_backend
    async def test_clearing_forgets_the_turns(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a", turn_id="t")
        await say(backend, "k", "b", turn_id="u")
        await backend.clear("k")
        again = await say(backend, "k", "b", turn_id="t")
        assert not again.replayed
        assert again.revision != first.revision
        assert not (await say(backend, "k", "b", turn_id="u")).replayed
        assert texts_of(await backend.get("k")) == ["b", "b"]

    @with_backend
    async def test_clearing_one_conversation_leaves_its_neighbours(self, backend: ChatHistoryBackend) -> None:
        keys = ["k", "k/", "k/1", "k%", "k_", "k*", "K", "k ", "kk"]
        for key in keys:
            await say(backend, key, key, turn_id="t")
        await backend.clear("k")
        for key in keys[1:]:
            assert texts_of(await backend.get(key)) == [key]
            assert (await say(backend, key, key, turn_id="t")).replayed

    @with_backend
    async def test_clearing_at_another_revision_is_refused(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        before = await backend.get("k")
        for expected in ("another", NO_REVISION):
            with pytest.raises(RevisionConflictError):
                await backend.clear("k", expected_revision=expected)
        assert await backend.get("k") == before

    @with_backend
    async def test_clearing_what_does_not_exist_is_false_whatever_was_expected(
        self, backend: ChatHistoryBackend
    ) -> None:
        old = await say(backend, "k", "a")
        await backend.clear("k")
        for expected in (None, NO_REVISION, old.revision, "another"):
            assert await backend.clear("k", expected_revision=expected) is False

    @in_loop
    async def test_what_is_cleared_is_gone_for_every_handle_and_after_closing(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as one, make_backend() as other:
            await say(one, "k", "a", turn_id="t")
            assert texts_of(await other.get("k")) == ["a"]
            await one.clear("k")
            assert await other.get("k") == Conversation("k")
            assert await other.clear("k") is False
        async with make_backend() as third:
            assert await third.get("k") == Conversation("k")
            assert keys_of(await third.summaries()) == []

    @with_backend
    async def test_erasing_a_prefix_clears_and_counts_all_under_it(self, backend: ChatHistoryBackend) -> None:
        for key in ("ann/1", "ann/2", "ann/", "anna/1", "ann", "ann%2F", "Ann/1"):
            await say(backend, key, "a")
        assert await erase(backend, "ann/") == 3
        assert keys_of(await backend.summaries()) == ["Ann/1", "ann", "ann%2F", "anna/1"]
        assert await erase(backend, "ann/") == 0

    @with_backend
    async def test_erasing_takes_pattern_characters_as_they_are(self, backend: ChatHistoryBackend) -> None:
        keys = ["a%b", "a_b", "a*b", "a?b", "a[b]b", "a\\b", "axb", "ab"]
        for key in keys:
            await say(backend, key, "a")
        for prefix in ("a%", "a_", "a*", "a?", "a[b]", "a\\"):
            assert await erase(backend, prefix) == 1, prefix
        assert keys_of(await backend.summaries()) == ["ab", "axb"]

    @with_backend
    async def test_erasing_everything_has_to_be_said(self, backend: ChatHistoryBackend) -> None:
        for key in "a", "b":
            await backend.replace(key, records("x"), turn_id=new_turn_id())
        with pytest.raises(ValueError, match="everything"):
            await erase(backend, "")
        assert await erase(backend, "", everything=True) == 2
        assert keys_of(await backend.summaries()) == []
