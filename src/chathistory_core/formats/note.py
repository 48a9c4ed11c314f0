"""`chathistory-note`: derived data that belongs to a conversation, such as a summary, and is no message.

A note is cleared, copied and expired with its conversation and counts as a record; readers of messages do not see it.
"""

from chathistory_core.messages import ChatMessage

name = "chathistory-note"


def decode(payload: bytes) -> tuple[ChatMessage, ...]:  # noqa: ARG001 - whoever wrote the note reads it
    """No messages."""
    return ()
