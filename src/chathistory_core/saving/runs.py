"""A run that has ended, as it is to be stored."""

from collections.abc import Sequence
from typing import NamedTuple

from chathistory_core.conversations import Loaded
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import InvokedContext
from chathistory_core.records import Conversation
from chathistory_core.saving.kept import attempts, incomplete, kept_among, without_dangling


class Seen(NamedTuple):
    """What a run must remember of the conversation that it was given: nothing of what was said."""

    conversation: Conversation
    """The head and the last record, without its payload."""
    kept: frozenset[str]
    """The turn ids of what is kept of failed attempts."""

    @classmethod
    def of(cls, loaded: Loaded) -> "Seen":
        """Of what was loaded."""
        records = loaded.conversation.records
        last = tuple(record._replace(payload=b"") for record in records[-1:])
        return cls(loaded.conversation._replace(records=last), loaded.among(kept_among))


class Run(NamedTuple):
    """A run that has ended, with the messages that the filters left."""

    key: str
    """The store's key of its conversation."""
    context: InvokedContext
    seen: Seen | None = None
    """What the run was an answer to, as far as it is known."""

    @property
    def turn_id(self) -> str:
        """Names the run, and what is stored of it."""
        return self.context.turn_id

    @property
    def conversation(self) -> Conversation | None:
        """The conversation as the run saw it."""
        return None if self.seen is None else self.seen.conversation

    @property
    def failed(self) -> bool:
        """Whether there is no answer to store."""
        return self.context.response_messages is None

    @property
    def partial(self) -> list[ChatMessage]:
        """What had come of the answer of a run that failed, marked."""
        return incomplete(self.context.partial_messages)

    @property
    def tried(self) -> int:
        """The last failed attempt at the turn of which the run saw something kept; 0 where there is none."""
        return 0 if self.seen is None else max(attempts(self.seen.kept, self.turn_id), default=0)

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """What there is to store of it."""
        return (*self.context.request_messages, *(self.context.response_messages or self.partial))

    def __repr__(self) -> str:
        return f"<Run of {self.key!r}, {self.context!r}>"


def shown(runs: Sequence[Run]) -> list[ChatMessage]:
    """What a model sees of runs that are to be stored one after another, as `kept.shown` does of those that are."""
    answered = {run.turn_id for run in runs if not run.failed}
    begun: set[str] = set()
    messages: list[ChatMessage] = []
    for run in runs:
        if not run.tried and run.turn_id not in begun:
            messages += run.context.request_messages
        begun.add(run.turn_id)
        if not run.failed:
            messages += run.context.response_messages or ()
        elif run.turn_id not in answered:
            messages += without_dangling([run.partial])[0]
    return messages
