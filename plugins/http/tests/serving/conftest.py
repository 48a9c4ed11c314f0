"""`chathistory serve`, as a process of its own."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Self

import pytest

SECONDS = 60.0
"""How long a process may take to start or to end, on a machine that has other things to do."""


class Process:
    """A running service; it printed a `line` with its `url`, and its `log` so far is a list of lines."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        command = [sys.executable, "-W", "error", "-m", "chathistory_core.cli", "serve", "--port", "0", *arguments]
        self.process = subprocess.Popen(
            command,
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.log: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()
        found = re.search("https?://[^ ,]+", self.line)
        self.url = found[0] if found else ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)  # its workers, too, which hold on to the log
        self.wait()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.log.extend(iter(self.process.stderr.readline, ""))

    def wait(self) -> int:
        """Until it has ended."""
        status = self.process.wait(SECONDS)
        self._reader.join()
        for stream in (self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()
        return status

    def stop(self) -> int:
        """Tell it to stop, and wait until it has."""
        self.process.terminate()
        return self.wait()


def _starting() -> Iterator[Callable[..., Process]]:
    with ExitStack() as stack:

        def started(*arguments: str, **variables: str) -> Process:
            process = stack.enter_context(Process(*arguments, **variables))
            assert process.url, process.log
            return process

        yield started


@pytest.fixture
def start() -> Iterator[Callable[..., Process]]:
    """Starts it with the given arguments and variables, on a free port, until the test ends."""
    yield from _starting()


@pytest.fixture(scope="module")
def start_for_module() -> Iterator[Callable[..., Process]]:
    """As `start`, until the module's tests have ended."""
    yield from _starting()
