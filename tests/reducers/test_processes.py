"""Processes that summarise one conversation at once keep one summary, and both go on with it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from chathistory_core import ChatHistoryBackend, StoredChatHistoryProvider, open_backend

from .talk import notes, run, talk

WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture(params=["sqlite", "valkey"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store that processes share."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/history.db"
    valkey: str = request.getfixturevalue("valkey")
    return valkey


@contextmanager
def workers(*arguments: tuple[str, str]) -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes; those that still run at the end are killed."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", WORKER, *each], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for each in arguments
    ]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def line_of(process: "subprocess.Popen[str]") -> str:
    return _stream(process.stdout).readline().rstrip("\n")


def go_on(process: "subprocess.Popen[str]") -> None:
    stream = _stream(process.stdin)
    stream.write("\n")
    stream.flush()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


async def begin(backend: ChatHistoryBackend) -> None:
    await talk(StoredChatHistoryProvider(backend), 1, 4)


def test_of_two_processes_that_ask_the_model_at_once_one_s_summary_is_kept_and_shown_by_both(url: str) -> None:
    async def look(backend: ChatHistoryBackend) -> None:
        assert notes(await backend.get("k")) == 1

    run(lambda: open_backend(url), begin)
    with workers((url, "of one"), (url, "of two")) as processes:
        assert [line_of(process) for process in processes] == ["asked", "asked"]
        for process in processes:
            go_on(process)
        shown = [json.loads(line_of(process)) for process in processes]
    assert shown[0] in (["[Summary]\nof one", "q3", "a3"], ["[Summary]\nof two", "q3", "a3"])
    assert shown[1] == shown[0]
    run(lambda: open_backend(url), look)
    with workers((url, "of three")) as [process]:
        assert json.loads(line_of(process)) == shown[0]


def test_a_process_that_is_killed_while_it_asks_leaves_the_next_one_to_ask(url: str) -> None:
    run(lambda: open_backend(url), begin)
    with workers((url, "of one")) as [process]:
        assert line_of(process) == "asked"
    with workers((url, "of two")) as [process]:
        assert line_of(process) == "asked"
        go_on(process)
        assert json.loads(line_of(process)) == ["[Summary]\nof two", "q3", "a3"]
