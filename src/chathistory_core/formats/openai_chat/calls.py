"""Calls and results of tools and of legacy functions, both ways."""

from collections.abc import Mapping
from typing import Any

from chathistory_core.formats.openai_chat.leftovers import NAME, beyond, filled, leftovers, thawed
from chathistory_core.formats.openai_chat.objects import compact
from chathistory_core.formats.openai_chat.parts import is_part
from chathistory_core.messages import AIContent, FunctionCallContent, FunctionResultContent


def read_call(call: Any) -> AIContent:
    """The call that an element of `tool_calls` is; where it is none, a content of no kind that keeps the element.

    The input of a custom call is its `arguments_text`.
    """
    mark: dict[str, Any] = {}
    match call:
        case {"type": "custom", "custom": {"name": str(name), "input": str(text)}}:
            bare, mark = _call(call, name, text), {"type": "custom"}
        case {"function": {"name": str(name)}} if call.get("type") in ("function", None):
            bare = _call(call, name, call["function"].get("arguments"))
        case _:
            bare = None
    if bare is None:
        return AIContent(additional_properties={NAME: {"tool_calls": call}})
    rest = mark | beyond(call, _build(bare, mark))
    return bare.model_copy(update={"additional_properties": {NAME: rest}}) if rest else bare


def _call(call: Mapping[str, Any], name: str, arguments: object) -> FunctionCallContent | None:
    call_id = call.get("id")
    if call_id is None:
        call_id = ""
    if not isinstance(call_id, str):
        return None
    if isinstance(arguments, str):
        return FunctionCallContent(call_id=call_id, name=name, arguments_text=arguments)
    if arguments is None or isinstance(arguments, dict):
        return FunctionCallContent(call_id=call_id, name=name, arguments=arguments)
    return None


def write_call(content: FunctionCallContent) -> dict[str, Any]:
    """The element of `tool_calls` that the call is."""
    rest = leftovers(content)
    return filled(_build(content, rest), rest)


def _build(content: FunctionCallContent, mark: Mapping[str, Any]) -> dict[str, Any]:
    text = _arguments(content)
    if mark.get("type") == "custom":
        return {"id": content.call_id, "type": "custom", "custom": {"name": content.name, "input": text}}
    return {"id": content.call_id, "type": "function", "function": {"name": content.name, "arguments": text}}


def _arguments(content: FunctionCallContent) -> str:
    return compact(content.arguments or {}) if content.arguments_text is None else content.arguments_text


def read_legacy_call(call: Any) -> FunctionCallContent | None:
    """The call that the member `function_call` is, None where it is none; its name stands for the id it lacks."""
    match call:
        case {"name": str(name), "arguments": str(text)}:
            rest = beyond(call, {"name": name, "arguments": text})
            return FunctionCallContent(
                call_id=name, name=name, arguments_text=text, additional_properties={NAME: {"function_call": rest}}
            )
    return None


def is_legacy_call(content: FunctionCallContent) -> bool:
    """Whether the call was the member `function_call`."""
    return isinstance(leftovers(content).get("function_call"), dict)


def write_legacy_call(content: FunctionCallContent) -> dict[str, Any]:
    """The member `function_call` that the call was."""
    return filled({"name": content.name, "arguments": _arguments(content)}, leftovers(content)["function_call"])


def read_result(value: dict[str, Any]) -> FunctionResultContent:
    """The result that a message of the role `tool` or `function` is: content in parts is a list of them."""
    held = {"role", "content", "tool_call_id"} if value["role"] == "tool" else {"content"}
    call_id = value.get("tool_call_id" if value["role"] == "tool" else "name")
    rest = {key: item for key, item in value.items() if key not in held}
    return FunctionResultContent(
        call_id=call_id if isinstance(call_id, str) else "",
        result=value.get("content"),
        additional_properties={NAME: rest} if rest else None,
    )


def write_result(content: FunctionResultContent) -> dict[str, Any]:
    """The message that the result is."""
    rest = leftovers(content)
    if rest.get("role") == "function":
        text = None if content.result is None else _text(content.result)
        return filled({"role": "function", "name": rest.get("name", content.call_id), "content": text}, rest)
    if isinstance(content.result, list) and content.result and all(map(is_part, content.result)):
        written: object = thawed(content.result)
    else:
        written = "" if content.result is None else _text(content.result)
    return filled({"role": "tool", "tool_call_id": content.call_id, "content": written}, rest)


def _text(result: object) -> str:
    return result if isinstance(result, str) else compact(result)
