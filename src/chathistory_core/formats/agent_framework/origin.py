"""The framework's JSON that a message was made of, and what was made of it in turn."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from chathistory_core.messages import Origin


@dataclass(frozen=True, slots=True)
class FrameworkOrigin(Origin):
    """The origin of a message of the framework; it lives as long as the messages that are remembered."""

    built: list[Callable[[], Any]] = field(default_factory=list, repr=False, compare=False)
    """What makes copies of the framework's object, once somebody made it."""

    def __reduce__(self) -> tuple[type[Origin], tuple[str, bytes, int, int]]:
        return type(self), (self.format, self.payload, self.index, self.count)
