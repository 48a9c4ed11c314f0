"""Conversations as messages: a backend's records, read and written through a codec."""

from chathistory_core.conversations.conversations import Conversations, History, Loaded

__all__ = ["Conversations", "History", "Loaded"]
