"""Which messages a sequence begins with, told without a look at any of them: histories are long, and only grow."""

from collections.abc import Sequence
from operator import is_

from chathistory_core.messages.message import ChatMessage


def begins_with(messages: Sequence[ChatMessage], first: Sequence[ChatMessage]) -> bool:
    """Whether the messages begin with these very objects."""
    return len(first) <= len(messages) and all(map(is_, first, messages))
