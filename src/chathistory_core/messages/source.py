"""Where a message of a run came from: the mark that keeps history from being stored again.

The mark is a value under `additional_properties["_attribution"]`, as in .NET. Only a `SourceAttribution` counts, which
`ChatMessage.with_source` sets; what was read from JSON in its place is data, so no store can claim a source.
"""

from dataclasses import dataclass
from typing import Final

from chathistory_core.messages.white_space import is_blank

ATTRIBUTION_KEY: Final = "_attribution"
"""The member of `additional_properties` that holds the mark."""

EXTERNAL: Final = "External"
"""The type of what the caller gave; also of a message without a mark."""

AI_CONTEXT_PROVIDER: Final = "AIContextProvider"
"""The type of what a context provider added."""

CHAT_HISTORY: Final = "ChatHistory"
"""The type of what was loaded from history."""


@dataclass(frozen=True, slots=True)
class SourceAttribution:
    """A source: its type (one of the constants or your own, compared with its case) and which one of that type."""

    type: str = EXTERNAL
    id: str | None = None

    def __post_init__(self) -> None:
        given: object = self.type
        if not isinstance(given, str) or is_blank(given):
            raise ValueError("a source type is text and not blank")

    def __str__(self) -> str:
        return self.type if self.id is None else f"{self.type}:{self.id}"
