"""How a conversation is cleared, and whose clear it was."""

from collections.abc import Callable
from datetime import datetime

from chathistory_core.conditional.state import State, decode
from chathistory_core.conditional.store import ConditionalStore
from chathistory_core.conditional.tries import Tries
from chathistory_core.errors import BackendUnavailableError, RevisionConflictError


async def clear(
    store: ConditionalStore, key: str, expected_revision: str | None, *, clock: Callable[[], datetime]
) -> bool:
    """Put a vacant place where the conversation is, drop its logs, remove the place; whether there was a conversation.

    A place that another clear or a killed writer left is removed in the same way. As soon as another life than the one
    that was seen has begun, there is nothing left to do: what was appended since is not touched.
    """
    tries = Tries(key)
    seen: State | None = None
    place: State | None = None
    while True:
        await tries.another()
        head = await store.load(key)
        state = None if head is None else decode(head)
        if seen is not None and place is not None and (state is None or state.revision != seen.revision):
            if state is not None and state.life == place.revision:
                await _vacate(store, place)
                return bool(seen.epoch)
            if state is None or state.life != seen.life:
                return False
            place = None
        if state is None:
            return False
        if state.epoch and expected_revision is not None and expected_revision != state.revision:
            raise RevisionConflictError(key)
        if place is None:
            seen, place = state, state.cleared(max(clock(), state.updated_at))
        try:
            kept = await store.commit(key, head, place.encode(), ())
        except BackendUnavailableError as error:
            tries.failed(error)
        else:
            if kept:
                await _vacate(store, place)
                return bool(state.epoch)


async def _vacate(store: ConditionalStore, place: State) -> None:
    for log in place.dead:
        await store.drop(log)
    head = await store.load(place.key)
    if head is not None and head.revision == place.revision:
        await store.commit(place.key, head, None, ())
