"""What a reducer is, and what one that summarises is given besides the messages."""

from collections.abc import Sequence
from typing import Literal, Protocol, runtime_checkable

from chathistory_core.messages import ChatMessage

Trigger = Literal["before_retrieval", "after_append"]
"""When a summary is made: as a run loads history that is too long, or when a stored run has made it too long."""


@runtime_checkable
class Reducer(Protocol):
    """Gives a shorter view of a conversation. What is stored stays as it is.

    A reducer keeps the order, never splits a tool round, and leaves the leading run of system messages. What it does
    not change it returns as the same objects, and its own view it returns unchanged.
    """

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The view of these messages, which are all that the model would be given of the conversation's history."""
        ...


class Summaries(Protocol):
    """The summaries that a conversation keeps of itself: at each time one counts, and stands for its oldest records."""

    def may_end(self, messages: Sequence[ChatMessage], stop: int) -> bool:
        """Whether a summary can stand for what is before this place: whole records, more than the one that counts."""
        ...

    async def make(self, messages: Sequence[ChatMessage], stop: int, summarize: "Summarize") -> str | None:
        """The summary of what is before this place: the one that is kept, else the one that is made and kept now.

        None where `summarize` gave none.
        """
        ...


class Summarize(Protocol):
    """Asks the model for a summary; None where it gives none."""

    async def __call__(self) -> str | None:
        """The summary."""
        ...


@runtime_checkable
class SummaryReducer(Reducer, Protocol):
    """A reducer whose summaries are kept as notes of the conversation, so that each is made once.

    Where one is used, reading stops at the summary that counts: the messages are then the leading run of system
    messages, the summary (`reducers.summary_message`) and what came behind it. It sees them before any window does, so
    that nothing is left out that no summary tells of.
    """

    @property
    def summary_name(self) -> str | None:
        """The name under which its summaries are kept; None where it makes none, and is a `Reducer` like any other."""
        ...

    @property
    def trigger(self) -> Trigger:
        """When it makes a summary."""
        ...

    async def reduce_with(self, messages: Sequence[ChatMessage], summaries: Summaries) -> Sequence[ChatMessage]:
        """The view of these messages, as of `reduce`; a summary that is made is kept."""
        ...


def check_reducer(reducer: Reducer) -> Reducer:
    """The reducer itself, where it is an object with `reduce`, else `TypeError`."""
    given: object = reducer
    if isinstance(given, type) or not isinstance(given, Reducer):
        raise TypeError(f"a reducer is an object with an `async def reduce(messages)`, not {_named(given)}")
    return reducer


def _named(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
