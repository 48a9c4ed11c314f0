"""What the scripted model answers: worked out from the messages it is sent, and from nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TypeAlias

from chathistory_core.demo.error import DemoError

MODEL = "scripted"
TOOL = "get_time"

JsonObject: TypeAlias = Mapping[str, object]


class RefusedError(DemoError):
    """A request that the script does not answer."""


def answer(request: JsonObject) -> JsonObject:
    """The assistant message that follows the messages of a Chat Completions request.

    A question for the time is answered by a call of `get_time` and, once its result is there, by that result; a
    question for how much time has passed by the first and the last of the earlier results.

    Raises:
        RefusedError: the request is not one that the script can answer; among others, an earlier result is missing.
    """
    if request.get("model") != MODEL:
        raise RefusedError(f"there is one model here, {MODEL!r}: no other can be asked")
    if request.get("stream"):
        raise RefusedError(f"the model {MODEL!r} does not stream")
    messages = _objects(request, "messages")
    times = list(_times(messages))
    last = messages[-1] if messages else {}
    match last.get("role"):
        case "tool":
            return _say(f"It is {_text(last)}.")
        case "user" if "passed" in _text(last):
            return _say(_passed(times))
        case "user" if "time" in _text(last):
            return _call(request, f"call_{len(messages)}")
        case "user":
            return _say("I can tell the time, and how much of it has passed since I told it first.")
    raise RefusedError("the last message is neither a user's nor a tool's")


def _passed(times: Sequence[datetime]) -> str:
    if len(times) < 2:
        raise RefusedError(
            f"how much time has passed follows from earlier results of {TOOL}, and {len(times)} of them came with the "
            "messages where at least 2 were expected: history is missing"
        )
    passed = (times[-1] - times[0]) / timedelta(seconds=1)
    return f"{passed:.3f} seconds have passed since {times[0].isoformat(timespec='milliseconds')}."


def _call(request: JsonObject, call_id: str) -> JsonObject:
    functions = (tool.get("function") for tool in _objects(request, "tools"))
    if not any(isinstance(function, Mapping) and function.get("name") == TOOL for function in functions):
        raise RefusedError(f"{TOOL} is not among the tools")
    call = {"id": call_id, "type": "function", "function": {"name": TOOL, "arguments": "{}"}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _say(text: str) -> JsonObject:
    return {"role": "assistant", "content": text}


def _times(messages: Sequence[JsonObject]) -> Iterator[datetime]:
    """The results of `get_time`, oldest first; refused where a call and its result do not stand together."""
    called: dict[object, object] = {}  # names by id, of the calls that have no result yet
    for message in messages:
        if message.get("role") == "tool":
            call_id = message.get("tool_call_id")
            if call_id not in called:
                raise RefusedError("a tool's result follows no call of its id")
            if called.pop(call_id) == TOOL:
                yield _time(message)
        elif called:
            raise RefusedError("a tool call is not followed by its result")
        else:
            called = {call.get("id"): _name(call) for call in _objects(message, "tool_calls")}
    if called:
        raise RefusedError("a tool call is not followed by its result")


def _name(call: JsonObject) -> object:
    function = call.get("function")
    return function.get("name") if isinstance(function, Mapping) else None


def _time(message: JsonObject) -> datetime:
    try:
        return datetime.fromisoformat(_text(message)).astimezone()
    except ValueError:
        raise RefusedError(f"a result of {TOOL} is not a time in ISO 8601") from None


def _objects(holder: JsonObject, name: str) -> Sequence[JsonObject]:
    value = holder.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise RefusedError(f"{name!r} is not an array of objects")
    return value


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _objects(message, "content"))
