"""What a format is."""

from collections.abc import Sequence
from typing import Protocol

from chathistory_core.messages import ChatMessage


class Format(Protocol):
    """Reads the payloads of one format; a module with these two names is one."""

    @property
    def name(self) -> str:
        """As it stands in records: parts of `[a-z0-9-]`."""
        ...

    def decode(self, payload: bytes) -> Sequence[ChatMessage]:
        """The messages of one payload, each with its origin; none where the payload is for no reader of messages.

        Raises:
            DecodeError: the payload is not of this format.
        """
        ...
