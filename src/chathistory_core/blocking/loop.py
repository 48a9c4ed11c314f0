"""The thread whose event loop runs what blocking calls wait for."""

import asyncio
import atexit
import logging
import os
import sys
import threading
from collections.abc import Callable, Coroutine

from chathistory_core.errors import BackendStateError

logger = logging.getLogger("chathistory")

ENDING = "the process is ending: nothing can be read or stored any more"

_FAREWELL = 5.0
"""Seconds that the end of the process waits for what is closed then."""


class LoopThread:
    """An event loop in a daemon thread: started by the first call, ended with the process."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Be as new: a forked child has its parent's loop, but not the thread."""
        self.closers: list[Callable[[], Coroutine[object, object, object]]] = []
        """What closes that which is open, in the order of opening; changed on the loop alone."""
        self._lock = threading.RLock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over = asyncio.Event()
        self._is_over = False

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop, for a call that waits for it.

        Raises:
            BackendStateError: the call would wait for itself, or the process is ending.
        """
        if self._thread is threading.current_thread():
            raise BackendStateError(
                "a blocking call in the thread that runs it would wait for itself: codecs, filters and other functions "
                "that a history calls make none"
            )
        with self._lock:
            if self._is_over:
                raise BackendStateError(ENDING)
            if self._loop is None:
                runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
                self._loop = runner.get_loop()
                self._thread = threading.Thread(target=self._run, args=(runner,), name="chathistory", daemon=True)
                self._thread.start()
            return self._loop

    def end(self) -> None:
        """Close what is open, and the loop."""
        with self._lock:
            self._is_over = True
            loop, thread = self._loop, self._thread
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(self._over.set)
            thread.join(_FAREWELL)

    def _run(self, runner: asyncio.Runner) -> None:
        with runner:
            runner.run(self._live())

    async def _live(self) -> None:
        await self._over.wait()
        for close in reversed(self.closers):
            try:
                await close()
            except Exception as error:  # noqa: BLE001 - the others shall be closed too
                logger.warning("closing what was open when the process ended failed: %s", type(error).__name__)


the_thread = LoopThread()
atexit.register(the_thread.end)  # before any use: what users register to close their own runs first
if sys.platform != "win32":
    os.register_at_fork(after_in_child=the_thread.forget)
