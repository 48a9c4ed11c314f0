"""What the client's objects hold beyond the model: kept under one key, and the only thing that is sent from there.

A leftover has the shape of its place: the members that the model's own part of the object lacks.
"""

from collections.abc import Mapping
from typing import Any, Final

from chathistory_core.messages import AIContent, ChatMessage, FrozenDict

NAME: Final = "openai-chat"
"""The format, and the key of `additional_properties`."""


def leftovers(value: ChatMessage | AIContent) -> Mapping[str, Any]:
    """What this message or content holds beyond the model."""
    kept = (value.additional_properties or {}).get(NAME)
    return kept if isinstance(kept, dict) else FrozenDict()


def beyond(given: Mapping[str, Any], built: Mapping[str, Any]) -> dict[str, Any]:
    """The members of `given`, at any depth of objects, that `built` lacks."""
    rest: dict[str, Any] = {}
    for key, value in given.items():
        if key not in built:
            rest[key] = value
        elif isinstance(value, dict) and isinstance(built[key], dict) and (inner := beyond(value, built[key])):
            rest[key] = inner
    return rest


def filled(built: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """`built` and the members of `rest` that it lacks; what it has decides. Shares nothing with `rest`."""
    whole = dict(built)
    for key, value in rest.items():
        if key not in whole:
            whole[key] = thawed(value)
        elif isinstance(value, dict) and isinstance(whole[key], dict):
            whole[key] = filled(whole[key], value)
    return whole


def thawed(value: Any) -> Any:
    """The JSON value in dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thawed(item) for item in value]
    return value
