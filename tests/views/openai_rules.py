"""What OpenAI's Chat Completions API asks of `messages`, written from its reference; it takes nothing more.

Members that the reference does not know are not looked at: clients add some, and views pass them through.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_FUNCTION = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PARTS = {
    "developer": {"text"},
    "system": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
}


def refused(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why the API would refuse the messages; empty where it takes them."""
    return [f"message {index}: {reason}" for index, reason in _problems(messages)]


def _problems(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[int, str]]:
    if not messages:
        yield 0, "there is none"
    open_ids: list[str] = []
    for index, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            call_id = message.get("tool_call_id")
            if call_id in open_ids:
                open_ids.remove(str(call_id))
            else:
                yield index, f"answers {call_id!r}, which is no open call of the assistant message before"
        elif open_ids:
            yield index, f"stands before the answers to {open_ids}"
            open_ids = []
        for reason in _of_message(message):
            yield index, reason
        if role == "assistant":
            open_ids = [str(call.get("id")) for call in message.get("tool_calls") or ()]
    if open_ids:
        yield len(messages), f"the answers to {open_ids} are missing"


def _of_message(message: Mapping[str, Any]) -> Iterator[str]:
    role, content = message.get("role"), message.get("content")
    if role == "function":
        if not _NAME.fullmatch(str(message.get("name", ""))):
            yield "has no name"
        return
    if role not in _PARTS:
        yield f"has the role {role!r}"
        return
    if "name" in message and not _NAME.fullmatch(str(message["name"])):
        yield f"has the name {message['name']!r}"
    if role == "assistant":
        yield from _of_assistant(message)
    elif content is None:
        yield "has no content"
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield "has no tool_call_id"
    if content is not None:
        yield from _of_content(content, _PARTS[role])


def _of_assistant(message: Mapping[str, Any]) -> Iterator[str]:
    calls = message.get("tool_calls", ...)
    says = any(message.get(member) is not None for member in ("content", "refusal", "audio", "function_call"))
    if calls is ... and not says:
        yield "says nothing and calls nothing"
    if calls is ...:
        return
    if not isinstance(calls, list) or not calls:
        yield "has tool_calls that are no list of calls"
        return
    ids = [call.get("id") for call in calls]
    if len(set(ids)) < len(ids):
        yield "has two calls of one id"
    for call in calls:
        yield from _of_call(call)


def _of_call(call: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield "has a call without an id"
    match call:
        case {"type": "function", "function": {"name": str(name), "arguments": str()}} if _FUNCTION.fullmatch(name):
            return
        case {"type": "custom", "custom": {"name": str(), "input": str()}}:
            return
    yield "has a call that is neither of a function nor custom"


def _of_content(content: object, kinds: set[str]) -> Iterator[str]:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield "has content that is neither text nor parts"
        return
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in kinds or not isinstance(part, dict) or kind not in part:
            yield f"has a part of type {kind!r}"
