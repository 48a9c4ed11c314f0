"""What a call costs, counted from outside: nothing is asked of the backend."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextvars import Context
from io import FileIO
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeVarTuple, cast
from urllib.parse import unquote, urlsplit

from chathistory_core.testing.proxy import Proxy

Arguments = TypeVarTuple("Arguments")

_PROCESS = Path("/proc/self/io")


class Reading(NamedTuple):
    """How far the meters have come."""

    hops: int
    commits: int
    round_trips: int
    read: int
    written: int

    def since(self, before: "Reading") -> "Reading":
        """What was counted after `before`."""
        return Reading(*(now - then for now, then in zip(self, before, strict=True)))


class Meters:
    """Counts for the block of a `with`, of which there is one at a time."""

    def __init__(self, proxy: Proxy | None = None) -> None:
        """`proxy` is what the backend reaches its server through."""
        self._proxy = proxy
        self._loops: list[MeteredLoop] = []
        self._databases: dict[Path, _Database] = {}

    @property
    def counts_bytes(self) -> bool:
        """Whether there is something that counts what is read and written."""
        return self._proxy is not None or _PROCESS.exists()

    @property
    def counts_commits(self) -> bool:
        """Whether a SQLite database was opened."""
        return bool(self._databases)

    def loop(self) -> asyncio.AbstractEventLoop:
        """A new event loop that counts; for `asyncio.Runner(loop_factory=…)`."""
        loop = MeteredLoop()
        self._loops.append(loop)
        return loop

    def read(self) -> Reading:
        """How far they have come."""
        hops = sum(loop.hops for loop in self._loops)
        commits = sum(database.commits for database in self._databases.values())
        if self._proxy is not None:
            traffic = self._proxy.traffic
            return Reading(hops, commits, traffic.round_trips, traffic.received, traffic.sent)
        return Reading(hops, commits, 0, *_process_bytes())

    def __enter__(self) -> Self:
        _watch(self._databases)
        return self

    def __exit__(self, *_: object) -> None:
        _watch(None)
        for database in self._databases.values():
            database.close()


class MeteredLoop(asyncio.SelectorEventLoop):
    """Counts what other threads than the one that made it hand to it: a call that works on another has an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.hops = 0
        self._home = threading.get_ident()

    def call_soon_threadsafe(
        self, callback: Callable[[*Arguments], object], *args: *Arguments, context: Context | None = None
    ) -> asyncio.Handle:
        """As of every loop."""
        self.hops += threading.get_ident() != self._home
        return super().call_soon_threadsafe(callback, *args, context=context)


def _process_bytes() -> tuple[int, int]:
    """What all threads of the process have read from and written to files, this reading not counted; Linux alone."""
    if not _PROCESS.exists():
        return 0, 0
    global _own  # noqa: PLW0603 - what reading the figures has added to them
    text = _PROCESS.read_text()
    figures = dict(line.split(": ") for line in text.splitlines())
    read = int(figures["rchar"]) - _own
    _own += len(text)
    return read, int(figures["wchar"])


_own = 0


class _Place(NamedTuple):
    at: int
    order: Literal["little", "big"]


_IN_INDEX = _Place(8, sys.byteorder)
_IN_FILE = _Place(24, "big")


class _Database:
    """A SQLite database that was opened in this process, whose commits its own files count.

    They count those that changed something: the file itself (file format, 1.3.9), and beside a write-ahead log the
    index of that log (WAL-mode file format, 2.1).
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: FileIO | None = None
        self._place = _IN_INDEX

    @property
    def commits(self) -> int:
        """So far; only the difference between two of them means something."""
        if self._file is None:
            try:
                self._file = FileIO(f"{self.path}-shm")
            except FileNotFoundError:
                self._file, self._place = FileIO(self.path), _IN_FILE
        global _own  # noqa: PLW0603 - as above
        _own += 4
        self._file.seek(self._place.at)
        return int.from_bytes(self._file.read(4), self._place.order)

    def close(self) -> None:
        """Let go of the file: not before the backend did, for closing a file drops the locks that it has on it."""
        if self._file is not None:
            self._file.close()


_watchers: list[dict[Path, _Database] | None] = []
"""Who is told of the SQLite databases that are opened; empty until the hook is there, which stays for good."""


def _watch(databases: dict[Path, _Database] | None) -> None:
    if not _watchers:
        _watchers.append(None)
        sys.addaudithook(_hear)
    _watchers[0] = databases


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    if event == "sqlite3.connect" and (databases := _watchers[0]) is not None:
        name = os.fsdecode(cast("str | bytes | os.PathLike[str]", arguments[0]))
        if name.startswith("file:"):
            name = unquote(urlsplit(name).path)
        if name and name != ":memory:":
            path = Path(name).absolute()
            databases.setdefault(path, _Database(path))
