"""A history's messages with the mark of their source, of which a turn marks only what is new."""

from collections.abc import Sequence

from chathistory_core.messages import ChatMessage, SourceAttribution
from chathistory_core.messages.prefix import begins_with
from chathistory_core.pauses import Pauses


class Marking:
    """Marks a history, and remembers what it marked."""

    def __init__(self) -> None:
        self._mark: SourceAttribution | None = None
        self._history: Sequence[ChatMessage] = ()
        self._marked: Sequence[ChatMessage] = ()

    async def marked(self, history: Sequence[ChatMessage], mark: SourceAttribution) -> Sequence[ChatMessage]:
        """Each message with the mark."""
        history = tuple(history)  # whoever gave it may change it
        known = self._marked if mark == self._mark and begins_with(history, self._history) else ()
        marked = [*known]
        pauses = Pauses()
        for message in history[len(known) :]:
            if pauses.due:
                await pauses.pause()
            marked.append(message.with_source(mark))
        self._mark, self._history, self._marked = mark, history, marked
        return marked
