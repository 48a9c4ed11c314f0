"""The framework's own objects, made by the installed version of what any version wrote."""

from collections.abc import Iterable, Mapping, Sequence
from inspect import signature
from typing import Any, Final

from agent_framework import Content, Message

from chathistory_core.faces.agent_framework.copies import copies_of
from chathistory_core.formats import agent_framework
from chathistory_core.formats.agent_framework.origin import FrameworkOrigin
from chathistory_core.messages import ChatMessage

_MESSAGE: Final = frozenset(signature(Message.__init__).parameters) - {"self", "raw_representation"}
_CONTENT: Final = frozenset(signature(Content.__init__).parameters) - {"self", "raw_representation"}
_INSIDE: Final = ("function_call", "inputs", "items", "output", "outputs", "screenshot")
"""The members of a content that may hold others."""

_OPAQUE: Final[Any] = "unknown"
"""The type of a content that this version cannot hold."""

_MARK: Final = "_attribution"
"""Where the framework notes which provider a message of a run came from; of a stored one it is not believed."""


def objects(messages: Sequence[ChatMessage]) -> list[Message]:
    """The framework's messages; members unknown to it are in their `additional_properties["agent-framework"]`."""
    return [_object(message) for message in messages]


def _object(message: ChatMessage) -> Message:
    origin = message.origin
    if not isinstance(origin, FrameworkOrigin):
        return _message(agent_framework.dump([message])[0])
    if not origin.built:
        origin.built.append(copies_of(_message(agent_framework.dump([message])[0])))
    copy: Message = origin.built[0]()
    return copy


def messages(given: Iterable[Message]) -> list[ChatMessage]:
    """Our messages of the framework's, as they are now; without the marks of its run."""
    return agent_framework.load([_unmarked(message.to_dict()) for message in given])


def _unmarked(written: dict[str, Any]) -> dict[str, Any]:
    properties = written.get("additional_properties")
    if isinstance(properties, dict) and _MARK in properties:
        written["additional_properties"] = {key: value for key, value in properties.items() if key != _MARK}
    return written


def _message(written: dict[str, Any]) -> Message:
    del written["type"]
    members = _known(_unmarked(written), _MESSAGE)
    members["contents"] = [_content(content) for content in members.get("contents") or ()]
    return Message(**members)


def _content(written: Any) -> Any:
    if isinstance(written, str):
        return written
    for known in (_as_it_is, _readable):
        try:
            return Content.from_dict(known(written))
        except Exception:  # noqa: BLE001, S112 - whatever this version does not take, the rest of the history stays readable
            continue
    return Content(_OPAQUE, additional_properties={agent_framework.name: written})


def _as_it_is(written: Any) -> Any:
    return written


def _readable(written: Any) -> Any:
    """What this version knows of the content, and of those inside it."""
    if isinstance(written, list):
        return [_readable(one) for one in written]
    if not isinstance(written, dict) or "type" not in written:
        return written
    members = _known(written, _CONTENT)
    return {key: _readable(value) if key in _INSIDE else value for key, value in members.items()}


def _known(written: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    known = {key: value for key, value in written.items() if key in names}
    properties = known.get("additional_properties") or {}
    if isinstance(properties, dict) and len(known) == len(written):
        return known
    unknown = {key: value for key, value in written.items() if key not in names}
    if not isinstance(properties, dict):
        unknown["additional_properties"], properties = properties, {}
    return {**known, "additional_properties": {**properties, agent_framework.name: unknown}}
