"""A model's summary in the place of the older messages."""

import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Final, TypeAlias, get_args

from chathistory_core.messages import ChatMessage
from chathistory_core.reducers.reducer import Summaries, Summarize, Trigger
from chathistory_core.reducers.summary import head_of, summary_message
from chathistory_core.reducers.tool_results import collapsed, tool_lines
from chathistory_core.views.pairing import Unit, units
from chathistory_core.views.windows import Window

logger = logging.getLogger("chathistory")

SummaryModel: TypeAlias = Callable[[Sequence[ChatMessage]], Awaitable[str]]
"""Any model: messages in, the text of its answer out."""

SUMMARY_PROMPT: Final = (
    "Summarize the conversation above for yourself, so that it can go on from your summary alone. Keep what the user "
    "wants, facts, names, figures and identifiers as they were given, decisions and their reasons, what tools gave "
    "back that still matters, and what is left to do. If it begins with a summary, yours takes its place: carry over "
    "all of it that still holds. Write plain text, at most 300 words, and nothing beside the summary."
)
"""What the model is asked behind the messages, as a user's message, which every model takes there."""

_LIMITS: Final = ("messages", "turns", "tokens", "bytes")

_LONGEST: Final = 2_000
"""Characters of a call's arguments or of a result that the model sees."""


class SummarizingReducer:
    """Puts a model's summary in the place of the older messages, as soon as they are too many.

    When the messages are more than `above` holds, those that `keep` leaves out are summarised, together with the
    summary before them. Both windows measure what stands behind the leading system messages and the summary. The cut is
    made before a user's message, and before an approval that is pending, where `above` leaves room for it.

    Used by a `StoredChatHistoryProvider`, a summary is kept as a note of the conversation: the model is asked once, not
    each time that history is loaded. Where the model or its answer fails, the messages stay as they are, and the log
    says so.
    """

    def __init__(
        self,
        model: SummaryModel,
        *,
        keep: Window | None = None,
        above: Window | None = None,
        at_once: Window | None = None,
        prompt: str = SUMMARY_PROMPT,
        name: str = "default",
        trigger: Trigger = "before_retrieval",
    ) -> None:
        """`keep` is `Window(messages=20)` by default, and `above` twice what `keep` is.

        `model` gets the messages to summarise, tool rounds as text, then the prompt. With `at_once` it gets at most so
        much of them in one call, behind the summary that the call before it made. `name` tells summaries apart where
        one conversation has several kinds of them. `trigger="after_append"` makes a summary once a run has been stored,
        so that loading never waits for the model.
        """
        if not callable(model):
            raise TypeError(f"`model` is called with messages and returns text: it is {type(model).__name__}")
        for what, window in {"keep": keep, "above": above, "at_once": at_once}.items():
            if not isinstance(window, Window | None):
                raise TypeError(f"`{what}` is a Window, not {type(window).__name__}")
        if trigger not in get_args(Trigger):
            raise ValueError(f"`trigger` is one of {', '.join(map(repr, get_args(Trigger)))}, not {trigger!r}")
        if not name:
            raise ValueError("`name` is empty: summaries are found again by it")
        self._model = model
        self._keep = Window(messages=20) if keep is None else keep
        self._above = _twice(self._keep) if above is None else above
        _check_order(self._keep, self._above)
        self._at_once = at_once
        self._prompt = prompt
        self._name = name
        self._trigger = trigger

    @property
    def summary_name(self) -> str:
        """The name under which its summaries are kept."""
        return self._name

    @property
    def trigger(self) -> Trigger:
        """When it makes a summary."""
        return self._trigger

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The leading system messages, a summary, the newest messages; asks the model each time it is called."""
        return await self.reduce_with(messages, _Unkept())

    async def reduce_with(self, messages: Sequence[ChatMessage], summaries: Summaries) -> Sequence[ChatMessage]:
        """As of `reduce`, with a summary that is kept where there is one."""
        run, start = head_of(messages)
        end = self._stop(messages, start, summaries)
        summary: Sequence[ChatMessage] = messages[run:start]
        done = start
        for stop in self._stops(messages, start, end, summaries):
            if not summaries.may_end(messages, stop):
                continue
            made = await summaries.make(messages, stop, partial(self._ask, (*summary, *messages[done:stop])))
            if made is None:
                break
            summary, done = (summary_message(made),), stop
        return messages if done == start else (*messages[:run], *summary, *messages[done:])

    def _stops(self, messages: Sequence[ChatMessage], start: int, end: int, summaries: Summaries) -> Iterator[int]:
        """Where each part ends that the model is given at once, up to `end`."""
        if start == end:
            return
        if self._at_once is not None:
            places = [start + unit.stop for unit in units(messages[start:end])]
            places = [place for place in places if place == end or summaries.may_end(messages, place)]
            while (part := max(1, _fitting(self._at_once, messages, start, places))) < len(places):
                start = places[part - 1]
                yield start
                places = places[part:]
        yield end

    def _stop(self, messages: Sequence[ChatMessage], start: int, summaries: Summaries) -> int:
        """Where what is summarised ends; `start` where nothing is."""
        behind = messages[start:]
        if self._fits(behind):
            return start
        earlier = self._before(self._keep.start(behind, ()), behind)
        turn = next((unit.start for unit in reversed(earlier) if unit.kind == "user"), 0)
        places = [*([turn] if self._fits(behind[turn:]) else []), *(unit.start for unit in reversed(earlier))]
        return next((start + place for place in places if place and summaries.may_end(messages, start + place)), start)

    def _before(self, cut: int, behind: Sequence[ChatMessage]) -> list[Unit]:
        """The units before which a cut may be made, the one at `cut` last, or one that waits for an approval."""
        earlier: list[Unit] = []
        for unit in units(behind):
            if unit.start > cut:
                break
            earlier.append(unit)
            if unit.pending and self._fits(behind[unit.start :]):
                break
        return earlier

    def _fits(self, messages: Sequence[ChatMessage]) -> bool:
        return not self._above.start(messages, ())

    async def _ask(self, messages: Sequence[ChatMessage]) -> str | None:
        asked = [*told(messages), ChatMessage.user(self._prompt)]
        try:
            asking: object = self._model(asked)
            answer = await asking if isawaitable(asking) else None
        except Exception as error:  # noqa: BLE001 - any model; its error may quote what was said
            logger.warning("a summary of %d messages was not made: %s", len(messages), type(error).__name__)
            return None
        if not isawaitable(asking):
            raise TypeError(f"a summarising model is an `async def`: a call returned {type(asking).__name__}")
        if not isinstance(answer, str):
            raise TypeError(f"a summarising model returns text, not {type(answer).__name__}")
        if not answer.strip():
            logger.warning("a summary of %d messages was not made: the answer is empty", len(messages))
            return None
        return answer

    def __repr__(self) -> str:
        return f"<SummarizingReducer {self._name!r}>"


def _fitting(window: Window, messages: Sequence[ChatMessage], start: int, places: Sequence[int]) -> int:
    """How many of the places, in order, can be gone to in one step; none much farther away is tried."""

    def exceeds(count: int) -> bool:
        return window.start(messages[start : places[count - 1]], ()) > 0

    enough = 1
    while enough < len(places) and not exceeds(enough):
        enough = min(2 * enough, len(places))
    return bisect_left(range(1, enough + 1), 1, key=exceeds)


def _twice(window: Window) -> Window:
    limits = {name: limit * 2 for name in _LIMITS if (limit := getattr(window, name)) is not None}
    return replace(window, **limits)


def _check_order(keep: Window, above: Window) -> None:
    for name in _LIMITS:
        least, most = getattr(keep, name), getattr(above, name)
        if least is not None and most is not None and least > most:
            raise ValueError(f"`keep` holds {least} {name}, more than `above`, {most}: nothing would be summarised")


def told(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages as a model takes them that has none of their tools: tool rounds are text, reasoning is left out."""
    said: list[ChatMessage] = []
    for unit in units(messages):
        said += collapsed(unit.of(messages), partial(tool_lines, longest=_LONGEST))
    return said


class _Unkept:
    """No conversation to keep summaries."""

    def may_end(self, messages: Sequence[ChatMessage], stop: int) -> bool:  # noqa: ARG002 - anywhere
        return True

    async def make(
        self,
        messages: Sequence[ChatMessage],  # noqa: ARG002 - no matter of which
        stop: int,  # noqa: ARG002 - as above
        summarize: Summarize,
    ) -> str | None:
        return await summarize()
