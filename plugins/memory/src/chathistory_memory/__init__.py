"""Conversations in the memory of one process."""

from chathistory_memory.backend import MemoryBackend
from chathistory_memory.plugin import MemoryOptions
from chathistory_memory.store import MemoryStore

__all__ = ["MemoryBackend", "MemoryOptions", "MemoryStore"]
