"""A call of an asynchronous function by a thread that waits for it."""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from math import inf
from time import monotonic
from typing import Generic, TypeVar

from chathistory_core.blocking.loop import ENDING, the_thread
from chathistory_core.errors import BackendStateError

logger = logging.getLogger("chathistory")

T = TypeVar("T")

_SLICE = 0.1
"""Seconds of waiting in one piece: on Windows no signal ends a wait, and elsewhere none that comes just before it."""


def run(make: Callable[[], Coroutine[object, object, T]], *, save_timeout: float = 0) -> T:
    """What the coroutine returns or raises, run on the loop, in the caller's context.

    Interrupted, it leaves at once; with a `save_timeout` it first waits this long for the coroutine's end, unless it is
    interrupted again. A coroutine that it leaves is cancelled.
    """
    loop = the_thread.loop()
    call = _Call(make)
    loop.call_soon_threadsafe(call.start)
    try:
        call.wait(inf)
    except BaseException:
        try:
            call.wait(save_timeout)
            if save_timeout:
                call.log_interrupted(save_timeout)
        finally:
            loop.call_soon_threadsafe(call.cancel)
        raise
    try:
        return call.outcome.result()
    finally:
        del call  # an error's traceback has this frame, which must not keep the error in turn


class _Call(Generic[T]):
    def __init__(self, make: Callable[[], Coroutine[object, object, T]]) -> None:
        self.outcome = Future[T]()
        self._make = make
        self._done = threading.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            self.outcome.set_result(await self._make())
        except asyncio.CancelledError:
            self.outcome.set_exception(BackendStateError(ENDING))  # unless its caller has left, and sees nothing of it
            raise
        except BaseException as error:  # noqa: BLE001 - a SystemExit too is the caller's: here it would end the loop
            self.outcome.set_exception(error)
        finally:
            self._done.set()
            del self  # as above

    def wait(self, seconds: float) -> None:
        deadline = monotonic() + seconds
        while not self._done.is_set() and (left := deadline - monotonic()) > 0:
            self._done.wait(min(left, _SLICE))

    def log_interrupted(self, save_timeout: float) -> None:
        if not self._done.is_set():
            logger.error("a write was not done within %s s of being interrupted: the outcome is unknown", save_timeout)
        elif (failure := self.outcome.exception()) is not None:
            logger.error("a write failed while being interrupted: %s", type(failure).__name__)
