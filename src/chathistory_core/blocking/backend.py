"""Backends, blocking; and what is read of them in pieces."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self, overload

from chathistory_core import opening, reading
from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.blocking.block import Block
from chathistory_core.blocking.call import run
from chathistory_core.blocking.face import Face, saved, waited
from chathistory_core.records import Conversation, Limits, StoredRecord

if TYPE_CHECKING:
    from chathistory_core.plugin import BackendOptions


class BlockingBackend(Face[ChatHistoryBackend]):
    """A backend whose calls return when they are done; opened and closed by `with`."""

    def __init__(self, backend: ChatHistoryBackend, *, save_timeout: float = 10) -> None:
        """The backend is not open yet. `save_timeout` is how many seconds Ctrl-C waits for a write."""
        super().__init__(backend, save_timeout=save_timeout)
        self._block = Block(backend, save_timeout=save_timeout)

    @property
    def limits(self) -> Limits:
        """What it takes in one write."""
        return self.target.limits

    get = waited(ChatHistoryBackend.get)
    append = saved(ChatHistoryBackend.append)
    replace = saved(ChatHistoryBackend.replace)
    clear = saved(ChatHistoryBackend.clear)
    summaries = waited(ChatHistoryBackend.summaries)

    def __enter__(self) -> Self:
        self._block.enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._block.leave(kind, error, traceback)


@overload
def open_backend(backend: "BackendOptions") -> BlockingBackend: ...
@overload
def open_backend(backend: str | None = None, *, options: Mapping[str, object] | None = None) -> BlockingBackend: ...
def open_backend(
    backend: "str | BackendOptions | None" = None, *, options: Mapping[str, object] | None = None
) -> BlockingBackend:
    """The backend that is named as for `chathistory_core.open_backend`, not yet opened: use it with `with`."""
    made = opening.open_backend(backend, options=options)  # type: ignore[arg-type] # our overloads are its own
    return BlockingBackend(made)


def iter_records(backend: BlockingBackend, key: str, *, page: int = 1_000) -> Iterator[StoredRecord]:
    """Every record of the conversation up to the head that was first seen, in the memory of one page.

    Raises:
        EpochChangedError: records were taken away on the way.
    """
    records = reading.iter_records(backend.target, key, page=page)
    while found := run(partial(_take, records, page)):
        yield from found


async def _take(records: AsyncIterator[StoredRecord], count: int) -> Sequence[StoredRecord]:
    """The next records: as many as one read gives, so that no more is read than is asked for."""
    found: list[StoredRecord] = []
    async for record in records:
        found.append(record)
        if len(found) == count:
            break
    return found


def read_on(backend: BlockingBackend, key: str, held: Conversation, *, limit: int | None = None) -> Conversation | None:
    """What came behind the records that the caller holds, or None for "start over": `chathistory_core.read_on`."""
    return run(partial(reading.read_on, backend.target, key, held, limit=limit))


def erase(backend: BlockingBackend, prefix: str, *, everything: bool = False) -> int:
    """Clear every conversation whose key begins with `prefix`, until a pass finds none; how many were cleared.

    `everything=True` stands for the empty prefix, which is not taken by itself. Ctrl-C ends it at once.
    """
    return run(partial(reading.erase, backend.target, prefix, everything=everything))
