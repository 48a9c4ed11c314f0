"""Several reducers, one after another."""

from collections.abc import Sequence

from chathistory_core.messages import ChatMessage
from chathistory_core.reducers.reducer import Reducer, Summaries, SummaryReducer, Trigger, check_reducer


class ReducerPipeline:
    """Each reducer sees the view of the one before it. One of them may make summaries."""

    def __init__(self, *reducers: Reducer) -> None:
        if not reducers:
            raise ValueError("a pipeline has at least one reducer")
        for reducer in reducers:
            check_reducer(reducer)
        summarizing = [one for one in reducers if isinstance(one, SummaryReducer) and one.summary_name is not None]
        if len(summarizing) > 1:
            raise ValueError("one reducer of a pipeline may make summaries: a conversation has one that counts")
        self._reducers = reducers
        self._summarizing = summarizing[0] if summarizing else None

    @property
    def summary_name(self) -> str | None:
        """That of the reducer that makes summaries; None where none does."""
        return None if self._summarizing is None else self._summarizing.summary_name

    @property
    def trigger(self) -> Trigger:
        """That of the reducer that makes summaries."""
        return "before_retrieval" if self._summarizing is None else self._summarizing.trigger

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The last reducer's view."""
        for reducer in self._reducers:
            messages = await reducer.reduce(messages)
        return messages

    async def reduce_with(self, messages: Sequence[ChatMessage], summaries: Summaries) -> Sequence[ChatMessage]:
        """The last reducer's view; a summary that is made is kept."""
        for reducer in self._reducers:
            if reducer is self._summarizing:
                messages = await self._summarizing.reduce_with(messages, summaries)
            else:
                messages = await reducer.reduce(messages)
        return messages

    def __repr__(self) -> str:
        return f"<ReducerPipeline, {len(self._reducers)} reducers>"
