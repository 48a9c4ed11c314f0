"""A message as JSON that .NET takes, and that reads as the same message.

What .NET would drop or refuse is moved aside: a member as an *extra*, by JSON pointer, in the JSON text under
`additionalProperties["chathistory.extra"]` of its content or message; a content that is unknown, or cannot stand
without such a member, as a whole in the text under `additionalProperties["chathistory.content"]` of a content without
`$type`. In that text, where .NET does not look, members stand whatever it thinks of them.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final

from chathistory_core.formats.chat_message.json_text import depth, flaw
from chathistory_core.formats.chat_message.members import CALLS, MEMBERS, Kind, Member, model_of
from chathistory_core.formats.chat_message.places import (
    DOTNET_LEVELS,
    MESSAGE_LEVEL,
    OUR_LEVELS,
    TOO_DEEP,
    Object,
    Place,
    RefusedError,
    UnstorableError,
    carried,
    with_extras,
)
from chathistory_core.formats.chat_message.values import WRITERS, Writer, write_properties
from chathistory_core.messages import (
    ATTRIBUTION_KEY,
    AIContent,
    Annotation,
    ChatMessage,
    Content,
    FunctionCallContent,
    Region,
    SourceAttribution,
    ToolCallContent,
    UnknownAnnotatedRegion,
    UnknownAnnotation,
    UnknownContent,
    UsageDetails,
)
from chathistory_core.messages.extras import pointer
from chathistory_core.messages.value import Value
from chathistory_core.messages.white_space import is_blank


def write_message(message: ChatMessage) -> Object:
    """The message as a JSON object.

    Raises:
        UnstorableError: it holds what no JSON of ours holds.
    """
    if is_blank(message.role):
        raise UnstorableError("a blank role", "/role")
    place = Place(MESSAGE_LEVEL, DOTNET_LEVELS, dict(message.extra))
    return _finished(_write_members(message, place), message, place)


def write_content(content: Content, level: int, limit: int, *, as_call: bool = False) -> Object | None:
    """The content as a JSON object, or None for a null; `as_call` where it is the value of a `toolCall`.

    Raises:
        RefusedError: there is no room for it, or it cannot be a `toolCall`.
        UnstorableError: it holds what no JSON of ours holds.
    """
    if level + _LEVELS > limit:
        raise RefusedError if limit == DOTNET_LEVELS else UnstorableError(TOO_DEEP)
    if not isinstance(content, AIContent):
        return _write_unknown(content, level, limit)
    if as_call and not isinstance(content, (*CALLS, ToolCallContent)):
        raise RefusedError
    place = Place(level, limit, dict(content.extra))
    kind = getattr(content, "type", None)
    written: Object = {} if kind is None or (as_call and isinstance(content, ToolCallContent)) else {"$type": kind}
    try:
        written |= _write_members(content, place)
    except RefusedError:
        if as_call:
            raise
        return carried(write_content(content, level, OUR_LEVELS), level)
    return _finished(written, content, place)


_LEVELS: Final = 4
"""What every content gets: `annotations`, an annotation, its regions, a region."""


def _write_unknown(content: UnknownContent, level: int, limit: int) -> Object | None:
    from chathistory_core.formats.chat_message.reading import is_typed, read_content  # it checks by writing

    if content.raw is None:
        return None
    if is_typed(content.raw):
        known = read_content(content.raw, level, limit)
        if not isinstance(known, UnknownContent):
            return write_content(known, level, limit)
    return carried(content.raw, level)


def _finished(written: Object, value: ChatMessage | AIContent, place: Place) -> Object:
    """The content or message with its additional properties and what was moved aside."""
    properties: Mapping[str, Any] = {}
    if value.additional_properties is not None:
        properties = _unmarked(value.additional_properties)
        try:
            if place.aside and not properties:  # beside the text nothing would be left of it
                raise RefusedError  # noqa: TRY301 - as a writer does
            written["additionalProperties"] = write_properties(properties, place, _PROPERTIES)
        except RefusedError:
            place.aside["/additionalProperties"] = properties
            properties = {}
    return with_extras(written, properties, place)


_PROPERTIES: Final = MEMBERS[AIContent][-1]


def _unmarked(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The properties with a mark as the JSON that .NET makes of one."""
    mark = properties.get(ATTRIBUTION_KEY)
    if not isinstance(mark, SourceAttribution):
        return properties
    in_json: Object = {"sourceType": {"value": mark.type}}
    if mark.id is not None:
        in_json["sourceId"] = mark.id
    return {**properties, ATTRIBUTION_KEY: in_json}


def _write_members(value: Value, place: Place) -> Object:
    """The members of an object, but not the additional properties of a content or message."""
    call = value if isinstance(value, FunctionCallContent) else None
    written: Object = {}
    for member, writer in _members_of(type(value)):
        given = getattr(value, member.field)
        if given is None:
            continue
        if writer is None:
            written[member.name] = given
            continue
        if call is not None and member.kind is Kind.ARGUMENTS and not can_stand(call, place):
            continue
        try:
            written[member.name] = writer(given, place, member)
        except RefusedError:
            if member.optional and member.kind is not Kind.CONTENTS:
                place.aside[place.path + pointer(member.name)] = _in_json(given)
            elif place.limit == DOTNET_LEVELS:
                raise
            else:
                written[member.name] = given
        except UnstorableError as error:
            error.path = pointer(member.name) + error.path
            raise
    if call is not None and call.arguments_text is not None:
        place.aside["/arguments"] = call.arguments_text
    return written


@cache
def _members_of(kind: type[Value]) -> Sequence[tuple[Member, Writer | None]]:
    """The members that `_write_members` writes, and what writes each: to look that up takes longer than most do."""
    whole = issubclass(kind, (AIContent, ChatMessage))
    return [
        (member, _WRITERS[member.kind])
        for member in MEMBERS[model_of(kind)]
        if not (whole and member.kind is Kind.PROPERTIES)
    ]


def can_stand(call: FunctionCallContent, place: Place) -> bool:
    """Whether the call's arguments stand as an object; beside their text they need not, for it says them."""
    return call.arguments_text is None or (depth(call.arguments) <= place.room and flaw(call.arguments) is None)


def _in_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def write_member(member: Member, value: Any, place: Place) -> Any:
    """The member's value as JSON.

    Raises:
        RefusedError: .NET does not take it.
        UnstorableError: no JSON of ours holds it.
    """
    writer = _WRITERS[member.kind]
    return value if writer is None else writer(value, place, member)


def _write_details(value: UsageDetails, place: Place, member: Member) -> Any:
    return _write_members(value, place.inside(member.name))


def _write_contents(value: Sequence[Content], place: Place, _member: Member) -> Any:
    written = []
    for index, content in enumerate(value):
        try:
            written.append(write_content(content, place.level + 2, place.limit))
        except UnstorableError as error:
            error.path = pointer(index) + error.path
            raise
    return written


def _write_call(value: Content, place: Place, _member: Member) -> Any:
    return write_content(value, place.level + 1, place.limit, as_call=True)


def _write_parts(value: Sequence[Annotation | Region], place: Place, member: Member) -> Any:
    return [_write_part(part, place.inside(member.name, index)) for index, part in enumerate(value)]


def _write_part(part: Annotation | Region, place: Place) -> Any:
    """An annotation or region; of one that .NET does not know an empty one is left."""
    if isinstance(part, (UnknownAnnotation, UnknownAnnotatedRegion)):
        from chathistory_core.formats.chat_message.reading import read_part  # it checks by writing

        if part.raw is None:
            return None
        known = read_part(part, place)
        if known is part:
            place.aside[place.path] = part.raw
            return {}
        part = known
    kind = getattr(part, "type", None)
    return ({} if kind is None else {"$type": kind}) | _write_members(part, place)


_WRITERS: Final[Mapping[Kind, Writer | None]] = {
    **WRITERS,
    Kind.DETAILS: _write_details,
    Kind.CONTENTS: _write_contents,
    Kind.TOOL_CALL: _write_call,
    Kind.ANNOTATIONS: _write_parts,
    Kind.REGIONS: _write_parts,
}
