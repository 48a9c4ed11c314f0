"""Conversations in the memory of one process."""

from typing import TYPE_CHECKING

from chathistory_memory.backend import MemoryBackend
from chathistory_memory.store import MemoryStore

if TYPE_CHECKING:
    from chathistory_memory.plugin import MemoryOptions

__all__ = ["MemoryBackend", "MemoryOptions", "MemoryStore"]


def __getattr__(name: str) -> object:
    """The options, with what plugins are made of: whoever makes the backend needs neither."""
    if name == "MemoryOptions":
        from chathistory_memory.plugin import MemoryOptions

        return MemoryOptions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
