"""A backend in front of another, for tests that count calls or disturb them."""

from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import Literal, NamedTuple, Self, TypeVar

from chathistory_core import ChatHistoryBackend, Conversation, ConversationSummary, Limits, Order, Record, Written

T = TypeVar("T")


class Call(NamedTuple):
    """A call on its way."""

    operation: Literal["get", "append", "replace", "clear", "summaries"]
    key: str = ""
    records: Sequence[Record] = ()
    turn_id: str = ""


class Passing:
    """Passes every call on, through `around`, which its kinds override."""

    def __init__(self, backend: ChatHistoryBackend) -> None:
        self.backend = backend
        self.limits: Limits = backend.limits

    async def around(self, call: Call, go_on: Callable[[], Awaitable[T]]) -> T:
        """What the call gives; `go_on` makes it."""
        return await go_on()

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        call = Call("get", key)
        return await self.around(call, lambda: self.backend.get(key, limit=limit, before=before, after=after))

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self.around(
            Call("append", key, records, turn_id),
            lambda: self.backend.append(
                key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
            ),
        )

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self.around(
            Call("replace", key, records, turn_id),
            lambda: self.backend.replace(key, records, turn_id=turn_id, expected_revision=expected_revision),
        )

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        call = Call("clear", key)
        return await self.around(call, lambda: self.backend.clear(key, expected_revision=expected_revision))

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        return await self.around(
            Call("summaries"),
            lambda: self.backend.summaries(prefix=prefix, after=after, limit=limit, order=order),
        )

    async def __aenter__(self) -> Self:
        await self.backend.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.backend.__aexit__(kind, error, traceback)
