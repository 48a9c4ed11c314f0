"""The summary of a conversation that counts, and what stands behind it."""

from collections.abc import Sequence
from typing import NamedTuple

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.conversations.pages import LARGEST_PAGE, Pages
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import summary_message
from chathistory_core.summaries.summary import Summary, digest, read_note
from chathistory_core.views.windows import MOST_PINNED, leading

_PAGE = 64
"""How many records are read at first; each further page has twice as many."""


class Found(NamedTuple):
    """The end of a conversation: the summary of its first records, and those behind."""

    summary: Summary | None
    loaded: Loaded
    """With the head of the whole conversation."""
    pinned: Sequence[ChatMessage] = ()
    """The system messages that the conversation begins with, where the summary stands for them too."""

    @property
    def before(self) -> Sequence[ChatMessage]:
        """What a model is shown in the place of the records that the summary stands for."""
        return self.pinned if self.summary is None else (*self.pinned, summary_message(self.summary.text))


async def read_back(conversations: Conversations, key: str, name: str, *, max_bytes: int | None = None) -> Found:
    """The summary of this name that counts and the records behind it; without one, all records.

    Raises:
        EpochChangedError: records were taken away meanwhile.
        TooLargeError: that would be more bytes than may be read.
    """
    pages = Pages(conversations, key, max_bytes=max_bytes)
    size = _PAGE
    await pages.read(size)
    summary, missing = _look(pages.loaded, name)
    while summary is None and pages.unread:
        size = min(2 * size, LARGEST_PAGE)
        await pages.read(min(size, missing))
        summary, missing = _look(pages.loaded, name)
    if summary is None:
        return Found(None, pages.loaded)
    first = await pages.first(min(MOST_PINNED, summary.records))
    return _behind(pages.loaded, summary, first.groups)


def found_in(loaded: Loaded, name: str) -> Found:
    """As of `read_back`, in a whole conversation that is loaded already."""
    summary, _ = _look(loaded, name)
    return Found(None, loaded) if summary is None else _behind(loaded, summary, loaded.groups[: summary.records])


def _look(loaded: Loaded, name: str) -> tuple[Summary | None, int]:
    """The summary that counts; where it takes more records to know that, None and how many more at most."""
    before = loaded.conversation.record_count - len(loaded.groups)
    known = [
        summary
        for index, group in enumerate(loaded.groups, before)
        if (summary := read_note(group, name)) is not None and summary.records <= index
    ]
    for summary in sorted(known, key=lambda one: one.records, reverse=True):
        if summary.records <= before:
            return None, before - summary.records + 1
        if digest(loaded.groups[summary.records - 1 - before]) == summary.end:
            return summary, 0
    return None, before


def _behind(loaded: Loaded, summary: Summary, first: Sequence[Sequence[ChatMessage]]) -> Found:
    start = len(loaded.groups) - (loaded.conversation.record_count - summary.records)
    records = loaded.conversation.records[start:]
    behind = Loaded(loaded.conversation._replace(records=records), loaded.groups[start:])
    return Found(summary, behind, leading([message for group in first for message in group]))
