"""Which result belongs to which call, and which call to which approval.

Results are matched with calls by position: a result belongs to the nearest earlier message with an unanswered call of
its id, for ids repeat. Only results, other calls, approvals and reasoning stand between a call and its result; behind
anything else, which no API takes there, the call is dangling and the result an orphan.

An approval request stands for its call until the call itself appears, also where the user said something else before
the answer. Calls and results of the model's own service keep together but are never found wanting, since the service
may keep either to itself. Reasoning belongs to what the assistant did next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypeAlias, get_args

from chathistory_core.messages import (
    ChatMessage,
    CodeInterpreterToolResultContent,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    ImageGenerationToolResultContent,
    McpServerToolResultContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    ToolCall,
    ToolResultContent,
    UsageContent,
    WebSearchToolResultContent,
)

HostedResult: TypeAlias = (
    McpServerToolResultContent
    | CodeInterpreterToolResultContent
    | ImageGenerationToolResultContent
    | WebSearchToolResultContent
    | ToolResultContent
)

_Nature: TypeAlias = Literal["request", "answer", "call", "result", "hosted call", "hosted result", "silent", "said"]

_NATURES: tuple[tuple[tuple[type, ...], _Nature], ...] = (
    ((ToolApprovalRequestContent,), "request"),
    ((ToolApprovalResponseContent,), "answer"),
    ((FunctionCallContent,), "call"),
    ((FunctionResultContent,), "result"),
    (get_args(ToolCall), "hosted call"),
    (get_args(HostedResult), "hosted result"),
    ((TextReasoningContent, UsageContent), "silent"),
)
_CARRIED = frozenset[_Nature](["call", "result", "hosted call", "hosted result"])
_WORK = frozenset[_Nature](["call", "result", "request", "answer"])
_SILENT = frozenset[_Nature](["request", "answer", "silent"])
_SYSTEM = frozenset(["system", "developer"])


@cache
def _nature(kind: type) -> _Nature:
    """What contents of this class are to their neighbours; kept, for pydantic's classes make `isinstance` slow."""
    return next((nature for kinds, nature in _NATURES if issubclass(kind, kinds)), "said")


def _natures(message: ChatMessage) -> set[_Nature]:
    return {_nature(type(content)) for content in message.contents}


class Place(NamedTuple):
    """A content: the index of its message, and its own in there."""

    message: int
    content: int


def is_system(message: ChatMessage) -> bool:
    """Whether it is the application that speaks: role `system` or `developer`."""
    return message.role.lower() in _SYSTEM


def works(message: ChatMessage) -> bool:
    """Whether it holds a function's call or result, or an approval."""
    return not _WORK.isdisjoint(_natures(message))


def carries(message: ChatMessage) -> bool:
    """Whether it holds a call or result, be it of a tool of the model's service."""
    return not _CARRIED.isdisjoint(_natures(message))


def says(message: ChatMessage) -> bool:
    """Whether it holds what no API takes between a call and its result."""
    natures = _natures(message)
    return not natures or (_CARRIED.isdisjoint(natures) and not natures <= _SILENT)


def _only_reasons(message: ChatMessage) -> bool:
    return (
        message.role == "assistant"
        and _natures(message) == {"silent"}
        and any(isinstance(content, TextReasoningContent) for content in message.contents)
    )


@dataclass(slots=True)
class _Open:
    """A call that waits for its result, or an approval request that waits for its answer."""

    place: Place
    call_id: str


class Matches:
    """What belongs together in these messages, and what is missing: found in one pass."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.unsure = 1
        """Before this message, units may be other ones where more messages stand before the first."""
        self._messages = messages
        self._reach = list(range(len(messages)))  # the last message known to be in one unit with each
        self._calls: list[_Open] = []
        self._hosted: list[_Open] = []
        self._requests: dict[str, list[_Open]] = {}
        self._fresh: list[_Open] = []  # the requests behind which nothing was said
        self._near: list[_Open] = []  # the requests to whose rounds an answer would still belong
        self._approved: list[_Open] = []  # requests that are answered, and the call itself has not appeared
        self.dangling: list[Place] = []
        """Function calls without a result, apart from those that wait for an approval."""
        self.orphans: list[Place] = []
        """Function results without a call."""
        self._said = False  # whether something was said that parts calls from results
        self._over = False  # whether something came that ends every approval's round
        for index, message in enumerate(messages):
            self._read(index, message)
        waiting = {place.message for place in self.pending}
        self.dangling += [call.place for call in self._calls if call.place.message not in waiting]

    @property
    def pending(self) -> list[Place]:
        """Approval requests without an answer."""
        return [request.place for asked in self._requests.values() for request in asked]

    def stretches(self) -> Iterator[range]:
        """The messages, in ranges that nothing reaches out of."""
        start = 0
        while start < len(self._messages):
            last, index = self._reach[start], start
            while index < last:
                index += 1
                last = max(last, self._reach[index])
            yield range(start, last + 1)
            start = last + 1

    def _read(self, index: int, message: ChatMessage) -> None:
        if says(message):
            self._close(by_user=message.role == "user" or is_system(message))
        for number, content in enumerate(message.contents):
            self._take(Place(index, number), content)
        if _only_reasons(message) and any(then.role == "assistant" for then in self._messages[index + 1 : index + 2]):
            self._join(index, index + 1)

    def _close(self, *, by_user: bool) -> None:
        """Something is said: no result behind it belongs to a call before it."""
        self.dangling += [call.place for call in self._calls]
        self._calls.clear()
        self._hosted.clear()
        self._fresh.clear()
        self._said = True
        if not by_user:
            self._end_approvals()

    def _end_approvals(self) -> None:
        self._approved.clear()
        self._fresh.clear()
        self._near.clear()
        self._over = True

    def _take(self, place: Place, content: Content) -> None:
        match _nature(type(content)), content:
            case "said" | "silent", _:
                return
            case "request", ToolApprovalRequestContent():
                self._ask(content.request_id, _Open(place, content.tool_call.call_id))
            case "answer", ToolApprovalResponseContent():
                self._take_answer(place, content)
            case "call", FunctionCallContent():
                self._take_call(place, content.call_id)
                self._calls.append(_Open(place, content.call_id))
            case "result", FunctionResultContent():
                if self._take_result(place, content.call_id, self._calls):
                    self._end_approvals()
                else:
                    self.orphans.append(place)
            case "hosted call", _ if isinstance(content, get_args(ToolCall)):
                self._take_call(place, content.call_id)
                self._hosted.append(_Open(place, content.call_id))
            case "hosted result", _ if isinstance(content, get_args(HostedResult)):
                self._take_result(place, content.call_id, self._hosted)

    def _ask(self, request_id: str, request: _Open) -> None:
        self._requests.setdefault(request_id, []).append(request)
        self._fresh.append(request)
        self._near.append(request)

    def _take_answer(self, place: Place, answer: ToolApprovalResponseContent) -> None:
        start = place
        asked = self._requests.get(answer.request_id)
        if asked:
            request = asked.pop()
            if request in self._fresh:
                self._fresh.remove(request)
            if request in self._near:
                self._near.remove(request)
                start = request.place
                self._join(start.message, place.message)
        elif not self._over:
            self._doubt(place)
        self._approved.append(_Open(start, answer.tool_call.call_id))

    def _take_call(self, place: Place, call_id: str) -> None:
        """The call takes the place of the approval that stood for it."""
        for approval in reversed(self._approved):
            if approval.call_id == call_id:
                self._approved.remove(approval)
                self._join(approval.place.message, place.message)
                return
        for request in reversed(self._fresh):
            if request.call_id == call_id and request.place.message < place.message:
                self._fresh.remove(request)
                next(asked for asked in self._requests.values() if request in asked).remove(request)
                self._join(request.place.message, place.message)
                return
        if not self._over:
            self._doubt(place)

    def _take_result(self, place: Place, call_id: str, calls: list[_Open]) -> bool:
        fitting = [call for call in calls if call.call_id == call_id]
        if not fitting:
            if not self._said:
                self._doubt(place)
            return False
        call = next(call for call in fitting if call.place.message == fitting[-1].place.message)
        calls.remove(call)
        self._join(call.place.message, place.message)
        return True

    def _join(self, first: int, last: int) -> None:
        self._reach[first] = max(self._reach[first], last)

    def _doubt(self, place: Place) -> None:
        self.unsure = max(self.unsure, place.message + 1)
