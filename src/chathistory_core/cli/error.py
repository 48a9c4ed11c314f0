"""The one error of the command line's own."""

from chathistory_core.errors import ChatHistoryError


class CommandError(ChatHistoryError):
    """A command cannot do what it was asked, whatever the store: a file, a key or a yes is missing."""
