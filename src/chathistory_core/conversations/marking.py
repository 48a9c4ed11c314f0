"""A history's messages with the mark of their source, of which a turn marks only what is new."""

from collections.abc import Sequence

from chathistory_core.messages import ChatMessage, SourceAttribution
from chathistory_core.messages.prefix import begins_with


class Marking:
    """Marks a history, and remembers what it marked."""

    def __init__(self) -> None:
        self._mark: SourceAttribution | None = None
        self._history: Sequence[ChatMessage] = ()
        self._marked: Sequence[ChatMessage] = ()

    def marked(self, history: Sequence[ChatMessage], mark: SourceAttribution) -> Sequence[ChatMessage]:
        """Each message with the mark; nobody changes the history from then on."""
        if mark != self._mark or not begins_with(history, self._history):
            self._marked = ()
        new = history[len(self._marked) :]
        self._mark, self._history = mark, history
        self._marked = [*self._marked, *(message.with_source(mark) for message in new)]
        return self._marked
