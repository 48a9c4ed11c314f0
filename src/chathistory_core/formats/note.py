"""`chathistory-note`: derived data that belongs to a conversation, such as a summary, and is no message.

A note is cleared, copied and expired with its conversation and counts as a record; readers of messages do not see it.
"""

from collections.abc import Sequence
from typing import Never, overload

from chathistory_core.messages import ChatMessage, Origin

name = "chathistory-note"


class Note(Sequence[ChatMessage]):
    """The messages of a note: none. Whoever wrote it finds in `payload` what it says."""

    def __init__(self, payload: bytes) -> None:
        self.payload = payload

    @overload
    def __getitem__(self, index: int) -> Never: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[()]: ...

    def __getitem__(self, index: int | slice) -> tuple[()]:
        if isinstance(index, slice):
            return ()
        raise IndexError("a note is no message")

    def __len__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return f"<Note, {len(self.payload)} bytes>"


def decode(payload: bytes) -> Note:
    """No messages."""
    return Note(payload)


def carrier(payload: bytes) -> ChatMessage:
    """What a codec writes as a note: for its `encode`, which takes messages, and for nobody else."""
    return ChatMessage(role=name).with_origin(Origin(name, payload))


def is_note(format_name: str) -> bool:
    """Whether records of this format are notes, whatever encodings are around them."""
    return format_name.partition("+")[0] == name
