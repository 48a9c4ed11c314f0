"""Obligation 6: who read something can say so, and is told when it is no longer so."""

import asyncio
from collections.abc import Sequence

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import EpochChangedError, RevisionConflictError
from chathistory_core.records import NO_REVISION, new_turn_id
from chathistory_core.testing.scenario import (
    BackendFactory,
    in_loop,
    next_instant,
    records,
    say,
    texts_of,
    with_backend,
)


class RevisionTests:
    """Every write makes a new revision, and an expectation that fails writes nothing."""

    @with_backend
    async def test_every_write_makes_a_new_revision(self, backend: ChatHistoryBackend) -> None:
        seen = [NO_REVISION]
        for number in range(5):
            seen.append((await say(backend, "k", str(number))).revision)
            assert (await backend.get("k")).revision == seen[-1]
            seen.append((await backend.replace("k", records("x"), turn_id=new_turn_id())).revision)
            (listed,) = await backend.summaries()
            assert (await backend.get("k", limit=0)).revision == listed.revision == seen[-1]
        assert len(set(seen)) == len(seen)

    @with_backend
    async def test_a_revision_never_comes_back(self, backend: ChatHistoryBackend) -> None:
        # a counter would begin again after a clear, and be the same in every conversation
        seen = []
        for _ in range(5):
            for key in "a", "b":
                seen += [(await say(backend, key, "x")).revision, (await say(backend, key, "y")).revision]
                await backend.clear(key)
        assert len(set(seen)) == len(seen) == 20

    @with_backend
    async def test_a_write_at_the_expected_revision_passes(self, backend: ChatHistoryBackend) -> None:
        head = await backend.append("k", records("a"), turn_id="1", expected_revision=NO_REVISION)
        head = await backend.append("k", records("b"), turn_id="2", expected_revision=head.revision)
        head = await backend.replace("k", records("x"), turn_id="3", expected_revision=head.revision)
        assert texts_of(await backend.get("k")) == ["x"]
        assert await backend.clear("k", expected_revision=head.revision)

    @with_backend
    async def test_a_stale_revision_is_refused(self, backend: ChatHistoryBackend) -> None:
        stale = await say(backend, "k", "a")
        await say(backend, "k", "b")
        before = await backend.get("k")
        with pytest.raises(RevisionConflictError) as caught:
            await backend.append("k", records("c"), turn_id="1", expected_revision=stale.revision)
        assert caught.value.key == "k"
        with pytest.raises(RevisionConflictError):
            await backend.replace("k", records("c"), turn_id="2", expected_revision=stale.revision)
        with pytest.raises(RevisionConflictError):
            await backend.clear("k", expected_revision=stale.revision)
        assert await backend.get("k") == before

    @with_backend
    async def test_no_revision_means_only_if_new(self, backend: ChatHistoryBackend) -> None:
        await backend.append("appended", records("a"), turn_id="1", expected_revision=NO_REVISION)
        await backend.replace("replaced", records("a"), turn_id="1", expected_revision=NO_REVISION)
        await backend.replace("empty", [], turn_id="1", expected_revision=NO_REVISION)
        for key in "appended", "replaced", "empty":
            with pytest.raises(RevisionConflictError):
                await backend.append(key, records("b"), turn_id="2", expected_revision=NO_REVISION)
            with pytest.raises(RevisionConflictError):
                await backend.replace(key, records("b"), turn_id="2", expected_revision=NO_REVISION)
            with pytest.raises(RevisionConflictError):
                await backend.clear(key, expected_revision=NO_REVISION)
            await backend.clear(key)
            await backend.append(key, records("b"), turn_id="2", expected_revision=NO_REVISION)

    @with_backend
    async def test_a_revision_is_refused_where_nothing_exists(self, backend: ChatHistoryBackend) -> None:
        old = await say(backend, "k", "a")
        await backend.clear("k")
        with pytest.raises(RevisionConflictError):
            await backend.append("k", records("b"), turn_id="1", expected_revision=old.revision)
        with pytest.raises(RevisionConflictError):
            await backend.replace("k", records("b"), turn_id="1", expected_revision=old.revision)
        assert await backend.summaries() in ((), [])


class ExpectedEpochTests:
    """An append may pass other appends, but not what was taken away."""

    @with_backend
    async def test_an_expected_epoch_lets_other_appends_pass(self, backend: ChatHistoryBackend) -> None:
        head = await say(backend, "k", "a")
        await say(backend, "k", "b")
        await backend.append("k", records("c"), turn_id="t", expected_epoch=head.epoch)
        assert texts_of(await backend.get("k")) == ["a", "b", "c"]

    @with_backend
    async def test_an_expected_epoch_is_refused_after_a_replace(self, backend: ChatHistoryBackend) -> None:
        head = await say(backend, "k", "a")
        await backend.replace("k", records("x"), turn_id=new_turn_id())
        before = await backend.get("k")
        with pytest.raises(EpochChangedError) as caught:
            await backend.append("k", records("b"), turn_id="t", expected_epoch=head.epoch)
        assert caught.value.key == "k"
        assert await backend.get("k") == before

    @with_backend
    async def test_a_cleared_conversation_is_not_brought_back(self, backend: ChatHistoryBackend) -> None:
        head = await say(backend, "k", "a")
        await backend.clear("k")
        with pytest.raises(EpochChangedError):
            await backend.append("k", records("b"), turn_id="t", expected_epoch=head.epoch)
        assert not (await backend.get("k")).revision
        await say(backend, "k", "anew")
        with pytest.raises(EpochChangedError):
            await backend.append("k", records("b"), turn_id="t", expected_epoch=head.epoch)
        assert texts_of(await backend.get("k")) == ["anew"]

    @with_backend
    async def test_the_epoch_of_an_unknown_key_can_be_expected(self, backend: ChatHistoryBackend) -> None:
        unknown = await backend.get("k")
        await backend.append("k", records("a"), turn_id="t", expected_epoch=unknown.epoch)
        assert texts_of(await backend.get("k")) == ["a"]

    @with_backend
    async def test_both_expectations_are_looked_at(self, backend: ChatHistoryBackend) -> None:
        head = await say(backend, "k", "a")
        with pytest.raises(RevisionConflictError):
            await backend.append("k", records("b"), turn_id="1", expected_revision="x", expected_epoch=head.epoch)
        with pytest.raises(EpochChangedError):
            await backend.append("k", records("b"), turn_id="1", expected_revision=head.revision, expected_epoch="x")
        await backend.append("k", records("b"), turn_id="1", expected_revision=head.revision, expected_epoch=head.epoch)


class RevisionRaceTests:
    """Of writers that expect one revision exactly one passes."""

    @in_loop
    async def test_one_of_sixteen_appends_that_expect_a_revision_wins(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            revision = (await say(one, "k", "start")).revision
            for number in range(3):
                results = await asyncio.gather(
                    *(
                        backend.append("k", records(f"{number}"), turn_id=new_turn_id(), expected_revision=revision)
                        for backend in (one, other) * 8
                    ),
                    return_exceptions=True,
                )
                assert_one_winner(results)
                revision = (await other.get("k")).revision
            assert texts_of(await one.get("k")) == ["start", "0", "1", "2"]

    @in_loop
    async def test_one_of_sixteen_writes_that_expect_nothing_wins(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            results = await asyncio.gather(
                *(
                    operation("k", records("a"), turn_id=new_turn_id(), expected_revision=NO_REVISION)
                    for backend in (one, other) * 4
                    for operation in (backend.append, backend.replace)
                ),
                return_exceptions=True,
            )
            assert_one_winner(results)
            assert texts_of(await one.get("k")) == ["a"]

    @in_loop
    async def test_one_of_sixteen_replaces_that_expect_a_revision_wins(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            head = await say(one, "k", "start")
            results = await asyncio.gather(
                *(
                    (one, other)[number % 2].replace(
                        "k", records(str(number)), turn_id=new_turn_id(), expected_revision=head.revision
                    )
                    for number in range(16)
                ),
                return_exceptions=True,
            )
            assert texts_of(await one.get("k")) == [str(assert_one_winner(results))]

    @in_loop
    async def test_one_of_sixteen_clears_that_expect_a_revision_wins(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            head = await say(one, "k", "start")
            results = await asyncio.gather(
                *(backend.clear("k", expected_revision=head.revision) for backend in (one, other) * 8)
            )
        assert sorted(results) == [False] * 15 + [True]


class TimeTests:
    """`created_at` tells a replaced conversation from a new start."""

    @with_backend
    async def test_appends_and_replaces_keep_created_at(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        created_at = (await backend.get("k")).created_at
        assert created_at is not None
        await next_instant()
        await say(backend, "k", "b")
        await backend.replace("k", records("x"), turn_id=new_turn_id())
        await backend.replace("k", [], turn_id=new_turn_id())
        await say(backend, "k", "c")
        (listed,) = await backend.summaries()
        assert (await backend.get("k")).created_at == listed.created_at == created_at

    @with_backend
    async def test_a_new_start_has_another_created_at(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        created_at = (await backend.get("k")).created_at
        await backend.clear("k")
        await next_instant()
        await say(backend, "k", "a")
        assert (await backend.get("k")).created_at not in (None, created_at)

    @with_backend
    async def test_updated_at_goes_with_the_writes(self, backend: ChatHistoryBackend) -> None:
        times = []
        for operation in (backend.append, backend.replace, backend.append):
            await operation("k", records("a"), turn_id=new_turn_id())
            found = await backend.get("k")
            assert found.created_at is not None
            assert found.updated_at is not None
            assert found.created_at <= found.updated_at
            times.append(found.updated_at)
            await next_instant()
        assert times == sorted(set(times))

    @with_backend
    async def test_a_record_keeps_its_time(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        before = (await backend.get("k")).records
        await next_instant()
        await say(backend, "k", "b")
        after = (await backend.get("k")).records
        assert after[:1] == before


def assert_one_winner(results: Sequence[object]) -> int:
    """Which call wrote, after a check that all others met a `RevisionConflictError`."""
    winners = [number for number, result in enumerate(results) if not isinstance(result, BaseException)]
    losers = [result for result in results if isinstance(result, RevisionConflictError)]
    assert (len(winners), len(losers)) == (1, len(results) - 1), results
    return winners[0]
