"""Old tool rounds as the text of one message."""

import json
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, get_args

from chathistory_core.messages import (
    ChatMessage,
    CodeInterpreterToolCallContent,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    Json,
    McpServerToolCallContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    ToolCall,
    ToolResultContent,
    UsageContent,
    WebSearchToolCallContent,
)
from chathistory_core.views.matching import HostedResult
from chathistory_core.views.pairing import units
from chathistory_core.views.windows import Window

RoundFormat: TypeAlias = Callable[[Sequence[ChatMessage]], str]
"""What is said of a tool round, given its messages."""

_CALLS: Final = get_args(ToolCall)
_RESULTS: Final = (FunctionResultContent, *get_args(HostedResult))
_COLLAPSED: Final = (
    *_CALLS,
    *_RESULTS,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    TextReasoningContent,
    UsageContent,
)

_LONGEST: Final = 200
"""Characters of a call's arguments or of a result that are shown."""


class ToolResultReducer:
    """Collapses old tool rounds to a message of the assistant's, with a line for each call.

    What was said beside the calls stays. A round in which something is missing, or that waits for an approval, stays
    whole.
    """

    def __init__(self, *, keep: int = 4, above: Window | None = None, format: RoundFormat | None = None) -> None:  # noqa: A002 - the word for it
        """`keep` is how many of the newest rounds stay whole.

        With `above`, nothing is changed as long as that window holds all messages: what was sent to the model before
        then stays the same, and its provider's cache of it good. `format` says what is told of a round; by default its
        calls' names, and in short their arguments and results (`tool_lines`).
        """
        if type(keep) is not int or keep < 0:
            raise ValueError(f"`keep` is a number of tool rounds from 0, not {keep!r}")
        if format is not None and not callable(format):
            raise TypeError(f"`format` is called with a round's messages: it is {type(format).__name__}")
        self._keep = keep
        self._above = above
        self._format = tool_lines if format is None else format

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """The messages, with the older tool rounds collapsed."""
        if self._above is not None and not self._above.select(messages).left_out:
            return messages
        found = units(messages)
        rounds = [unit for unit in found if unit.kind == "tools" and unit.complete]
        old = {unit.start for unit in rounds[: max(0, len(rounds) - self._keep)]}
        if not old:
            return messages
        view: list[ChatMessage] = []
        for unit in found:
            view += collapsed(unit.of(messages), self._format) if unit.start in old else unit.of(messages)
        return view

    def __repr__(self) -> str:
        return f"<ToolResultReducer, keeps {self._keep}>"


def collapsed(messages: Sequence[ChatMessage], format: RoundFormat) -> list[ChatMessage]:  # noqa: A002 - as above
    """What was said in a unit, then in one message what came of its calls; reasoning and usage are left out."""
    said: list[ChatMessage] = []
    beside: list[Content] = []
    first: ChatMessage | None = None
    for message in messages:
        if not any(isinstance(content, _COLLAPSED) for content in message.contents):
            said.append(message)
            continue
        others = [content for content in message.contents if not isinstance(content, _COLLAPSED)]
        if message.role == "assistant":
            first = first or message
            beside += others
        elif message.role != "tool" and others:
            said.append(message.model_copy(update={"contents": others}))
    if any(isinstance(content, _CALLS) for message in messages for content in message.contents):
        beside.append(TextContent(text=format(messages)))
    if beside:
        author, time = (None, None) if first is None else (first.author_name, first.created_at)
        said.append(ChatMessage(role="assistant", author_name=author, created_at=time, contents=beside))
    return said


def tool_lines(messages: Sequence[ChatMessage], *, longest: int = _LONGEST) -> str:
    """A line for each call: its name, its arguments and what came back, of each at most so many characters."""
    calls: list[tuple[str, str]] = []
    results: list[list[str]] = []
    waiting: list[tuple[str, int, int]] = []
    for index, message in enumerate(messages):
        for content in message.contents:
            if isinstance(content, _CALLS):
                waiting.append((content.call_id, index, len(calls)))
                calls.append((_name_of(content), _short(_arguments_of(content), longest)))
                results.append([])
            elif isinstance(content, _RESULTS):
                answered = _nearest(waiting, content.call_id)
                if answered is not None:
                    waiting.remove(answered)
                    results[answered[2]].append(_short(_result_of(content), longest))
    lines = [
        f"{name}({arguments}): {'; '.join(given)}" for (name, arguments), given in zip(calls, results, strict=True)
    ]
    return "\n".join(["[Tool Calls]", *lines])


def _nearest(waiting: list[tuple[str, int, int]], call_id: str) -> tuple[str, int, int] | None:
    fitting = [call for call in waiting if call[0] == call_id]
    return next((call for call in fitting if call[1] == fitting[-1][1]), None)


def _name_of(call: ToolCall) -> str:
    if isinstance(call, (FunctionCallContent, McpServerToolCallContent)):
        return call.name
    return call.type.removesuffix("ToolCall")


def _arguments_of(call: ToolCall) -> str:
    if isinstance(call, FunctionCallContent) and call.arguments_text is not None:
        return call.arguments_text
    if isinstance(call, (FunctionCallContent, McpServerToolCallContent)):
        return _json(call.arguments) if call.arguments else ""
    if isinstance(call, WebSearchToolCallContent):
        return _json(call.queries) if call.queries else ""
    return _text_of(call.inputs or ()) if isinstance(call, CodeInterpreterToolCallContent) else ""


def _result_of(result: FunctionResultContent | HostedResult) -> str:
    if isinstance(result, FunctionResultContent):
        return result.result if isinstance(result.result, str) else _json(result.result)
    return "" if isinstance(result, ToolResultContent) else _text_of(result.outputs or ())


def _text_of(contents: Sequence[Content]) -> str:
    texts = [content.text if isinstance(content, TextContent) else f"[{_kind_of(content)}]" for content in contents]
    return " ".join(texts)


def _kind_of(content: Content) -> str:
    return type(content).__name__.removesuffix("Content")


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _short(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"
