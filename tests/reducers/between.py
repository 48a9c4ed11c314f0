"""Something between a backend and its user, for what happens between two calls."""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Literal, Self, TypeVar

from chathistory_core import (
    ChatHistoryBackend,
    Conversation,
    ConversationSummary,
    Limits,
    Order,
    Record,
    Written,
    check_write,
)

T = TypeVar("T")


class KilledError(BaseException):
    """The process is gone: nothing catches this."""


class Breaking:
    """Passes calls on; breaks off before or after the call of a number."""

    def __init__(self, backend: ChatHistoryBackend, *, limits: Limits | None = None) -> None:
        self.backend = backend
        self.limits = backend.limits if limits is None else limits
        self.calls = 0
        self.broken: tuple[int, str] | None = None
        self.error: type[BaseException] = KilledError

    async def _do(self, call: Callable[[], Awaitable[T]]) -> T:
        self.calls += 1
        if self.broken == (self.calls, "before"):
            raise self.error
        result = await call()
        if self.broken == (self.calls, "after"):
            raise self.error
        return result

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        return await self._do(lambda: self.backend.get(key, limit=limit, before=before, after=after))

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        check_write("append", key, records, turn_id, self.limits)
        return await self._do(
            lambda: self.backend.append(
                key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
            )
        )

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        check_write("replace", key, records, turn_id, self.limits)
        return await self._do(
            lambda: self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision)
        )

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        return await self._do(lambda: self.backend.clear(key, expected_revision=expected_revision))

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        return await self._do(lambda: self.backend.summaries(prefix=prefix, after=after, limit=limit, order=order))

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.backend.__aexit__(kind, error, traceback)


class AtTheLastMoment(Breaking):
    """Does something once, just before an append or a replace."""

    before: Literal["append", "replace"] = "replace"
    action: Callable[[], Awaitable[object]] | None = None

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        await self._act("append")
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        await self._act("replace")
        return await super().replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def _act(self, operation: str) -> None:
        if operation == self.before and self.action is not None:
            action, self.action = self.action, None
            await action()
