"""A model's answer that comes in pieces, inside a turn."""

import logging
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from inspect import isawaitable
from typing import Generic, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from chathistory_core.messages import ChatMessage, is_incomplete

logger = logging.getLogger("chathistory")

T = TypeVar("T")

Messages: TypeAlias = ChatMessage | Iterable[ChatMessage]


class Pieces(Generic[T]):
    """The pieces of an answer that have come, and whether they are all of it."""

    def __init__(self, load: Callable[[Sequence[T]], Messages], add: Callable[[Messages], None]) -> None:
        """`load` makes messages of the pieces; `add` takes those of the whole answer."""
        self.ended = False
        """Whether the answer came to its end."""
        self._left = False
        self._load = load
        self._add = add
        self._pieces: list[T] = []

    @property
    def is_broken_off(self) -> bool:
        """Whether the answer is neither whole nor left for another."""
        return not self.ended and not self._left

    def leave(self) -> None:
        """Go on without the rest, and without what came of it."""
        self._left = True

    def partial(self) -> list[ChatMessage]:
        """What the pieces say so far; nothing where they make no message, or the turn went on without them."""
        if not self.is_broken_off or not self._pieces:
            return []
        try:
            return _listed(self._load(tuple(self._pieces)))
        except Exception as error:  # noqa: BLE001 - what broke the stream is what is to be seen
            logger.warning("what came of a stream that broke off makes no message: %s", type(error).__name__)
            return []

    def _check(self) -> None:
        if self._left and not self.ended:
            raise RuntimeError("the turn is over, or went on without this stream")

    def _take(self, piece: T) -> T:
        self._pieces.append(piece)
        return piece

    def _end(self) -> None:
        if self.ended:
            return
        answer = _listed(self._load(tuple(self._pieces)))
        if any(is_incomplete(message) for message in answer):
            raise EOFError("the stream ended before the answer did")
        self.ended = True
        self._add(answer)


def _listed(found: Messages) -> list[ChatMessage]:
    return [found] if isinstance(found, ChatMessage) else list(found)


class Stream(Pieces[T]):
    """The pieces as they come from the source, for `async for`."""

    def __init__(
        self, source: AsyncIterable[T], load: Callable[[Sequence[T]], Messages], add: Callable[[Messages], None]
    ) -> None:
        super().__init__(load, add)
        self._source = source
        self._iterator = aiter(source)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        self._check()
        try:
            return self._take(await anext(self._iterator))
        except StopAsyncIteration:
            self._end()
            raise

    async def close(self) -> None:
        """Close a source that did not come to its end, which then asks its server for no more."""
        if self.ended:
            return
        for source in (self._iterator, self._source):
            try:
                if isinstance(source, _Aclosing):
                    await source.aclose()
                elif isinstance(source, _Closing) and isawaitable(closed := source.close()):
                    await closed
            except Exception as error:  # noqa: BLE001 - what becomes of the turn is decided
                _log_unclosed(error)


class BlockingStream(Pieces[T]):
    """The pieces as they come from the source, for `for`."""

    def __init__(
        self, source: Iterable[T], load: Callable[[Sequence[T]], Messages], add: Callable[[Messages], None]
    ) -> None:
        super().__init__(load, add)
        self._source = source
        self._iterator = iter(source)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        self._check()
        try:
            return self._take(next(self._iterator))
        except StopIteration:
            self._end()
            raise

    def close(self) -> None:
        """Close a source that did not come to its end, which then asks its server for no more."""
        if self.ended:
            return
        for source in (self._iterator, self._source):
            try:
                if isinstance(source, _Closing):
                    source.close()
            except Exception as error:  # noqa: BLE001 - what becomes of the turn is decided
                _log_unclosed(error)


def _log_unclosed(error: Exception) -> None:
    logger.warning("closing a stream that was left failed: %s", type(error).__name__)


@runtime_checkable
class _Aclosing(Protocol):
    async def aclose(self) -> object: ...


@runtime_checkable
class _Closing(Protocol):
    def close(self) -> object: ...
