"""What a message was made of."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """The client's own object that a message was made of; what nobody changed is stored and sent again as it came."""

    format: str
    payload: bytes
    index: int = 0
    """Which of the messages that the object makes this one is."""
    count: int = 1
    """How many messages the object makes."""

    def __repr__(self) -> str:
        return f"<Origin {self.format!r}, {len(self.payload)} bytes, {self.index + 1} of {self.count}>"
