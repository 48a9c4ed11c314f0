"""Transcripts that a framework plays back: which of what it gives is stored already.

Equal messages are no repetition: three identical turns are three turns. Only who begins with the whole conversation,
from its first stored message to its last, an answer among them, and then goes on, is playing it back.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from chathistory_core.messages import ChatMessage

_ASKING: Final = frozenset({"user", "system", "developer"})


async def new_messages(
    given: Sequence[ChatMessage], stored: Callable[[], Awaitable[Sequence[ChatMessage]]]
) -> Sequence[ChatMessage]:
    """What of the given messages stands behind the stored ones; those are read only where an answer is played back."""
    if not any(map(_is_answer, given[:-1])):
        return given
    known = await stored()
    if len(known) >= len(given) or not any(map(_is_answer, known)):
        return given
    return given[len(known) :] if all(map(_is_same, known, given)) else given


def _is_answer(message: ChatMessage) -> bool:
    return message.role.lower() not in _ASKING


def _is_same(stored: ChatMessage, given: ChatMessage) -> bool:
    if stored.message_id is not None and given.message_id is not None and stored.message_id != given.message_id:
        return False
    return stored.role == given.role and tuple(stored.contents) == tuple(given.contents)
