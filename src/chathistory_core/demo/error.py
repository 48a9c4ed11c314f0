"""The one error of the demonstration."""

from chathistory_core.errors import ChatHistoryError


class DemoError(ChatHistoryError):
    """The demonstration cannot go on: its model cannot be asked, or the history is not what it should be."""
