"""The LMDB backend, as every backend is tested, and what it alone promises."""

import asyncio
from functools import partial
from pathlib import Path

import pytest

from chathistory_core import BackendUnavailableError, ConfigurationError, Record, open_backend
from chathistory_core.testing import BackendFactory, BackendTests, CrashTests, ProcessTests


class TestLMDB(BackendTests, ProcessTests, CrashTests):
    @pytest.fixture
    def make_backend(self, tmp_path: Path) -> BackendFactory:
        return partial(open_backend, f"lmdb:///{tmp_path}/history.lmdb?sync=false")


def test_keys_that_differ_only_where_lmdb_s_end_are_different_conversations(tmp_path: Path) -> None:
    keys = ["k" * 510, "k" * 511, "k" * 511 + "\x01", "k" * 511 + "a", "k" * 511 + "b"]

    async def scenario() -> None:
        async with open_backend(f"lmdb:///{tmp_path}/history.lmdb") as backend:
            for key in reversed(keys):
                await backend.append(key, [Record(key[-1:].encode(), "text")], turn_id="t")
            assert [summary.key for summary in await backend.summaries()] == keys
            first = None
            for key in keys:
                [first] = await backend.summaries(after=first, limit=1)
                assert first.key == key
            assert [summary.key for summary in await backend.summaries(prefix=keys[1])] == keys[1:]
            assert await backend.clear(keys[3])
            assert [(await backend.get(key)).record_count for key in keys] == [1, 1, 1, 0, 1]

    asyncio.run(scenario())


def test_a_full_file_is_told_and_what_was_written_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_backend(f"lmdb:///{tmp_path}/history.lmdb?map_size={2**20}") as backend:
            await backend.append("k", [Record(b"a", "text")], turn_id="t")
            with pytest.raises(BackendUnavailableError, match="MAP_FULL"):
                await backend.append("k", [Record(bytes(2**21), "text")], turn_id="u")
            await backend.append("k", [Record(b"b", "text")], turn_id="v")
            assert [record.payload for record in (await backend.get("k")).records] == [b"a", b"b"]

    asyncio.run(scenario())


def test_a_folder_that_does_not_exist_is_told_and_the_backend_stays_closed(tmp_path: Path) -> None:
    async def scenario() -> None:
        backend = open_backend(f"lmdb:///{tmp_path}/missing/history.lmdb")
        for _ in range(2):
            with pytest.raises(BackendUnavailableError, match="missing"):
                async with backend:
                    pass
        (tmp_path / "missing").mkdir()
        async with backend:
            assert list(await backend.summaries()) == []

    asyncio.run(scenario())


@pytest.mark.parametrize("url", ["lmdb:///", "lmdb://host/path"])
def test_a_url_without_a_path_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="lmdb:///relative"):
        open_backend(url)
