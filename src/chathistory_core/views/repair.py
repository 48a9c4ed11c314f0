"""A history without calls that lack a result or results that lack a call: a view, the same every time.

Rounds in which nothing is missing are left as they are, object for object, and so are approval requests: one that is
pending may still be answered, and its call with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from chathistory_core.messages import (
    ChatMessage,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    UsageContent,
)
from chathistory_core.views.matching import Place, says
from chathistory_core.views.pairing import Unit, units

Repair: TypeAlias = Literal["drop", "answer", "raise"]
"""What becomes of calls without a result: left out, answered by a marked result, or an error."""

SYNTHETIC_KEY: Final = "_synthetic"
"""The member of `additional_properties` that marks a result which no tool gave: true."""

_NOT_EXECUTED = "There is no result: the call was interrupted, and it is not known whether it took effect."
_EXECUTED = "There is no result: the call was executed, but what it gave back was not kept."


class Mended(NamedTuple):
    """The messages as they are shown."""

    messages: Sequence[ChatMessage]
    sources: Sequence[int | None]
    """Which of the given messages each one is or was made of; None of one that was added."""

    def __repr__(self) -> str:
        return f"<Mended, {len(self.messages)} messages>"


class Unpaired(NamedTuple):
    """What is missing."""

    calls: Sequence[Place]
    """Calls without a result."""
    results: Sequence[Place]
    """Results without a call."""


def unpaired(messages: Sequence[ChatMessage], following: Sequence[ChatMessage] = ()) -> Unpaired:
    """What in the messages has no counterpart there or, where it is a call, in the messages that follow them."""
    return _unpaired(units([*messages, *following]), len(messages))


def mended(
    messages: Sequence[ChatMessage], how: Literal["drop", "answer"], *, following: Sequence[ChatMessage] = ()
) -> Mended:
    """The messages, where calls without a result are left out or answered; results without a call are left out.

    `following` is what the model is given behind them, such as the results of calls that a client executes. A message
    in which nothing is left but reasoning goes as a whole.
    """
    return _mended(messages, how, following)


def without_orphans(messages: Sequence[ChatMessage]) -> Mended:
    """The messages without results that have no call."""
    return _mended(messages, None, ())


def _mended(
    messages: Sequence[ChatMessage], calls: Literal["drop", "answer"] | None, following: Sequence[ChatMessage]
) -> Mended:
    now = Mended(messages, range(len(messages)))
    while True:  # what is said beside a result that goes parts later results from their calls
        found = units([*now.messages, *following])
        wrong = _unpaired(found, len(now.messages))
        if not wrong.results and not (calls and wrong.calls):
            return now
        cut = {*wrong.results, *(wrong.calls if calls == "drop" else ())}
        answers = _answers(now.messages, found, wrong.calls) if calls == "answer" else {}
        now = _cut(now, found, cut, answers)


def _unpaired(found: Sequence[Unit], count: int) -> Unpaired:
    return Unpaired(
        [place for unit in found for place in unit.dangling if place.message < count],
        [place for unit in found for place in unit.orphans if place.message < count],
    )


def _cut(now: Mended, found: Sequence[Unit], cut: set[Place], answers: dict[int, ChatMessage]) -> Mended:
    """The messages without the contents at these places, and with an answer before each index that has one."""
    touched = {place.message for place in cut}
    kept: list[tuple[ChatMessage, int | None]] = []
    for unit in found:
        left: list[tuple[ChatMessage, int | None]] = []
        lost = False
        for index in range(unit.start, min(unit.stop, len(now.messages))):
            message: ChatMessage | None = now.messages[index]
            if index in answers:
                left.append((answers[index], None))
            if index in touched:
                message = _without(now.messages[index], index, cut)
            if message is None:
                lost = True
            else:
                left.append((message, now.sources[index]))
        while lost and left and _tells_nothing(left[-1][0].contents):
            left.pop()  # the reasoning of what is gone
        kept += left
    if len(now.messages) in answers:
        kept.append((answers[len(now.messages)], None))
    return Mended([message for message, _ in kept], [source for _, source in kept])


def _without(message: ChatMessage, index: int, cut: set[Place]) -> ChatMessage | None:
    left = [content for number, content in enumerate(message.contents) if Place(index, number) not in cut]
    return None if _tells_nothing(left) else message.model_copy(update={"contents": left})


def _tells_nothing(contents: Iterable[Content]) -> bool:
    return all(
        isinstance(content, (TextReasoningContent, UsageContent))
        or (isinstance(content, TextContent) and not content.text)
        for content in contents
    )


def _answers(messages: Sequence[ChatMessage], found: Sequence[Unit], calls: Sequence[Place]) -> dict[int, ChatMessage]:
    """By the index that it stands before, the message that answers each of these calls: one for parallel ones."""
    results: dict[int, list[FunctionResultContent]] = defaultdict(list)
    stops = {place: unit.stop for unit in found for place in unit.dangling}
    for place in calls:
        stop = min(stops[place], len(messages))
        before = next((index for index in range(place.message + 1, stop) if says(messages[index])), stop)
        call = messages[place.message].contents[place.content]
        if isinstance(call, FunctionCallContent):
            results[before].append(_answer(call))
    return {before: ChatMessage(role="tool", contents=answers) for before, answers in results.items()}


def _answer(call: FunctionCallContent) -> FunctionResultContent:
    return FunctionResultContent(
        call_id=call.call_id,
        result=_EXECUTED if call.informational_only else _NOT_EXECUTED,
        additional_properties={SYNTHETIC_KEY: True},
    )
