"""How much of a request's body is taken, how slowly, and how much of all bodies at once."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeAlias

from chathistory_http.wire.problems import RETRY_AFTER, ProblemError

MAX_BODY_BYTES = 96 * 1024 * 1024
"""What one write of 64 MiB takes in base64, and the names around it."""

BODY_SECONDS = 30.0
_BYTES_PER_SECOND = 64 * 1024
"""A body has `BODY_SECONDS`, and a second more for so many bytes of it that came."""

_BODIES_AT_ONCE = 4
"""How many bodies of the largest size may be in memory at once; of smaller ones as many as take the same room."""

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]


class Bodies:
    """Reads the bodies of requests, and knows how many bytes of them are in memory."""

    def __init__(
        self, *, max_bytes: int = MAX_BODY_BYTES, seconds: float = BODY_SECONDS, max_bytes_at_once: int | None = None
    ) -> None:
        self.max_bytes = max_bytes
        self.seconds = seconds
        self.free_bytes = max_bytes // 1024  # little more than a connection buffers: few large bodies stop no turn
        self._room = _BODIES_AT_ONCE * max_bytes if max_bytes_at_once is None else max_bytes_at_once

    def read(self, content_length: str | None, receive: Receive) -> AbstractAsyncContextManager[bytes]:
        """The whole body, which counts as being in memory until the block is left.

        `content_length` is the header's value; `receive` is the ASGI server's.

        Raises:
            ProblemError: too-large, timeout, bad-request (it breaks off) or unavailable (others fill the memory).
        """
        return _Body(self, content_length, receive)

    def take(self, size: int) -> None:
        """Have room for so many bytes more, or, where it is negative, for fewer."""
        if size > self._room:
            detail = "the bodies of other requests fill the memory: send it again"
            raise ProblemError("unavailable", detail, headers={"Retry-After": str(RETRY_AFTER)})
        self._room -= size


class _Body:
    """One body. A class and not a generator, for every write passes through it."""

    __slots__ = ("_bodies", "_content_length", "_receive", "_taken")

    def __init__(self, bodies: Bodies, content_length: str | None, receive: Receive) -> None:
        self._bodies = bodies
        self._content_length = content_length
        self._receive = receive
        self._taken = 0

    async def __aenter__(self) -> bytes:
        deadline = _Deadline()
        try:
            told = self._content_length
            if told is not None and told.isdecimal():
                self._expect(int(told[:20]))
            deadline.set(self._bodies.seconds)
            return await self._read(deadline)
        except asyncio.CancelledError:
            self._leave()
            if not deadline.has_passed():
                raise
            headers = {"Connection": "close"}
            raise ProblemError("timeout", "the body came too slowly: send it again", headers=headers) from None
        except BaseException:
            self._leave()
            raise
        finally:
            deadline.clear()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    async def _read(self, deadline: "_Deadline") -> bytes:
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ProblemError("bad-request", "the connection was closed amid the body")
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            self._expect(size)
            if not message.get("more_body", False):
                return b"".join([*chunks, chunk]) if chunks else chunk
            chunks.append(chunk)
            deadline.set(self._bodies.seconds + size / _BYTES_PER_SECOND)

    def _expect(self, size: int) -> None:
        """Make room for a body of this size."""
        if size > self._bodies.max_bytes:
            raise ProblemError("too-large", f"the body has more than {self._bodies.max_bytes} bytes: send it in parts")
        if size > max(self._taken, self._bodies.free_bytes):
            self._bodies.take(size - self._taken)
            self._taken = size

    def _leave(self) -> None:
        self._bodies.take(-self._taken)
        self._taken = 0


class _Deadline:
    """Cancels the task when it passes: as `asyncio.timeout` does, which takes longer than all else here together."""

    __slots__ = ("_began", "_cancelled", "_loop", "_passed", "_task", "_timer")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task(self._loop)
        self._cancelled = 0 if self._task is None else self._task.cancelling()
        self._timer: asyncio.TimerHandle | None = None
        self._began = self._loop.time()
        self._passed = False

    def set(self, seconds: float) -> None:
        """It passes so many seconds after it was made."""
        self.clear()
        self._timer = self._loop.call_at(self._began + seconds, self._pass)

    def clear(self) -> None:
        """It does not pass any more."""
        if self._timer is not None:
            self._timer.cancel()

    def has_passed(self) -> bool:
        """Whether it was this that cancelled the task, and nobody else did."""
        return self._passed and self._task is not None and self._task.uncancel() <= self._cancelled

    def _pass(self) -> None:
        self._passed = True
        if self._task is not None:
            self._task.cancel()
