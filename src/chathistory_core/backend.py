"""The backend protocol: all that a store must do."""

from collections.abc import Sequence
from types import TracebackType
from typing import Literal, Protocol, Self

from chathistory_core.records import Conversation, ConversationSummary, Limits, Record, Written

Order = Literal["key", "recent"]


class ChatHistoryBackend(Protocol):
    """Keeps conversations: each an ordered log of opaque records under a key.

    1. *Order.* Positions are integers that the store assigns in the commit, from 1, below 2**53, strictly increasing
       within an epoch. Clocks never decide order.
    2. *Epoch.* Changes whenever records are taken away, never on append; see `chathistory_core.read_on`.
    3. *Snapshot.* Head and records of one `get` are one snapshot that sees every write acknowledged before it began;
       `summaries` sees those too.
    4. *Atomicity.* A write is all or nothing, under an exception, a cancelled task, a killed process, a lost reply. The
       records of one append are contiguous. Any number of writers in any number of processes lose nothing.
    5. *Exactly once.* Of all calls with one turn id on one conversation exactly one writes; the others return its
       result with `replayed=True`, whatever they expect, also after a replace. The same id with another `turn_digest`
       raises `TurnConflictError` and writes nothing. After a failed expectation the turn is looked up before it is
       reported. At least the newest `limits.turns_kept` turns of a conversation are remembered. Equal content under
       different turns is different messages.
    6. *Revision.* A random token made by each write. `expected_revision` (`NO_REVISION`: only if new) that is not the
       conversation's raises `RevisionConflictError`; `expected_epoch` lets an append pass other appends and raises
       `EpochChangedError` where records were taken away. `replace` keeps `created_at`, a new start does not.
    7. *Reading* changes nothing and is never capped.
    8. *Empty writes.* `append` of nothing is a `ValueError`; `replace` with nothing leaves an empty conversation.
    9. *Clear* removes records, turns and listing together; nothing cleared is ever returned again. Drivers do not
       repeat it by themselves. Expiry is a clear made by the store's clock from an instant kept with the conversation;
       writes renew it, reads do not; expired is invisible at once.
    10. *Summaries* never load records; the cost of a page follows the page.
    11. *Keys*, prefixes and turn ids pass core's checks before any I/O.
    12. *Size and cost.* At least 1,000 records of 1 MiB in all and one record of 16 MiB are taken in one write; above
        `limits` is `TooLargeError` before any I/O. An append costs the same at any length; `get(limit=n)` costs n.
    13. *Errors* are those of `chathistory_core.errors`; after any error the next call works.
    14. *Lifecycle.* Made anywhere, without I/O; opened by `async with`; closed, it can be opened again, in another loop
        too. Used while closed, opened twice, or used from a loop, thread or process that did not open it, it raises
        `BackendStateError`.
    """

    limits: Limits

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        """The conversation, oldest record first; of an unknown key `Conversation(key)`.

        Without `after` the newest `limit` records before position `before`; with `after` the first `limit` behind it;
        both exclusive. `limit=0` reads the head alone, None everything.

        Raises:
            ValueError: a negative number, or both cursors.
        """
        ...

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        """Put the records behind those that are there.

        Raises:
            TurnConflictError, RevisionConflictError, EpochChangedError: and nothing is written.
        """
        ...

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        """Put the records in the place of those that are there; a new epoch begins.

        Raises:
            TurnConflictError, RevisionConflictError: and nothing is written.
        """
        ...

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        """Remove the conversation; whether there was one.

        Raises:
            RevisionConflictError: there is one, at another revision.
        """
        ...

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        """The heads of the conversations whose key begins with `prefix`.

        `order="key"` is by code point, `"recent"` newest `updated_at` first, then by key. `after` is the last summary
        of the page before; a page shorter than `limit` is the last one.
        """
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
