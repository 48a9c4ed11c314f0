"""A conversation read from its newest record backwards, as far as is asked for."""

from collections.abc import Sequence

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.errors import EpochChangedError, TooLargeError
from chathistory_core.messages import ChatMessage
from chathistory_core.records import Conversation

LARGEST_PAGE = 1_000
"""How many records are asked for at once."""


class Pages:
    """The newest records of a conversation, without a gap, at one epoch."""

    def __init__(self, conversations: Conversations, key: str, *, max_bytes: int | None = None) -> None:
        self._conversations = conversations
        self._key = key
        self._reading = conversations.reading(key)
        self._max_bytes = max_bytes
        self._bytes = 0
        self._loaded: Loaded | None = None

    @property
    def loaded(self) -> Loaded:
        """What was read, under the head that was seen first."""
        if self._loaded is None:
            raise RuntimeError("nothing was read yet")
        return self._loaded

    @property
    def unread(self) -> int:
        """How many records stand before those that were read."""
        return 0 if self._loaded is None else self._loaded.conversation.record_count - len(self._loaded.groups)

    async def read(self, limit: int | None) -> None:
        """Read so many records more, or all.

        Raises:
            EpochChangedError: records were taken away since the first were read.
            TooLargeError: that would be more bytes than may be read.
        """
        known = self._loaded
        if known is None and limit is None and self._max_bytes is None:
            self._loaded = await self._conversations.read(self._key)
        elif known is None:
            page = await self._conversations.backend.get(self._key, limit=limit)
            self._loaded = Loaded(page, await self._decode(page))
        elif known.groups:
            head, records = known.conversation, known.conversation.records
            page = await self._conversations.backend.get(self._key, limit=limit, before=records[0].position)
            groups = await self._decode(page)
            self._loaded = Loaded(head._replace(records=(*page.records, *records)), [*groups, *known.groups])

    async def first(self, limit: int) -> Loaded:
        """The conversation's first records, of which none was read yet."""
        page = await self._conversations.backend.get(self._key, after=0, limit=limit)
        return Loaded(page, await self._decode(page))

    async def _decode(self, page: Conversation) -> list[Sequence[ChatMessage]]:
        if self._loaded is not None and page.epoch != self._loaded.conversation.epoch:
            raise EpochChangedError(self._key)
        self._bytes += sum(len(record.payload) for record in page.records)
        check_bytes(self._key, self._bytes, self._max_bytes)
        return await self._conversations.decode(self._key, page.records, reading=self._reading)


def check_bytes(key: str, count: int, most: int | None) -> None:
    """Whether a run may load so many bytes of records.

    Raises:
        TooLargeError: it may not.
    """
    if most is not None and count > most:
        raise TooLargeError(
            f"conversation {key!r}: the run would load more than {most} bytes of records: give the provider a window, "
            "or a larger `max_load_bytes`; where it has a window, a smaller one (more is read at first than it shows)"
        )
