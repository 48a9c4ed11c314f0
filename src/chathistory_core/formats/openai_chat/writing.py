"""From messages to what the client sends."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from chathistory_core.errors import EncodeError
from chathistory_core.formats.openai_chat.calls import is_legacy_call, write_call, write_legacy_call, write_result
from chathistory_core.formats.openai_chat.leftovers import NAME, filled, leftovers, thawed
from chathistory_core.formats.openai_chat.parts import is_refusal, write_part
from chathistory_core.messages import (
    AIContent,
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    UnknownContent,
)

_ROLES = frozenset({"assistant", "developer", "system", "user"})
_NOT_IN_NAMES = re.compile(r"[\s<|\\/>]+")
_LONGEST_NAME = 64


def write(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The objects of the messages, in order, but with nothing between the results of one message's calls.

    Raises:
        EncodeError: arguments or a result hold NaN or an infinity, which could not be stored afterwards either.
    """
    written: list[dict[str, Any]] = []
    waiting: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message, ChatMessage):
            raise TypeError(f"message {index} is {type(message).__name__}: what is the client's needs no `dump`")
        try:
            spoken, results = _objects(message)
        except ValueError:
            raise EncodeError(str(index), "NaN or an infinity among its arguments or results") from None
        if spoken is not None and results and message.role != "assistant":
            waiting.append(spoken)
        elif spoken is not None:
            written += [*waiting, spoken]
            waiting = []
        written += results
    return written + waiting


def _objects(message: ChatMessage) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """What the message says, and the results that it holds."""
    if message.origin is not None and message.origin.format == NAME:
        whole = _sendable(json.loads(message.origin.payload))
        return (None, [whole]) if whole["role"] in ("tool", "function") else (whole, [])
    results = [write_result(content) for content in message.contents if isinstance(content, FunctionResultContent)]
    others = [content for content in message.contents if not isinstance(content, FunctionResultContent)]
    spoken = _spoken(message, others) if others or not results else None
    return (None if spoken is None else _sendable(spoken)), results


def _sendable(whole: dict[str, Any]) -> dict[str, Any]:
    """The object without what only answers have; the API takes none of it back."""
    if whole["role"] != "assistant":
        return whole
    calls = whole.get("tool_calls")
    for member, refused in (
        ("annotations", True),
        ("parsed", True),  # what the SDK read from the content
        ("tool_calls", not calls),  # neither null nor an empty list
        ("function_call", whole.get("function_call") is None),
    ):
        if refused:
            whole.pop(member, None)
    for call in calls or ():
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call["function"].pop("parsed_arguments", None)  # what the SDK read from the arguments
    if isinstance(whole.get("audio"), dict) and "id" in whole["audio"]:
        whole["audio"] = {"id": whole["audio"]["id"]}
    return whole


def _spoken(message: ChatMessage, contents: Sequence[Content]) -> dict[str, Any] | None:
    """The message in the client's form; None where it holds something, but nothing that the API takes."""
    role = _role(message)
    rest = leftovers(message)
    parts, members = _said(contents, role)
    if contents and not parts and not members and not rest:
        return None
    built = {"role": role}
    if content := _content(parts, members, message):
        built["content"] = content[0]
    if author := _NOT_IN_NAMES.sub("_", message.author_name or "")[:_LONGEST_NAME]:
        built["name"] = author
    return filled(built | members, {key: value for key, value in rest.items() if key != "content"})


def _role(message: ChatMessage) -> str:
    role = str(message.role)
    lowered = role.lower()
    if lowered == "tool":
        return "user"  # no tool can say it without a call's id
    return lowered if lowered in _ROLES else role


def _said(contents: Sequence[Content], role: str) -> tuple[list[Any], dict[str, Any]]:
    """The parts of the message's content, and its other members that contents make."""
    parts: list[Any] = []
    refusals: list[str] = []
    calls: list[Any] = []
    members: dict[str, Any] = {}
    sounds = any(isinstance(content, DataContent) and "audio" in leftovers(content) for content in contents)
    for content in contents:
        rest: Mapping[str, Any] = {} if isinstance(content, UnknownContent) else leftovers(content)
        match content:
            case FunctionCallContent() if is_legacy_call(content):
                members["function_call"] = write_legacy_call(content)
            case FunctionCallContent():
                calls.append(write_call(content))
            case TextReasoningContent():
                if isinstance(rest.get("member"), str):
                    members[rest["member"]] = content.text
            case DataContent() if "audio" in rest:
                members["audio"] = thawed(rest["audio"])
            case TextContent() if "audio" in rest:
                parts += [] if sounds else [{"type": "text", "text": content.text}]
            case ErrorContent() if is_refusal(content) and "type" not in rest:
                refusals.append(content.message)
            case AIContent() if "tool_calls" in rest:
                calls.append(thawed(rest["tool_calls"]))
            case _:
                parts += write_part(content, role)
    if refusals:
        members["refusal"] = "\n".join(refusals)
    if calls:
        members["tool_calls"] = calls
    return parts, members


def _content(parts: list[Any], members: Mapping[str, Any], message: ChatMessage) -> tuple[Any] | tuple[()]:
    """The member `content` where there is to be one."""
    rest = leftovers(message)
    listed = isinstance(rest.get("content"), list)
    if parts:
        plain = len(parts) == 1 and isinstance(parts[0], dict) and parts[0].keys() == {"type", "text"}
        return (parts[0]["text"] if plain and not listed else parts,)
    if "content" in rest:
        return ([] if listed else None,)
    if {**rest, **members}.keys() & {"audio", "function_call", "refusal", "tool_calls"}:
        # Null where nothing is known: there are servers that refuse a message without the member.
        return () if NAME in (message.additional_properties or {}) else (None,)
    return ("",)
