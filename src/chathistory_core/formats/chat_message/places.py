"""Where an object stands in a message, and what is moved aside from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final, cast

from chathistory_core.formats.chat_message.json_text import depth, flaw, text_of, value_in
from chathistory_core.formats.chat_message.members import NAMES
from chathistory_core.messages.extras import folded, pointer, steps
from chathistory_core.messages.json_members import RESERVED

EXTRA: Final = f"{RESERVED}extra"
"""The additional property that holds the extras of a content or message, as JSON text."""

CONTENT: Final = f"{RESERVED}content"
"""The additional property that holds a whole content, as JSON text."""

DOTNET_LEVELS: Final = 64
"""How deep .NET reads, the list of messages being the first level."""

OUR_LEVELS: Final = 201
"""How deep we go: 200 levels of a message, behind the list."""

MESSAGE_LEVEL: Final = 2
CONTENT_LEVEL: Final = 4

TOO_DEEP: Final = "more than 200 levels"

Object = dict[str, Any]


class RefusedError(Exception):
    """.NET does not take the value as it stands."""


class UnstorableError(Exception):
    """No JSON of ours holds the value."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


class UnreadableError(ValueError):
    """The JSON is not what stands there; the text names the member and shows no value."""


@dataclass(slots=True)
class Place:
    """Where an object stands that is written or read. It never changes; to be frozen would double what it costs."""

    level: int
    limit: int
    """`DOTNET_LEVELS`, or `OUR_LEVELS` inside a text, where .NET does not look."""
    aside: Object
    """What is moved aside from the content or message that it is part of, or is to be put back there."""
    path: str = ""
    """Its pointer inside that."""
    extra: Object = field(default_factory=dict)
    """The unknown members that were read in that."""

    @property
    def room(self) -> int:
        """How many levels its members may have."""
        return self.limit - self.level

    def inside(self, *names: str | int) -> "Place":
        """The place of an object inside it."""
        return replace(self, level=self.level + len(names), path=self.path + pointer(*names))


def text_aside(value: object) -> str:
    """The JSON text of what is moved aside; `UnstorableError` where it has none."""
    try:
        return text_of(value)
    except ValueError:
        raise unstorable(value) from None


def unstorable(value: object) -> UnstorableError:
    """The error that says what `text_of` refused, and in which member; keys inside a member may be content."""
    found = flaw(value)
    path, reason = found if found is not None else ([], "no JSON")
    names = [step for key in path for step in (_named(key) if isinstance(key, str) else [key])]
    return UnstorableError(reason, pointer(*takewhile(lambda step: isinstance(step, int) or step in NAMES, names)))


def _named(key: str) -> list[str | int]:
    """What a key of JSON or of extras names."""
    return [int(step) if step.isdecimal() else step for step in steps(key)] or [key]


def with_extras(written: Object, properties: Mapping[str, Any], place: Place) -> Object:
    """The content or message with its additional properties, among them what was moved aside."""
    if place.aside:
        if any(depth(value) + len(steps(key)) > OUR_LEVELS - place.level + 1 for key, value in place.aside.items()):
            raise UnstorableError(TOO_DEEP)
        written["additionalProperties"] = {**properties, EXTRA: text_aside(place.aside)}
    return written


def carried(raw: object, level: int) -> Object:
    """The content that has another as a whole in a text."""
    if depth(raw) > OUR_LEVELS - level + 1:
        raise UnstorableError(TOO_DEEP)
    return {"additionalProperties": {CONTENT: text_aside(raw)}}


def is_carried(written: Mapping[str, Any] | None) -> bool:
    """Whether a content was written as a whole in a text."""
    return written is not None and CONTENT in (written.get("additionalProperties") or ())


def carried_text(raw: Mapping[str, Any]) -> str | None:
    """The text of a content that has nothing but another in it."""
    members = {folded(key): value for key, value in raw.items() if value is not None}
    properties = members.pop("additionalproperties", None)
    if members or not isinstance(properties, dict) or set(properties) != {CONTENT}:
        return None
    text = properties[CONTENT]
    return text if isinstance(text, str) else None


def parted(raw: Object) -> tuple[Object, Object]:
    """The members of a content or message without our text, and the extras in that."""
    properties = None
    for key, value in raw.items():
        if folded(key) == "additionalproperties":
            properties = value
    text = properties.get(EXTRA) if isinstance(properties, dict) else None
    if not isinstance(text, str):
        return raw, {}
    try:
        aside = value_in(text)
    except ValueError:
        return raw, {}
    if not isinstance(aside, dict) or not all(key.startswith("/") for key in aside):
        return raw, {}
    rest = {key: value for key, value in cast("Object", properties).items() if key != EXTRA}
    return {**raw, "additionalProperties": rest or None}, aside
