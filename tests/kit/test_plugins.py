"""The kit as a third party runs it: in a folder with nothing but the test, whatever plugins pytest has there."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from chathistory_core.testing import BackendTests

SOURCES = [path for path in sys.path if path and Path(path).is_dir()]

THEIRS = """\
import functools

import pytest
from chathistory_core.testing import BackendTests
from chathistory_memory import MemoryBackend, MemoryStore


class Theirs(MemoryBackend):
    {body}


class TestTheirs(BackendTests):
    @pytest.fixture
    def make_backend(self):
        return functools.partial(Theirs, MemoryStore())
"""

BROKEN = """async def get(self, key, *, limit=None, before=None, after=None):
        found = await super().get(key, limit=limit, before=before, after=after)
        return found._replace(records=found.records[::-1])"""

WAYS = {
    "no plugin": ["-p", "no:anyio", "-p", "no:hypothesispytest", "-p", "no:asyncio"],
    "anyio": ["-p", "no:asyncio"],
    "anyio for everything": ["-p", "no:asyncio", "-o", "anyio_mode=auto"],
}
if find_spec("pytest_asyncio"):
    for mode in ("strict", "auto"):
        WAYS[f"asyncio {mode}"] = ["-o", f"asyncio_mode={mode}", "-o", "asyncio_default_fixture_loop_scope=function"]


def kit(folder: Path, body: str, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_theirs.py").write_text(THEIRS.format(body=body))
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(SOURCES)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_it_runs_the_same_whatever_plugins_there_are(tmp_path: Path, options: list[str]) -> None:
    words = ("order", "replay", "closed", "answers")
    done = kit(tmp_path, "pass", "-k", " or ".join(words), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = [name for name in dir(BackendTests) if name.startswith("test_") and any(word in name for word in words)]
    assert len(wanted) > 12
    assert re.fullmatch(rf"{len(wanted)} passed, \d+ deselected in \S+", done.stdout.splitlines()[-1])


def test_a_failure_shows_both_sides_and_the_random_test_its_steps(tmp_path: Path) -> None:
    done = kit(tmp_path, BROKEN, "-k", "test_records_come_back_oldest_first or model_says", "-p", "no:asyncio")
    assert done.returncode == 1
    assert "assert ['three', 'two', 'one'] == ['one', 'two', 'three']" in done.stdout
    assert "these are not the records that were asked for, of 1:x0 2:x0" in done.stdout
    assert "state.call(action=Write(key='a', operation='append'" in done.stdout
