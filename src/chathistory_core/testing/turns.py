"""Obligation 5: a turn is written once."""

import asyncio

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import TurnConflictError
from chathistory_core.records import Record, Written, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, records, say, texts_of, with_backend


class ReplayTests:
    """A turn that is stored already is answered with its first result, whatever happened since."""

    @with_backend
    async def test_a_repeated_append_returns_the_first_result(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "before")
        first = await say(backend, "k", "a", "b", turn_id="t")
        again = await say(backend, "k", "a", "b", turn_id="t")
        assert not first.replayed
        assert again == first._replace(replayed=True)

    @with_backend
    async def test_a_replay_changes_nothing(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", turn_id="t")
        before, listed = await backend.get("k"), await backend.summaries()
        await say(backend, "k", "a", turn_id="t")
        assert await backend.get("k") == before
        assert list(await backend.summaries()) == list(listed)

    @with_backend
    async def test_a_replay_after_other_appends_returns_the_first_result(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a", turn_id="t")
        for number in range(3):
            await say(backend, "k", str(number))
        assert await say(backend, "k", "a", turn_id="t") == first._replace(replayed=True)
        assert texts_of(await backend.get("k")) == ["a", "0", "1", "2"]

    @with_backend
    async def test_a_turn_is_remembered_after_a_replace(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a", turn_id="t")
        await backend.replace("k", records("x"), turn_id=new_turn_id())
        assert await say(backend, "k", "a", turn_id="t") == first._replace(replayed=True)
        assert texts_of(await backend.get("k")) == ["x"]

    @with_backend
    async def test_a_repeated_replace_returns_the_first_result(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        first = await backend.replace("k", records("x"), turn_id="t")
        await say(backend, "k", "later")
        assert await backend.replace("k", records("x"), turn_id="t") == first._replace(replayed=True)
        assert texts_of(await backend.get("k")) == ["x", "later"]

    @with_backend
    async def test_a_repeated_replace_with_nothing_returns_position_1(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        first = await backend.replace("k", [], turn_id="t")
        await say(backend, "k", "later")
        again = await backend.replace("k", [], turn_id="t")
        assert first.first_position == 1
        assert again == first._replace(replayed=True)
        assert texts_of(await backend.get("k")) == ["later"]

    @with_backend
    async def test_a_replay_is_answered_before_any_expectation_is_looked_at(self, backend: ChatHistoryBackend) -> None:
        start = await say(backend, "k", "start")
        appended = await backend.append(
            "k", records("a"), turn_id="t", expected_revision=start.revision, expected_epoch=start.epoch
        )
        replaced = await backend.replace("k", records("x"), turn_id="u", expected_revision=appended.revision)
        again = await backend.append(
            "k", records("a"), turn_id="t", expected_revision=start.revision, expected_epoch=start.epoch
        )
        assert again == appended._replace(replayed=True)
        again = await backend.append("k", records("a"), turn_id="t", expected_epoch=start.epoch)
        assert again == appended._replace(replayed=True)
        again = await backend.replace("k", records("x"), turn_id="u", expected_revision=appended.revision)
        assert again == replaced._replace(replayed=True)

    @in_loop
    async def test_a_turn_is_remembered_by_another_handle_and_after_closing(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            first = await say(one, "k", "a", turn_id="t")
            assert await say(other, "k", "a", turn_id="t") == first._replace(replayed=True)
        async with make_backend() as third:
            assert await say(third, "k", "a", turn_id="t") == first._replace(replayed=True)

    @with_backend
    async def test_turns_belong_to_their_conversation(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "one", "a", turn_id="t")
        assert not (await say(backend, "other", "b", turn_id="t")).replayed
        assert texts_of(await backend.get("other")) == ["b"]

    @with_backend
    async def test_equal_content_under_different_turns_is_stored_each_time(self, backend: ChatHistoryBackend) -> None:
        for _ in range(3):
            await say(backend, "k", "yes", "yes")
        assert texts_of(await backend.get("k")) == ["yes"] * 6

    @with_backend
    async def test_the_newest_turns_are_remembered(self, backend: ChatHistoryBackend) -> None:
        assert backend.limits.turns_kept >= 1_000
        first = await say(backend, "k", "0", turn_id="0")
        # of a longer memory the first part is proof enough
        count = min(backend.limits.turns_kept, 2_000)
        for start in range(1, count, 50):
            turns = range(start, min(start + 50, count))
            await asyncio.gather(*(say(backend, "k", str(turn), turn_id=str(turn)) for turn in turns))
        assert await say(backend, "k", "0", turn_id="0") == first._replace(replayed=True)
        assert (await backend.get("k", limit=0)).record_count == count


class TurnConflictTests:
    """The same turn with something else is refused; what the same is, `turn_digest` decides."""

    @with_backend
    async def test_a_turn_with_other_records_is_refused_and_writes_nothing(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "ab", "c", turn_id="t")
        before = await backend.get("k")
        for other in (["ab"], ["ab", "c", "d"], ["c", "ab"], ["a", "bc"], ["abc"], ["", "abc"], ["AB", "c"]):
            with pytest.raises(TurnConflictError) as caught:
                await say(backend, "k", *other, turn_id="t")
            assert caught.value.written._replace(replayed=False) == first
            assert (caught.value.key, caught.value.turn_id) == ("k", "t")
        assert await backend.get("k") == before

    @with_backend
    async def test_a_turn_of_the_other_operation_is_refused(self, backend: ChatHistoryBackend) -> None:
        appended = await say(backend, "k", "a", turn_id="append")
        with pytest.raises(TurnConflictError) as caught:
            await backend.replace("k", records("a"), turn_id="append")
        assert caught.value.written._replace(replayed=False) == appended
        replaced = await backend.replace("k", records("b"), turn_id="replace")
        with pytest.raises(TurnConflictError) as caught:
            await backend.append("k", records("b"), turn_id="replace")
        assert caught.value.written._replace(replayed=False) == replaced
        assert texts_of(await backend.get("k")) == ["b"]

    @with_backend
    async def test_a_turn_conflict_comes_before_any_expectation(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", turn_id="t")
        with pytest.raises(TurnConflictError):
            await backend.append("k", records("b"), turn_id="t", expected_revision="another", expected_epoch="another")
        with pytest.raises(TurnConflictError):
            await backend.replace("k", records("b"), turn_id="t", expected_revision="another")

    @with_backend
    async def test_a_turn_conflict_is_found_after_a_replace(self, backend: ChatHistoryBackend) -> None:
        first = await say(backend, "k", "a", turn_id="t")
        await backend.replace("k", records("x"), turn_id=new_turn_id())
        with pytest.raises(TurnConflictError) as caught:
            await say(backend, "k", "b", turn_id="t")
        assert caught.value.written._replace(replayed=False) == first

    @with_backend
    async def test_a_fingerprint_stands_for_the_payload(self, backend: ChatHistoryBackend) -> None:
        await backend.append("k", [Record(b"cipher 1", "text", b"print")], turn_id="t")
        again = await backend.append("k", [Record(b"cipher 2", "text", b"print")], turn_id="t")
        assert again.replayed
        with pytest.raises(TurnConflictError):
            await backend.append("k", [Record(b"cipher 1", "text", b"another")], turn_id="t")
        assert texts_of(await backend.get("k")) == ["cipher 1"]

    @with_backend
    async def test_the_base_format_decides_and_its_encodings_do_not(self, backend: ChatHistoryBackend) -> None:
        await backend.append("k", [Record(b"a", "text+zstd", b"print")], turn_id="t")
        again = await backend.append("k", [Record(b"b", "text+aes.k2", b"print")], turn_id="t")
        assert again.replayed
        with pytest.raises(TurnConflictError):
            await backend.append("k", [Record(b"a", "data+zstd", b"print")], turn_id="t")
        assert [record.format for record in (await backend.get("k")).records] == ["text+zstd"]


class TurnRaceTests:
    """Of calls with one turn id at once exactly one writes."""

    @in_loop
    async def test_one_of_sixteen_calls_with_one_turn_begins_the_conversation(
        self, make_backend: BackendFactory
    ) -> None:
        async with make_backend() as one, make_backend() as other:
            written = await asyncio.gather(
                *(say((one, other)[number % 2], "k", "a", "b", turn_id="t") for number in range(16))
            )
            found = await one.get("k")
        assert_written_once(written)
        assert texts_of(found) == ["a", "b"]

    @in_loop
    async def test_one_of_sixteen_calls_with_one_turn_goes_on(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            head = await say(one, "k", "start")
            written = await asyncio.gather(
                *(
                    backend.append("k", records("a"), turn_id="t", expected_revision=head.revision)
                    for backend in (one, other) * 8
                )
            )
            found = await one.get("k")
        assert_written_once(written)
        assert texts_of(found) == ["start", "a"]

    @in_loop
    async def test_one_of_sixteen_replaces_with_one_turn_writes(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            await say(one, "k", "start")
            written = await asyncio.gather(
                *(backend.replace("k", records("x"), turn_id="t") for backend in (one, other) * 8)
            )
            found = await other.get("k")
        assert_written_once(written)
        assert texts_of(found) == ["x"]
        assert found.epoch == written[0].epoch

    @in_loop
    async def test_of_sixteen_different_writes_under_one_turn_one_is_stored(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            results = await asyncio.gather(
                *(say((one, other)[number % 2], "k", str(number), turn_id="t") for number in range(16)),
                return_exceptions=True,
            )
            found = await one.get("k")
        for result in results:
            if isinstance(result, BaseException) and not isinstance(result, TurnConflictError):
                raise result
        winners = [number for number, result in enumerate(results) if not isinstance(result, BaseException)]
        losers = [result for result in results if isinstance(result, TurnConflictError)]
        assert (len(winners), len(losers)) == (1, 15)
        assert texts_of(found) == [str(winners[0])]
        assert {loser.written._replace(replayed=False) for loser in losers} == {results[winners[0]]}


def assert_written_once(written: list[Written]) -> None:
    """Check that one call wrote and the others got what it got."""
    (first,) = (each for each in written if not each.replayed)
    assert [each._replace(replayed=False) for each in written] == [first] * len(written)
