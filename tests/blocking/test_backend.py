"""Backends without asyncio."""

import pytest

from chathistory_core import (
    BackendStateError,
    BackendUnavailableError,
    ConfigurationError,
    Conversation,
    EpochChangedError,
    Limits,
    Record,
    blocking,
)
from chathistory_memory import MemoryBackend


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "chat-message") for text in texts]


class Counting(MemoryBackend):
    """Counts its reads, and fails from the one after `reads_left` on."""

    reads = 0
    reads_left = 1_000

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        self.reads += 1
        if self.reads > self.reads_left:
            raise BackendUnavailableError("the store is gone")
        return await super().get(key, limit=limit, before=before, after=after)


def test_the_five_operations(url: str) -> None:
    with blocking.open_backend(url) as backend:
        first = backend.append("k", records("one", "two"), turn_id="1")
        assert backend.append("k", records("one", "two"), turn_id="1", expected_epoch="old").replayed
        assert [record.payload for record in backend.get("k", limit=1).records] == [b"two"]
        assert [summary.key for summary in backend.summaries(order="recent")] == ["k"]
        assert backend.replace("k", [], turn_id="2", expected_revision=first.revision).epoch != first.epoch
        assert (backend.clear("k"), backend.clear("k")) == (True, False)
        assert backend.limits == Limits()


def test_a_long_conversation_is_read_page_by_page() -> None:
    asynchronous = Counting()
    with blocking.BlockingBackend(asynchronous) as backend:
        backend.append("k", records(*map(str, range(10))), turn_id="1")
        found = blocking.iter_records(backend, "k", page=4)
        assert asynchronous.reads == 0
        assert [next(found).payload for _ in range(4)] == [b"0", b"1", b"2", b"3"]
        assert asynchronous.reads == 1
        assert [record.payload for record in found] == [b"4", b"5", b"6", b"7", b"8", b"9"]
        assert asynchronous.reads == 3
        assert list(blocking.iter_records(backend, "unknown")) == []
        with pytest.raises(ValueError, match="page"):
            next(blocking.iter_records(backend, "k", page=0))


def test_what_was_read_before_an_error_is_given() -> None:
    asynchronous = Counting()
    asynchronous.reads_left = 1
    with blocking.BlockingBackend(asynchronous) as backend:
        backend.append("k", records("one", "two", "three"), turn_id="1")
        found = blocking.iter_records(backend, "k", page=2)
        assert [next(found).payload, next(found).payload] == [b"one", b"two"]
        with pytest.raises(BackendUnavailableError):
            next(found)


def test_records_taken_away_end_the_reading(url: str) -> None:
    with blocking.open_backend(url) as backend:
        backend.append("k", records("one", "two"), turn_id="1")
        found = blocking.iter_records(backend, "k", page=1)
        next(found)
        backend.clear("k")
        with pytest.raises(EpochChangedError):
            next(found)


def test_a_reader_goes_on_from_what_it_holds(url: str) -> None:
    with blocking.open_backend(url) as backend:
        backend.append("k", records("one"), turn_id="1")
        held = backend.get("k")
        backend.append("k", records("two", "three"), turn_id="2")
        found = blocking.read_on(backend, "k", held, limit=1)
        assert found is not None
        assert [record.payload for record in found.records] == [b"two"]
        backend.replace("k", records("one"), turn_id="3")
        assert blocking.read_on(backend, "k", held) is None


def test_all_under_a_prefix_is_erased(url: str) -> None:
    with blocking.open_backend(url) as backend:
        for key in ("a/1", "a/2", "b/1"):
            backend.append(key, records("one"), turn_id="1")
        assert blocking.erase(backend, "a/") == 2
        with pytest.raises(ValueError, match="everything"):
            blocking.erase(backend, "")
        assert blocking.erase(backend, "", everything=True) == 1


def test_closed_it_refuses_and_can_be_opened_again(url: str) -> None:
    backend = blocking.open_backend(url)
    with pytest.raises(BackendStateError):
        backend.get("k")
    with backend:
        backend.append("k", records("one"), turn_id="1")
        with pytest.raises(BackendStateError), backend:
            pass
        assert backend.get("k").record_count == 1
    with pytest.raises(BackendStateError):
        backend.get("k")
    with backend:
        backend.summaries()


def test_options_are_refused_as_in_the_asynchronous_form() -> None:
    with pytest.raises(ConfigurationError):
        blocking.open_backend("memory", options={"tll": "30d"})
    with pytest.raises(ConfigurationError), blocking.open_history("memory://?tll=30d"):
        pass
    for wrong in (-1, float("nan")):
        with pytest.raises(ValueError, match="save_timeout"):
            blocking.open_history("memory://", save_timeout=wrong)
        with pytest.raises(ValueError, match="save_timeout"):
            blocking.BlockingBackend(MemoryBackend(), save_timeout=wrong)
