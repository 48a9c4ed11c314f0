"""Saving what must not be lost, in a task that may be cancelled meanwhile."""

import asyncio
import logging
from collections.abc import Callable, Coroutine

logger = logging.getLogger("chathistory")

_GRACE = 1.0
"""Seconds in which a save that ran out of time may clean up."""


async def finish(save: Callable[[], Coroutine[object, object, object]], what: str, *, timeout: float) -> None:
    """Run `save` to its end, also while this task is being cancelled: then for at most `timeout` seconds more.

    A cancellation that came meanwhile is raised afterwards; what became of the save is in the log then, under `what`.
    A save whose own task is cancelled, as `asyncio.run` does with all tasks at its end, is started once more: it must
    be one that may be repeated.
    """
    loop = asyncio.get_running_loop()
    cancelled: asyncio.CancelledError | None = None
    deadline = 0.0
    task = loop.create_task(save())
    may_repeat = True
    while cancelled is None or loop.time() < deadline:
        try:
            await asyncio.wait([task], timeout=None if cancelled is None else deadline - loop.time())
        except asyncio.CancelledError as error:
            if cancelled is None:
                cancelled, deadline = error, loop.time() + timeout
        if task.cancelled() and may_repeat:
            task, may_repeat = loop.create_task(save()), False
        elif task.done():
            break
    if cancelled is None:
        task.result()
        return
    if not task.done():
        await _stop(task, loop.time() + _GRACE)
    if not task.done() or task.cancelled():
        logger.error("%s was not saved within %s s of being cancelled: the outcome is unknown", what, timeout)
    elif (failure := task.exception()) is not None:
        logger.error("%s was not saved while being cancelled: %s", what, type(failure).__name__)
    raise cancelled


async def _stop(task: "asyncio.Task[object]", deadline: float) -> None:
    task.cancel()
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # retrieved, whenever it ends
    loop = asyncio.get_running_loop()
    while not task.done() and loop.time() < deadline:
        try:
            await asyncio.wait([task], timeout=deadline - loop.time())
        except asyncio.CancelledError:  # the first one is raised in the end
            continue
