"""What a store has to do: five calls that know nothing of conversations."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Head(NamedTuple):
    """The one value of a key that is changed by comparison; a few hundred bytes, never more than 4 KiB."""

    revision: str
    """32 ASCII characters, never used twice: what `commit` compares."""
    body: bytes
    version: str = ""
    """The store's own version of the value (an ETag), where it compares that: set by `load`, given back to `commit`."""

    def __repr__(self) -> str:
        return f"<Head {self.revision!r}>"


class Block(NamedTuple):
    """A piece of a log; it has at least one byte and at most the backend's `max_block`."""

    log: str
    """32 ASCII characters."""
    name: str
    """Up to 80 ASCII characters: digits, lower-case letters and dots. Put again, it is put with the same body."""
    body: bytes

    def __repr__(self) -> str:
        return f"<Block {self.log!r}, {self.name!r}, {len(self.body)} bytes>"


class ConditionalStore(Protocol):
    """Heads, each under a key, and logs of blocks, of a store with a conditional put and no transactions.

    Reads are strongly consistent: they see every `commit` that returned before they began, and whoever sees a head sees
    the blocks that were kept with it. Any call may run beside any other, in other processes too, and be cancelled or
    killed half way. An error is `BackendUnavailableError` where the same call may succeed later or may have had an
    effect although the reply was lost.

    A store that is an async context manager too is opened and closed by the backend that it is given to.
    """

    async def load(self, key: str) -> Head | None:
        """The head of the key: any Unicode but NUL and lone surrogates, up to 512 bytes in UTF-8."""
        ...

    async def commit(self, key: str, seen: Head | None, new: Head | None, blocks: Sequence[Block]) -> bool:
        """Keep every block, then set the head, or delete it for None, if it is still `seen`, as `load` returned it.

        Whether it was. If not, blocks may stay: nobody takes notice of them. The blocks may be kept in several
        requests, in any order; the head must not be set before the last of them is kept. The driver should not repeat
        the request that sets it: refused because of its own first try, it is False for what was done. Lost, it is an
        error, and the backend looks what became of it.
        """
        ...

    async def scan(self, log: str, start: str, stop: str) -> Sequence[Block]:
        """Every block with `start <= name < stop`, in ASCII order of the names; of an unknown log none."""
        ...

    async def drop(self, log: str, names: Sequence[str] | None = None) -> None:
        """Remove the blocks of these names, or without names the whole log; those that are not there are no error."""
        ...

    async def heads(self, *, prefix: str, after: str | None, limit: int) -> Sequence[Head]:
        """The first `limit` heads whose key begins with `prefix` and is behind `after`, by code point of the keys.

        Fewer only where there are no more.
        """
        ...
