"""What .NET refuses in a message that we could keep, but only aside, where .NET does not look."""

import json
from collections.abc import Iterator, Mapping
from typing import Final

from chathistory_core.messages import AIContent, ChatMessage

_CONTENT: Final = "chathistory.content"
_EXTRA: Final = "chathistory.extra"
_PROPERTIES: Final = "/additionalProperties"
"""They stand aside where their keys differ in case alone, too, which .NET takes, though not all of them."""

_LISTS: Final = ("contents", "inputs", "outputs")
"""The members that hold contents."""


def refused_in(message: ChatMessage, given: object, payload: bytes) -> str | None:
    """The JSON pointer of the first thing in a message, as it was given, that its record has aside; None without one.

    What was aside before, and members of names that .NET does not know and ignores, may be there.
    """
    return next(_refused(message, given, json.loads(payload), ""), None)


def _refused(value: object, given: object, written: object, path: str) -> Iterator[str]:
    if not isinstance(written, dict):
        return
    members = given.items() if isinstance(given, dict) else ()
    before: dict[str, object] = {str(name).lower(): member for name, member in members}
    had, has = before.get("additionalproperties"), written.get("additionalProperties")
    if _text(has, _CONTENT) and not _text(had, _CONTENT):
        yield path
    known = {*_pointers(had), *(value.extra if isinstance(value, ChatMessage | AIContent) else ())}
    for pointer in _pointers(has):
        if pointer not in known and not pointer.endswith(_PROPERTIES):
            yield path + pointer
    for name in _LISTS:
        values, givens, writtens = getattr(value, name, None), before.get(name), written.get(name)
        if isinstance(values, tuple) and isinstance(givens, list) and isinstance(writtens, list):
            for index, three in enumerate(zip(values, givens, writtens, strict=False)):
                yield from _refused(*three, f"{path}/{name}/{index}")
    call = getattr(value, "tool_call", None)
    if call is not None:
        yield from _refused(call, before.get("toolcall"), written.get("toolCall"), f"{path}/toolCall")


def _pointers(properties: object) -> Iterator[str]:
    """The pointers of what is aside in these additional properties."""
    try:
        aside = json.loads(_text(properties, _EXTRA) or "{}")
    except (ValueError, RecursionError):
        return
    if isinstance(aside, dict):
        yield from aside


def _text(properties: object, name: str) -> str:
    found = properties.get(name) if isinstance(properties, Mapping) else None
    return found if isinstance(found, str) else ""
