"""Who may use an opened backend: the loop, thread and process that opened it."""

import asyncio
import os

from chathistory_core.errors import BackendStateError


class Opened:
    """The state of one backend, closed at first; a backend holds one and asks it before each call."""

    def __init__(self, name: str) -> None:
        """`name` is what errors call the backend; it must hold no credentials."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def open(self) -> None:
        """Belong to the running loop until `close`; `BackendStateError` where it is open already."""
        if self._loop is not None and self._process == os.getpid():
            raise BackendStateError(f"{self._name} is open already: use the one that is, or make another object")
        self._loop = asyncio.get_running_loop()
        self._process = os.getpid()

    def check(self) -> None:
        """Pass the loop that opened it; `BackendStateError` for anyone else."""
        if self._loop is None:
            raise BackendStateError(f"{self._name} is closed: use it inside `async with`")
        if self._process != os.getpid():
            raise BackendStateError(f"{self._name} was opened by a parent process: open another one in this process")
        if _running_loop() is not self._loop:
            raise BackendStateError(f"{self._name} was opened in another event loop: open another one in this loop")

    def close(self) -> None:
        """Belong to nobody."""
        self._loop = None


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
