"""`chathistory check`: what it says of a store, and what it leaves of it."""

import ast
import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import chathistory_core.testing
from chathistory_core import Record, open_backend
from chathistory_core.testing.obligations import OBLIGATIONS, TESTED, TRIALS, Outcome, level, obligations, trials

BROKEN = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from chathistory_memory import MemoryBackend, MemoryStore

store = MemoryStore()

class BrokenBackend(MemoryBackend):
    async def get(self, key, *, limit=None, before=None, after=None):
        found = await super().get(key, limit=limit, before=before, after=after)
        records = (record._replace(payload=record.payload.replace(b"\\0", b" ")) for record in found.records)
        return found._replace(records=tuple(records))

class BrokenOptions(BackendOptions):
    url: str

    def open(self):
        return BrokenBackend(store)

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=BrokenOptions)
"""

TIME_AND_PLACE = {"conftest.py": "raise RuntimeError('not ours')", "pytest.ini": "[pytest]\naddopts = --nonsense\n"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with somebody's tests in it, which are no concern of the command."""
    for name, text in TIME_AND_PLACE.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith(("CHATHISTORY_", "PYTEST_"))]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("PYTEST_ADDOPTS", "--nonsense")
    monkeypatch.setenv("BACKEND_TESTS_EXAMPLES", "2")  # few random cases: what is tested here is the command
    return tmp_path


@pytest.fixture
def broken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store that gives back no NUL, in a distribution that is installed."""
    site = folder / "site"
    information = site / "broken-1.0.dist-info"
    information.mkdir(parents=True)
    (site / "broken_plugin.py").write_text(BROKEN)
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text("[chathistory.backends]\nbroken = broken_plugin\n")
    monkeypatch.setenv("PYTHONPATH", str(site))
    return "broken://here"


def check(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "chathistory_core.cli", "check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def report(*arguments: str) -> tuple[int, dict[str, Any]]:
    ended = check(*arguments, "--json")
    assert ended.stderr == "", ended.stderr
    (line,) = ended.stdout.splitlines()
    return ended.returncode, json.loads(line)


def store(url: str, key: str) -> None:
    async def scenario() -> None:
        async with open_backend(url) as backend:
            await backend.append(key, [Record(b"kept", "text")], turn_id="t")

    asyncio.run(scenario())


def keys(url: str) -> list[str]:
    async def scenario() -> list[str]:
        async with open_backend(url) as backend:
            return [summary.key for summary in await backend.summaries()]

    return asyncio.run(scenario())


@pytest.mark.skipif("LONG" not in os.environ, reason="runs the whole kit; LONG in the environment asks for it")
def test_a_store_that_keeps_its_promises_passes_and_says_what_was_not_tested(folder: Path) -> None:
    ended = check("memory://")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.splitlines()[-1] == (
        "The store keeps 14 of 14 obligations, passes 3 of 6 trials; not tested: two processes at once, "
        "writers killed with SIGKILL, a network that loses, delays, cuts and resets."
    )
    assert "append 1 " in ended.stdout
    assert {path.name for path in folder.iterdir()} == set(TIME_AND_PLACE)


def test_a_broken_store_fails_and_is_told_which_obligations_it_breaks_and_by_what(broken: str) -> None:
    status, found = report(broken)
    assert (status, found["passed"]) == (1, False)
    failed = [line["name"] for line in found["obligations"] if line["failed"]]
    assert failed == ["12 size and cost"]
    assert found["level"].startswith("keeps 13 of 14 obligations, passes 3 of 6 trials; broken: 12 size and cost; not")
    messages = {failure["test"]: failure["message"] for failure in found["failures"]}
    assert "At index 1 diff" in messages["test_payloads_come_back_byte_for_byte"], "assertions tell what they found"
    assert {cost["operation"] for cost in found["costs"]} >= {"append 1", "get all", "clear"}


@pytest.mark.skipif("LONG" not in os.environ, reason="takes a minute; LONG in the environment asks for it")
def test_sqlite_passes_in_new_files_and_the_named_one_is_left_alone(folder: Path) -> None:
    store("sqlite:///history.db", "mine")
    before = sorted(path.name for path in folder.iterdir())
    status, found = report("sqlite:///history.db", "--option", "synchronous=NORMAL")
    assert (status, found["passed"]) == (0, True), found["failures"]
    assert keys("sqlite:///history.db") == ["mine"]
    assert sorted(path.name for path in folder.iterdir()) == before
    assert [line["name"] for line in found["trials"] if line["reason"]] == [TRIALS["NetworkTests"]]


@pytest.mark.skipif("LONG" not in os.environ, reason="takes a minute; LONG in the environment asks for it")
def test_a_server_passes_everything_and_is_empty_afterwards(socket_path: str, namespace: str) -> None:
    url = f"unix://{socket_path}?namespace={namespace}"
    store(url, "mine")
    status, found = report(url, "--scratch")
    assert (status, found["passed"]) == (0, True), found["failures"]
    assert found["level"] == "keeps 14 of 14 obligations, passes 6 of 6 trials"
    assert {cost["round_trips"] for cost in found["costs"]} == {1}
    assert keys(url) == []


def test_a_store_that_holds_conversations_is_refused_and_left_alone(socket_path: str, namespace: str) -> None:
    url = f"unix://{socket_path}?namespace={namespace}"
    store(url, "mine")
    ended = check(url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "the store holds conversations" in ended.stderr
    assert "--scratch" in ended.stderr
    assert keys(url) == ["mine"]


def test_a_password_is_never_shown() -> None:
    ended = check("redis://ann:canary@127.0.0.1:1/0")
    assert ended.returncode == 1
    assert "canary" not in ended.stdout + ended.stderr
    assert ended.stderr.count("\n") == 1


def test_every_test_class_of_the_kit_speaks_for_something() -> None:
    """Those of the classes that are run; the rest needs what no URL can give."""
    folder = Path(chathistory_core.testing.__file__).parent
    classes = {
        node.name
        for path in folder.glob("*.py")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name.endswith("Tests")
    }
    assert classes - {"AbilityTests", "BackendTests", "ExpiryTests"} == set(TESTED) | set(TRIALS)
    assert set(TESTED.values()) == set(range(1, len(OBLIGATIONS) + 1))


def test_an_obligation_is_kept_when_it_was_tested_and_nothing_failed() -> None:
    outcomes = [
        Outcome("OrderTests", "one", passed=True),
        Outcome("OrderTests", "two", passed=True),
        Outcome("ReadTests", "three", passed=False, message="assert 1 == 2"),
        Outcome("CancellationTests", "four", passed=True),
        Outcome("CrashTests", "five", passed=False),
    ]
    kept, tried = obligations(outcomes), trials(outcomes, {"NetworkTests": "no server"})
    assert [line.name for line in kept if line.kept] == ["1 order"]
    assert [line.failed for line in kept if line.failed] == [["three"]]
    assert [line.tests for line in tried] == [0, 0, 1, 0, 1, 0]
    found = level(kept, tried)
    assert found.startswith("keeps 1 of 14 obligations, passes 1 of 6 trials; broken: 2 epoch, ")
    assert found.endswith("writers killed with SIGKILL; not tested: a network that loses, delays, cuts and resets")
