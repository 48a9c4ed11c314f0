"""Who takes part, and the process that speaks for each."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

ROOT = Path(__file__).resolve().parents[1]

Family = Literal["file", "redis", "memory"]

PATIENCE = 120.0
"""Seconds that a worker may take for one answer; starting it may install its environment, and takes what it takes."""


@dataclass(frozen=True)
class Contestant:
    """A library, or one of its ways to keep conversations."""

    name: str
    script: str
    """In the folder of the peers; ours is `ours.py`."""
    family: Family
    durabilities: tuple[str, ...] = ("FULL",)
    """Those that it can be opened with; the first is what a user gets who follows its documentation."""

    @property
    def is_ours(self) -> bool:
        return self.script == "ours.py"

    @property
    def command(self) -> list[str]:
        if self.is_ours:
            return [sys.executable, str(ROOT / "benchmarks" / self.script), self.name]
        return [uv(), "run", "--quiet", "--script", str(ROOT / "benchmarks" / "peers" / self.script), self.name]

    @property
    def python_path(self) -> str:
        """Where modules are found: of ours also where this process finds them, so that a copy can be measured."""
        more = [os.environ["PYTHONPATH"]] if self.is_ours and "PYTHONPATH" in os.environ else []
        return os.pathsep.join([str(ROOT), *more])


class WorkerError(Exception):
    """A worker's request failed; it goes on answering unless it says otherwise."""


class NotOfferedError(WorkerError):
    """The contestant has no such thing."""


class Worker:
    """The process of a contestant."""

    def __init__(self, contestant: Contestant) -> None:
        self.contestant = contestant
        self._process = subprocess.Popen(
            contestant.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            start_new_session=True,  # uv's own child ends with it
            env={**os.environ, "PYTHONPATH": contestant.python_path},
        )

    def ask(self, do: str, *, patience: float = PATIENCE, **request: object) -> dict[str, Any]:
        """The answer to one request."""
        self.send(do, **request)
        return self.receive(patience)

    def send(self, do: str, **request: object) -> None:
        """Begin a request; `receive` has its answer."""
        assert self._process.stdin is not None
        try:
            print(json.dumps({"do": do, **request}), file=self._process.stdin, flush=True)
        except BrokenPipeError:
            raise WorkerError(f"{self.contestant.name}: the process has ended") from None

    def receive(self, patience: float = PATIENCE) -> dict[str, Any]:
        """The answer to the request that was sent; a worker that takes longer is ended."""
        assert self._process.stdout is not None
        timer = threading.Timer(patience, self._kill)
        timer.start()
        try:
            line = self._process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            raise WorkerError(f"{self.contestant.name}: no answer within {patience:.0f} s, or the process has ended")
        answer: dict[str, Any] = json.loads(line)
        if "not offered" in answer:
            raise NotOfferedError(self.contestant.name)
        if "error" in answer:
            raise WorkerError(f"{self.contestant.name}: {answer['error']}")
        return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._kill()
            self._process.wait()

    def _kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


def uv() -> str:
    """The path of uv, which makes the environments of others."""
    inside = ROOT / ".bootstrap" / ("Scripts" if os.name == "nt" else "bin") / "uv"
    found = shutil.which("uv") or shutil.which(str(inside))
    if found is None:
        sys.exit("benchmarks: the other libraries need uv: install it, or run `python3 dev.py benchmark`")
    return found
