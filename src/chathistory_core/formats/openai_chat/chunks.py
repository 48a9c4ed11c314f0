"""From the chunks of a streamed answer to the message that they are together."""

from collections.abc import Sequence
from typing import Any, Final

from chathistory_core.errors import DecodeError
from chathistory_core.formats.openai_chat.leftovers import NAME
from chathistory_core.formats.openai_chat.objects import Given, parse, plain

_ONCE: Final = {"role", "id", "type", "name", "format"}
"""Members that come whole, with some servers in every chunk; other text comes in pieces."""


def join(chunks: Sequence[Given]) -> tuple[dict[str, Any] | None, bool]:
    """The message so far, None where none has begun, and whether the model said that it has ended.

    Raises:
        DecodeError: a chunk is none, or they are of several answers.
    """
    message: dict[str, Any] = {}
    begun = ended = False
    for number, given in enumerate(chunks):
        chunk = parse(given, number)[0] if isinstance(given, (str, bytes)) else plain(given, str(number))
        choices = chunk.get("choices") if isinstance(chunk, dict) else None
        if not isinstance(choices, list):
            raise DecodeError(NAME, f"chunk {number} has no list of choices")
        for choice in choices:
            if not isinstance(choice, dict) or choice.get("index") not in (0, None):
                raise DecodeError(NAME, f"chunk {number} is of one of several answers: load each of them by itself")
            delta = choice.get("delta")
            begun = begun or isinstance(delta, dict)
            ended = ended or choice.get("finish_reason") is not None
            if isinstance(delta, dict):
                _merge(message, delta)
    if not begun:
        return None, ended
    for call in message.get("tool_calls") or ():
        if isinstance(call, dict):
            call.pop("index", None)
    return {"role": "assistant", "content": None, **message}, ended


def _merge(whole: dict[str, Any], delta: dict[str, Any]) -> None:
    for name, value in delta.items():
        held = whole.get(name)
        if held is None or (name in _ONCE and not held):
            whole[name] = _added([], value) if isinstance(value, list) else value
        elif isinstance(held, str) and isinstance(value, str):
            whole[name] = held if name in _ONCE else held + value
        elif isinstance(held, dict) and isinstance(value, dict):
            _merge(held, value)
        elif isinstance(held, list) and isinstance(value, list):
            _added(held, value)
        elif value is not None:
            whole[name] = value


def _added(held: list[Any], items: list[Any]) -> list[Any]:
    """The list with the items: one that names the place of another, or its id, goes on with that one."""
    for item in items:
        earlier = next((each for each in reversed(held) if _goes_on(each, item)), None)
        if earlier is None:
            held.append(item)
        else:
            _merge(earlier, item)
    return held


def _goes_on(earlier: Any, item: Any) -> bool:
    if not isinstance(earlier, dict) or not isinstance(item, dict):
        return False
    id_, earlier_id = item.get("id"), earlier.get("id")
    if id_ and earlier_id and id_ != earlier_id:
        return False  # some servers give every call the same place
    return bool("index" in item and earlier.get("index") == item["index"]) or bool(id_ and earlier_id)
