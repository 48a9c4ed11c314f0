"""Obligation 12: what a backend takes, what it refuses, and that it gives back what it took."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import TooLargeError
from chathistory_core.records import Conversation, Limits, Record, new_turn_id
from chathistory_core.testing.scenario import BackendFactory, in_loop, texts_of, with_backend

MIB = 2**20

PAYLOADS = (
    b"",
    b"\0",
    b"a\0b\0",
    b"\xff",
    b"\xff\xfe\xfd",
    b"\xc3\x28",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf{}",
    b"\n",
    b"\r\n",
    b" padded ",
    b"'\"\\%s{}$1:a?",
    b"null",
    b"123",
    b"1e400",
    b'{"b": 1, "a": 2.0, "a": 3}',
    bytes(range(256)),
    "\U0001f600 é שלום".encode(),
    b"\x80\x04K\x01.",
    b"x" * 8_191,
    b"x" * 8_193,
)
"""Bytes that trip text columns, decoding, trimming, NUL-ended strings and JSON that is parsed on the way."""

FORMATS = ("text", "data", "a", "x1-y2", "text+zstd", "text+zstd+aesgcm.k2", "text+aesgcm.Key_id-9", "f" * 60)


class FidelityTests:
    """Records come back as they were given."""

    @with_backend
    async def test_payloads_come_back_byte_for_byte(self, backend: ChatHistoryBackend) -> None:
        batch = [Record(payload, "text") for payload in PAYLOADS]
        await backend.append("one batch", batch, turn_id="t")
        await backend.replace("replaced", batch, turn_id="t")
        for payload in PAYLOADS:
            await backend.append("one by one", [Record(payload, "text")], turn_id=new_turn_id())
        for key in "one batch", "replaced", "one by one":
            found = await backend.get(key)
            assert tuple(record.payload for record in found.records) == PAYLOADS, key
            assert all(type(record.payload) is bytes for record in found.records)

    @with_backend
    async def test_formats_come_back_as_they_were(self, backend: ChatHistoryBackend) -> None:
        await backend.append("k", [Record(b"a", each) for each in FORMATS], turn_id="t")
        assert tuple(record.format for record in (await backend.get("k")).records) == FORMATS

    @with_backend
    async def test_records_that_were_read_can_be_written_again(self, backend: ChatHistoryBackend) -> None:
        batch = [Record(payload, "text+zstd") for payload in PAYLOADS]
        await backend.append("k", batch, turn_id="t")
        held = [record.record for record in (await backend.get("k")).records]
        assert held == batch
        await backend.append("copy", held, turn_id="t")
        assert [record.record for record in (await backend.get("copy")).records] == held


class SizeTests:
    """Limits are what a backend says they are, and no smaller than every backend's."""

    @with_backend
    async def test_limits_are_no_smaller_than_every_backends(self, backend: ChatHistoryBackend) -> None:
        limits = backend.limits
        assert type(limits) is Limits
        assert limits.max_records >= 1_000
        assert limits.max_bytes >= 16 * MIB
        assert limits.max_record_bytes >= 16 * MIB
        assert limits.turns_kept >= 1_000

    @with_backend
    async def test_a_thousand_records_of_a_mebibyte_in_all_are_taken_at_once(self, backend: ChatHistoryBackend) -> None:
        payloads = [f"{number:04}".encode().ljust(MIB // 1_000, b".") for number in range(1_000)]
        await backend.append("k", [Record(payload, "text") for payload in payloads], turn_id="t")
        assert_same((record.payload for record in (await backend.get("k")).records), payloads)
        await backend.replace("k", [Record(payload, "text") for payload in payloads[::-1]], turn_id="u")
        assert_same((record.payload for record in (await backend.get("k")).records), payloads[::-1])

    @with_backend
    async def test_a_record_of_16_mebibytes_is_taken(self, backend: ChatHistoryBackend) -> None:
        payload = bytes(range(256)) * (16 * MIB // 256)
        await backend.append("k", [Record(payload, "text")], turn_id="t")
        (record,) = (await backend.get("k")).records
        assert_same([record.payload], [payload])
        (record,) = (await backend.get("k", after=0, limit=1)).records
        assert_same([record.payload], [payload])

    @with_backend
    async def test_a_write_of_exactly_max_records_is_taken(self, backend: ChatHistoryBackend) -> None:
        count = backend.limits.max_records
        await backend.append("k", [Record(b"a", "text")] * count, turn_id="t")
        found = await backend.get("k", limit=2)
        assert found.record_count == count
        assert texts_of(found) == ["a", "a"]

    @with_backend
    async def test_a_write_of_exactly_max_bytes_is_taken(self, backend: ChatHistoryBackend) -> None:
        large, batch = _full(backend.limits)
        await backend.append("k", batch, turn_id="t")
        sizes = [len(record.payload) for record in (await backend.get("k")).records]
        assert sizes == [len(record.payload) for record in batch]
        (last,) = (await backend.get("k", before=2**53, limit=1)).records
        assert_same([last.payload], [large[: len(last.payload)]])

    @with_backend
    async def test_more_records_than_max_records_are_refused(self, backend: ChatHistoryBackend) -> None:
        await self._refused(backend, [Record(b"", "text")] * (backend.limits.max_records + 1))

    @with_backend
    async def test_more_bytes_than_max_bytes_are_refused(self, backend: ChatHistoryBackend) -> None:
        _, batch = _full(backend.limits)
        await self._refused(backend, [*batch, Record(b"a", "text")])

    @with_backend
    async def test_a_record_above_max_record_bytes_is_refused(self, backend: ChatHistoryBackend) -> None:
        await self._refused(backend, [Record(bytes(backend.limits.max_record_bytes + 1), "text")])

    async def _refused(self, backend: ChatHistoryBackend, batch: list[Record]) -> None:
        for write in backend.append, backend.replace:
            with pytest.raises(TooLargeError):
                await write("k", batch, turn_id="t")
            assert await backend.get("k") == Conversation("k")
        assert not (await backend.append("k", [Record(b"a", "text")], turn_id="t")).replayed

    @in_loop
    async def test_large_writes_of_two_handles_at_once_stay_whole(self, make_backend: BackendFactory) -> None:
        async with make_backend() as one, make_backend() as other:
            await asyncio.gather(
                *(
                    backend.append("k", [Record(bytes([name]) * 10_000, "text")] * 100, turn_id=f"{name}")
                    for name, backend in enumerate((one, other) * 2)
                )
            )
            found = (await one.get("k")).records
        assert len(found) == 400
        runs = [{record.payload for record in found[start : start + 100]} for start in range(0, 400, 100)]
        assert all(len(run) == 1 for run in runs)


def assert_same(found: Iterable[bytes], wanted: Sequence[bytes]) -> None:
    """Compare large payloads; pytest would take hours to say where they differ."""
    for index, (one, other) in enumerate(zip_longest(found, wanted)):
        same = one == other
        assert same, f"payload {index} of {len(wanted)} is another one: its start is {(one or b'')[:40]!r}"


def _full(limits: Limits) -> tuple[bytes, list[Record]]:
    """A payload as large as one may be, and a batch of slices of it that fills `max_bytes`."""
    large = bytes(limits.max_record_bytes)
    whole, rest = divmod(limits.max_bytes, len(large))
    batch = [Record(large, "text")] * whole
    return large, [*batch, Record(large[:rest], "text")] if rest else batch
