import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BROKEN = """
from functools import partial

import pytest
from chathistory_memory import MemoryBackend, MemoryStore

from chathistory_core.testing import BackendTests


class Reversed(MemoryBackend):
    async def get(self, key, *, limit=None, before=None, after=None):
        found = await super().get(key, limit=limit, before=before, after=after)
        return found._replace(records=found.records[::-1])


class TestReversed(BackendTests):
    @pytest.fixture
    def make_backend(self):
        return partial(Reversed, MemoryStore())


class TestWithoutFixture(BackendTests):
    pass
"""


@pytest.mark.parametrize("name", ["chathistory_core", "chathistory_core.testing", "chathistory_memory"])
def test_all_is_exactly_what_is_public(name: str) -> None:
    module = importlib.import_module(name)
    late = {each: getattr(module, each) for each in module.__all__}
    public = {
        each
        for each, value in {**vars(module), **late}.items()
        if not each.startswith("_") and not isinstance(value, ModuleType)
    } - {"TYPE_CHECKING"}
    assert public == set(module.__all__)
    assert len(module.__all__) == len(set(module.__all__))


def test_importing_core_loads_no_driver_plugin_framework_or_test_tool() -> None:
    script = "import sys, chathistory_core; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True).stdout
    packages = {name.partition(".")[0] for name in loaded.split()}
    assert "chathistory_core" in packages
    unwanted = {"sqlalchemy", "aiosqlite", "redis", "httpx", "openai", "pytest", "hypothesis", "typer", "rich"}
    assert packages & unwanted == set()
    assert {name for name in packages if name.startswith("chathistory_")} == {"chathistory_core"}
    formats = {"chathistory_core.formats.openai_chat", "chathistory_core.formats.agent_framework"}
    assert {"chathistory_core.testing", *formats} & {*loaded.split()} == set()


def test_the_kit_needs_no_configuration_and_shows_what_it_compared(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(BROKEN)
    tests = "test_records_come_back_oldest_first or test_an_empty_store_lists_nothing"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    result = subprocess.run(
        [*command, "-k", tests, str(tmp_path)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert "1 failed, 1 passed" in result.stdout, result.stdout
    assert "2 errors" in result.stdout
    assert "AssertionError: assert ['three', 'two', 'one'] == ['one', 'two', 'three']" in result.stdout
    assert "give the class a fixture `make_backend`" in result.stdout
