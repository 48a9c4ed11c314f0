"""An asynchronous context manager, entered and left by threads that wait for it."""

from contextlib import AbstractAsyncContextManager
from functools import partial
from types import TracebackType
from typing import Generic, TypeVar

from chathistory_core.blocking.call import run
from chathistory_core.blocking.loop import the_thread

T_co = TypeVar("T_co", covariant=True)


def patience(error: BaseException | None, save_timeout: float) -> float:
    """How long Ctrl-C waits for the end of a block that was left by this error: after another Ctrl-C it does not."""
    return 0 if isinstance(error, KeyboardInterrupt) else save_timeout


class Block(Generic[T_co]):
    """A `with` over the context manager of something that is open; what is never left is closed with the process."""

    def __init__(self, context: AbstractAsyncContextManager[T_co], *, save_timeout: float) -> None:
        self._context = context
        self._save_timeout = save_timeout
        self._close = partial(context.__aexit__, None, None, None)

    def enter(self) -> T_co:
        """What the context manager gives."""
        return run(self._enter)

    async def _enter(self) -> T_co:
        entered = await self._context.__aenter__()
        the_thread.closers.append(self._close)
        return entered

    def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        """Whether the context manager takes the error for dealt with."""
        leave = partial(self._leave, kind, error, traceback)
        return run(leave, save_timeout=patience(error, self._save_timeout))

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if self._close in the_thread.closers:
            the_thread.closers.remove(self._close)
        return await self._context.__aexit__(kind, error, traceback)
