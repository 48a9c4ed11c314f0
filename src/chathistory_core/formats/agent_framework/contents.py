"""Contents, both ways."""

from collections.abc import Mapping
from typing import Any, Final

from chathistory_core.formats import chat_message
from chathistory_core.formats.agent_framework.annotations import read_annotation, write_annotations
from chathistory_core.formats.agent_framework.kinds import build, take
from chathistory_core.formats.agent_framework.leftovers import (
    CANONICAL,
    NAME,
    RESERVED,
    Members,
    combined,
    difference,
    leftovers,
    overlaid,
    same,
)
from chathistory_core.formats.agent_framework.members import compact
from chathistory_core.messages import AIContent, ChatMessage, Content, TextContent

PROPERTIES: Final = "additional_properties"
_ANNOTATIONS: Final = "annotations"

_PLAIN_TEXT: Final = {"type", "text", PROPERTIES}


def read_content(given: Any) -> AIContent:
    """The content, with what the model lacks as its leftover; a JSON value that is no content is a leftover alone."""
    if not isinstance(given, dict) or not isinstance(given.get("type"), str):
        return AIContent(additional_properties={NAME: {"value": given}})
    if given["type"] == "text" and given.keys() == _PLAIN_TEXT and given[PROPERTIES] == {}:
        return TextContent(text=given["text"])
    members, rest = parted(given)
    content = _read(members)
    if rest is None:
        return content
    restored = restored_content(overlaid(canonical(content), rest))
    if (
        isinstance(restored, AIContent)
        and same(_laid(restored), members)
        and same(difference(canonical(restored), canonical(content)), rest)
    ):
        return restored
    return _read(settled(given))


def write_content(content: Content) -> Any:
    """The framework's JSON of the content, with what it lacks; None where it has no such content."""
    if type(content) is TextContent and content == TextContent(text=content.text):
        return {"type": "text", "text": content.text, PROPERTIES: {}}
    if not isinstance(content, AIContent):
        return None
    if leftovers(content).keys() == {"value"}:
        return leftovers(content)["value"]
    laid = _laid(content)
    if "type" not in laid:
        return None
    read = read_content(laid)
    if read == content:
        return laid
    if CANONICAL in laid[PROPERTIES]:
        return None
    rest = difference(canonical(content), canonical(read))
    whole = {**laid, PROPERTIES: {**laid[PROPERTIES], CANONICAL: rest}}
    return whole if read_content(whole) == content else None


def settled(given: Mapping[str, Any]) -> Members:
    """The members as `to_dict` has them: none is null, and there are additional properties."""
    return {
        **{key: value for key, value in given.items() if value is not None},
        PROPERTIES: given.get(PROPERTIES) or {},
    }


def parted(given: Mapping[str, Any]) -> tuple[Members, Mapping[str, Any] | None]:
    """The settled members without what the framework lacks, and that."""
    members = settled(given)
    properties = members[PROPERTIES]
    rest = properties.get(CANONICAL) if isinstance(properties, dict) else None
    if not isinstance(rest, dict):
        return members, None
    return {**members, PROPERTIES: {key: value for key, value in properties.items() if key != CANONICAL}}, rest


def read_properties(members: Mapping[str, Any], rest: Members) -> Members | None:
    """The model's additional properties: the framework's own and the leftover, which also has what is in its place."""
    properties = members[PROPERTIES]
    own = properties if isinstance(properties, dict) else {}
    aside = {key: own[key] for key in RESERVED if key in own}
    if own is not properties:
        rest[PROPERTIES] = properties
    elif aside:
        rest[PROPERTIES] = aside
    return {**{key: value for key, value in own.items() if key not in aside}, **({NAME: rest} if rest else {})} or None


def write_properties(properties: Mapping[str, Any] | None, rest: Mapping[str, Any]) -> Any:
    """The framework's additional properties, and what stood in the leftover's place."""
    own = {key: value for key, value in (properties or {}).items() if key not in RESERVED}
    aside = rest.get(PROPERTIES)
    if aside is None or isinstance(aside, dict):
        return {**own, **(aside or {})}
    return own or aside


def canonical(content: Content) -> Members:
    """The content as .NET has it."""
    (whole,) = chat_message.dump([ChatMessage(role="user", contents=[content])])
    (written,) = whole["contents"]
    return written or {}


def restored_content(written: Any) -> Content:
    """The content that .NET has so."""
    (message,) = chat_message.decode(compact({"role": "user", "contents": [written]}).encode())
    return message.contents[0]


def _read(members: Members) -> AIContent:
    core = {key: value for key, value in members.items() if key not in (PROPERTIES, _ANNOTATIONS)}
    content = take(core, read_content)
    rest = difference(core, build(content, write_content))
    held: Members = {}
    given = members.get(_ANNOTATIONS)
    if isinstance(given, list):
        held[_ANNOTATIONS] = [read_annotation(one) for one in given]
    elif given is not None:
        rest[_ANNOTATIONS] = given
    if properties := read_properties(members, rest):
        held[PROPERTIES] = properties
    return content.model_copy(update=held) if held else content


def _laid(content: AIContent) -> Members:
    """The members that the content makes, without what the framework lacks; without a `type` where it is none there."""
    whole = leftovers(content)
    rest = {key: value for key, value in whole.items() if key not in (PROPERTIES, _ANNOTATIONS)}
    bare = content.model_copy(update={_ANNOTATIONS: None, PROPERTIES: None, "extra": {}})
    laid = combined(build(content, write_content), rest, lambda core: take(core, read_content) == bare)
    laid[PROPERTIES] = write_properties(content.additional_properties, whole)
    if content.annotations is not None:
        laid[_ANNOTATIONS] = write_annotations(content.annotations)
    elif _ANNOTATIONS in whole:
        laid[_ANNOTATIONS] = whole[_ANNOTATIONS]
    return laid
