"""Conversations as messages: a backend's records, read and written through a codec."""

from chathistory_core.conversations.conversations import Conversations, History
from chathistory_core.conversations.loaded import Loaded
from chathistory_core.conversations.marking import Marking
from chathistory_core.conversations.remembering import MAX_REMEMBERED_BYTES

__all__ = ["MAX_REMEMBERED_BYTES", "Conversations", "History", "Loaded", "Marking"]
