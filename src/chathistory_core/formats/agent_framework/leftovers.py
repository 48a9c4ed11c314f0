"""What one side has beyond the other, and how it is laid over what is made from that other.

A leftover is a JSON object of members that differ; None says that the member is not there. Where its place was changed
meanwhile, what was changed decides, and of the leftover only what adds is taken.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from chathistory_core.formats.chat_message import name as canonical_name
from chathistory_core.messages import AIAnnotation, AIContent, ChatMessage, FrozenDict

NAME: Final = "agent-framework"
"""The format, and the key of `additional_properties` that holds what the model lacks."""

CANONICAL: Final = canonical_name
"""The key of the framework's `additional_properties` that holds what the framework lacks, named as .NET names it."""

RESERVED: Final = (NAME, CANONICAL)

Members = dict[str, Any]


def leftovers(value: ChatMessage | AIContent | AIAnnotation) -> Mapping[str, Any]:
    """What this message, content or annotation holds beyond the model."""
    kept = (value.additional_properties or {}).get(NAME)
    return kept if isinstance(kept, dict) else FrozenDict()


def difference(want: Mapping[str, Any], have: Mapping[str, Any]) -> Members:
    """What is to be laid over `have` to get `want`."""
    rest = {key: value for key, value in want.items() if key not in have or not same(value, have[key])}
    return rest | {key: None for key in have if key not in want}


def overlaid(have: Mapping[str, Any], rest: Mapping[str, Any]) -> Members:
    """`have` with the members of `rest` in their place."""
    return {key: value for key, value in {**have, **rest}.items() if value is not None}


def filled(have: Mapping[str, Any], rest: Mapping[str, Any]) -> Members:
    """`have` with the members of `rest` that it lacks."""
    return {**{key: value for key, value in rest.items() if value is not None}, **have}


def combined(built: Mapping[str, Any], rest: Mapping[str, Any], reads_same: Callable[[Members], bool]) -> Members:
    """`built` and its leftover; what of it takes a built member's place must read as that does."""
    whole = overlaid(built, rest)
    return whole if rest.keys().isdisjoint(built) or reads_same(whole) else filled(built, rest)


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal, and so with the kinds of their numbers."""
    if isinstance(one, str) or isinstance(other, str) or one is None:
        return bool(one == other)
    return bool(one == other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def thawed(value: Any) -> Any:
    """The JSON value in dicts and lists that may be changed."""
    if isinstance(value, dict):
        return {key: thawed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thawed(item) for item in value]
    return value
