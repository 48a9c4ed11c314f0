"""Pages of summaries."""

from collections.abc import Sequence

from chathistory_core.backend import Order
from chathistory_core.conditional.state import decode, microseconds
from chathistory_core.conditional.store import ConditionalStore
from chathistory_core.records import ConversationSummary

_PAGE = 1_000
"""The most heads that a store is asked for at once."""


async def page(
    store: ConditionalStore, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order
) -> Sequence[ConversationSummary]:
    """The summaries that a backend answers."""
    if order == "key":
        return await _by_key(store, prefix, after.key if after else None, limit)
    found = await _by_key(store, prefix, None, None)
    if after is not None:
        found = [summary for summary in found if _recency(summary) > _recency(after)]
    return sorted(found, key=_recency)[:limit]


async def _by_key(
    store: ConditionalStore, prefix: str, after: str | None, limit: int | None
) -> list[ConversationSummary]:
    """Places without a conversation do not count, so it may take several requests."""
    found: list[ConversationSummary] = []
    while limit is None or len(found) < limit:
        asked = _PAGE if limit is None else min(_PAGE, limit - len(found))
        states = [decode(head) for head in await store.heads(prefix=prefix, after=after, limit=asked)]
        found += [state.summary for state in states if state.epoch]
        if len(states) < asked:
            break
        after = states[-1].key
    return found


def _recency(summary: ConversationSummary) -> tuple[int, str]:
    return -microseconds(summary.updated_at), summary.key
