"""Reading a conversation: in pages, for the server serves nobody else while it answers; all of one snapshot."""

from chathistory_core import Conversation, StoredRecord
from chathistory_redis import scripts
from chathistory_redis.layout import conversation, epoch_of, unpack
from chathistory_redis.store import Store

_MOST = 2**53
"""Above any position, and exact in the scripts."""


async def read(store: Store, key: str, limit: int | None, before: int | None, after: int | None) -> Conversation:
    """What a `get` answers."""
    found = None
    while found is None:
        found = await _read(store, key, limit, before, after)
    return found


async def _read(
    store: Store, key: str, limit: int | None, before: int | None, after: int | None
) -> Conversation | None:
    """The conversation, or None where records were taken away between two pages."""
    status, *page = await _page(store, key, _text(limit), _text(before), _text(after), b"", "")
    if status == b"none":
        return Conversation(key)
    head, start, last, *entries = page
    records: list[StoredRecord] = unpack(entries, int(start))
    while records and records[-1].position < int(last):  # the list only grows within an epoch: what is read stays there
        status, *page = await _page(store, key, "", "", str(records[-1].position), epoch_of(head), last)
        if status != b"found":
            return None
        records += unpack(page[3:], records[-1].position + 1)
    return conversation(key, head, records)


async def _page(
    store: Store, key: str, limit: str, before: str, after: str, epoch: bytes, last: bytes | str
) -> list[bytes]:
    """Status, head, first position, last position of the whole read, records."""
    arguments = (limit, before, after, epoch, last)
    return await store.run(scripts.READ, key, arguments, action="read conversation")


def _text(number: int | None) -> str:
    return "" if number is None else str(min(number, _MOST))
