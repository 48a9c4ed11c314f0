"""The heads of conversations, page by page."""

from collections.abc import AsyncIterator, Sequence

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.cli.error import CommandError
from chathistory_core.records import NO_REVISION, Conversation, ConversationSummary

_PAGE = 1_000


async def pages(
    backend: ChatHistoryBackend, *, prefix: str = "", order: Order = "key", limit: int | None = None
) -> AsyncIterator[Sequence[ConversationSummary]]:
    """The summaries in the order asked for, at most `limit`, in the memory of one page."""
    last: ConversationSummary | None = None
    left = limit
    while left is None or left > 0:
        size = _PAGE if left is None else min(left, _PAGE)
        page = await backend.summaries(prefix=prefix, after=last, limit=size, order=order)
        if page:
            yield page
            last = page[-1]
        if len(page) < size:
            return
        left = None if left is None else left - len(page)


async def head(backend: ChatHistoryBackend, key: str) -> Conversation:
    """The conversation without its records; `CommandError` where there is none."""
    found = await backend.get(key, limit=0)
    if found.revision == NO_REVISION:
        raise unknown(key)
    return found


def unknown(key: str) -> CommandError:
    """The error of a key that names no conversation."""
    return CommandError(f"there is no conversation {key!r}: `chathistory list` shows those there are")
