"""Obligation 7: reading gives what was asked for, and changes nothing."""

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import EpochChangedError
from chathistory_core.reading import iter_records
from chathistory_core.records import Conversation, StoredRecord, new_turn_id
from chathistory_core.testing.scenario import records, say, texts_of, with_backend

HUGE = (2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30)
"""Numbers at which integers of other systems end."""


class ReadTests:
    """Cursors and limits of `get`."""

    @with_backend
    async def test_an_unknown_key_reads_as_a_conversation_without_revision(self, backend: ChatHistoryBackend) -> None:
        assert await backend.get("k") == Conversation("k")
        assert await backend.get("k", limit=0) == Conversation("k")
        assert await backend.get("k", limit=3, after=0) == Conversation("k")
        assert await backend.get("k", limit=3, before=9) == Conversation("k")

    @with_backend
    async def test_a_conversation_is_whole_without_a_limit(self, backend: ChatHistoryBackend) -> None:
        texts = [str(number) for number in range(2_500)]
        await say(backend, "k", *texts)
        found = await backend.get("k")
        assert texts_of(found) == texts
        assert type(found) is Conversation
        assert type(found.records) is tuple
        assert all(type(record) is StoredRecord for record in found.records)
        assert texts_of(await backend.get("k", after=0)) == texts

    @with_backend
    async def test_without_after_the_newest_come_oldest_first(self, backend: ChatHistoryBackend) -> None:
        held = await _seven(backend)
        for limit in (None, 0, 1, 2, 3, 6, 7, 8, 1_000):
            for before in (None, 0, *(record.position + 1 for record in held), held[0].position, 10**6):
                behind = [record for record in held if before is None or record.position < before]
                wanted = behind if limit is None else behind[max(0, len(behind) - limit) :]
                found = await backend.get("k", limit=limit, before=before)
                assert list(found.records) == wanted, (limit, before)

    @with_backend
    async def test_with_after_the_first_ones_behind_it_come(self, backend: ChatHistoryBackend) -> None:
        held = await _seven(backend)
        for limit in (None, 0, 1, 2, 3, 6, 7, 8, 1_000):
            for after in (0, *(record.position for record in held), 10**6):
                wanted = [record for record in held if record.position > after][:limit]
                found = await backend.get("k", limit=limit, after=after)
                assert list(found.records) == wanted, (limit, after)

    @with_backend
    async def test_every_read_tells_the_whole_head(self, backend: ChatHistoryBackend) -> None:
        await _seven(backend)
        head = (await backend.get("k"))._replace(records=())
        assert head.record_count == 7
        assert await backend.get("k", limit=0) == head
        assert (await backend.get("k", limit=2))._replace(records=()) == head
        assert (await backend.get("k", limit=2, after=0))._replace(records=()) == head
        assert await backend.get("k", before=0) == head
        assert await backend.get("k", after=10**6) == head

    @with_backend
    async def test_cursors_and_limits_may_be_huge(self, backend: ChatHistoryBackend) -> None:
        held = tuple(await _seven(backend))
        for huge in HUGE:
            assert (await backend.get("k", limit=huge)).records == held
            assert (await backend.get("k", limit=huge, after=0)).records == held
            assert (await backend.get("k", before=huge)).records == held
            assert (await backend.get("k", before=huge, limit=2)).records == held[-2:]
            assert (await backend.get("k", after=huge)).records == ()
            assert (await backend.get("k", after=huge, limit=2)).records == ()

    @with_backend
    async def test_negative_numbers_are_refused(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        with pytest.raises(ValueError, match="limit"):
            await backend.get("k", limit=-1)
        with pytest.raises(ValueError, match="before"):
            await backend.get("k", before=-1)
        with pytest.raises(ValueError, match="after"):
            await backend.get("k", after=-1)

    @with_backend
    async def test_both_cursors_at_once_are_refused(self, backend: ChatHistoryBackend) -> None:
        with pytest.raises(ValueError, match="before"):
            await backend.get("k", before=9, after=0)

    @with_backend
    async def test_reading_changes_nothing(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a", "b")
        before = await backend.get("k")
        await backend.get("k", limit=1)
        await backend.get("k", after=1)
        await backend.get("unknown")
        assert len(await backend.summaries()) == 1
        assert await backend.get("k") == before

    @with_backend
    async def test_what_a_caller_does_to_its_list_later_is_not_stored(self, backend: ChatHistoryBackend) -> None:
        batch = records("a", "b")
        await backend.append("k", batch, turn_id="1")
        batch.clear()
        assert texts_of(await backend.get("k")) == ["a", "b"]


class WalkTests:
    """`iter_records` over this backend."""

    @with_backend
    async def test_walking_gives_every_record_at_any_page(self, backend: ChatHistoryBackend) -> None:
        held = await _seven(backend)
        for page in (1, 2, 3, 6, 7, 8, 1_000):
            assert [record async for record in iter_records(backend, "k", page=page)] == held

    @with_backend
    async def test_walking_an_unknown_key_gives_nothing(self, backend: ChatHistoryBackend) -> None:
        assert [record async for record in iter_records(backend, "k")] == []

    @with_backend
    async def test_walking_ends_at_the_head_that_was_first_seen(self, backend: ChatHistoryBackend) -> None:
        held = await _seven(backend)
        found = []
        async for record in iter_records(backend, "k", page=2):
            found.append(record)
            await say(backend, "k", "later", "and later")
        assert found == held

    @with_backend
    async def test_walking_ends_with_an_error_where_records_are_taken_away(self, backend: ChatHistoryBackend) -> None:
        await _seven(backend)
        found = []

        async def walk() -> None:
            async for record in iter_records(backend, "k", page=2):
                found.append(record.payload)
                if len(found) == 1:
                    await backend.replace("k", records("x", "y", "z"), turn_id=new_turn_id())
                elif len(found) == 3:
                    await backend.clear("k")

        with pytest.raises(EpochChangedError):
            await walk()
        assert found == [b"0", b"1"]
        with pytest.raises(EpochChangedError):
            await walk()
        assert found == [b"0", b"1", b"x", b"y"]


async def _seven(backend: ChatHistoryBackend) -> list[StoredRecord]:
    for texts in (["0"], ["1", "2", "3"], ["4"], ["5", "6"]):
        await say(backend, "k", *texts)
    return list((await backend.get("k")).records)
