"""Something between a backend and its user, for what happens between two calls."""

from collections.abc import Awaitable, Callable
from typing import Literal

from tests.passing import Call, Passing, T

from chathistory_core import ChatHistoryBackend, Limits, check_write


class KilledError(BaseException):
    """The process is gone: nothing catches this."""


class Breaking(Passing):
    """Passes calls on; breaks off before or after the call of a number."""

    def __init__(self, backend: ChatHistoryBackend, *, limits: Limits | None = None) -> None:
        super().__init__(backend)
        self.limits = backend.limits if limits is None else limits
        self.calls = 0
        self.broken: tuple[int, str] | None = None
        self.error: type[BaseException] = KilledError

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        if call.operation in ("append", "replace"):
            check_write(call.operation, call.key, call.records, call.turn_id, self.limits)
        self.calls += 1
        if self.broken == (self.calls, "before"):
            raise self.error
        result = await go_on()
        if self.broken == (self.calls, "after"):
            raise self.error
        return result


class AtTheLastMoment(Breaking):
    """Does something once, just before an append or a replace."""

    before: Literal["append", "replace"] = "replace"
    action: Callable[[], Awaitable[object]] | None = None

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        if call.operation == self.before and self.action is not None:
            action, self.action = self.action, None
            await action()
        return await super().around(call, go_on)
