"""A message from JSON: members in any case and order, nulls, and what .NET refuses where it has a meaning.

What was moved aside is put back (see `writing`), where it only adds: a member that is present wins, and only that
counts which would be moved aside again. Else a message could show us what it hides from .NET.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple, TypeVar, cast

from chathistory_core.formats.chat_message.json_text import text_of, value_in
from chathistory_core.formats.chat_message.members import BY_NAME, CALLS, CONTENTS, MEMBERS, Kind, Member
from chathistory_core.formats.chat_message.places import (
    CONTENT_LEVEL,
    DOTNET_LEVELS,
    MESSAGE_LEVEL,
    OUR_LEVELS,
    Object,
    Place,
    RefusedError,
    UnreadableError,
    UnstorableError,
    carried_text,
    is_carried,
    parted,
)
from chathistory_core.formats.chat_message.values import READERS, Reader, read_array, read_object
from chathistory_core.formats.chat_message.writing import can_stand, write_content, write_member
from chathistory_core.messages import (
    AIAnnotation,
    AIContent,
    AnnotatedRegion,
    Annotation,
    ChatMessage,
    CitationAnnotation,
    Content,
    FunctionCallContent,
    Region,
    TextSpanAnnotatedRegion,
    ToolCallContent,
    UnknownAnnotatedRegion,
    UnknownAnnotation,
    UnknownContent,
    UsageDetails,
)
from chathistory_core.messages.extras import folded, is_extra, pointer
from chathistory_core.messages.value import Value
from chathistory_core.messages.white_space import is_blank


def read_message(raw: object) -> ChatMessage:
    """The message that is in a JSON object.

    Raises:
        ValueError: there is none in it; the text of an `UnreadableError` says why.
    """
    if not isinstance(raw, dict):
        raise UnreadableError("a message is a JSON object")
    message = _read_whole(ChatMessage, {"role": "user", **raw}, MESSAGE_LEVEL, DOTNET_LEVELS)
    if is_blank(message.role):
        raise UnreadableError("`role` is blank")
    return message


def read_content(
    raw: object, level: int = CONTENT_LEVEL, limit: int = DOTNET_LEVELS, *, as_call: bool = False
) -> Content:
    """The content that is in a JSON value, an unknown one where no other is; `as_call` where it is a `toolCall`."""
    if not isinstance(raw, dict):
        return UnknownContent(raw=cast("Any", raw))
    if not as_call and (content := _carried_in(raw, level, limit)) is not None:
        return content
    model: type[AIContent] | None = ToolCallContent if as_call else AIContent
    members: Object = raw
    if kinds := _kinds(raw):
        kind = kinds[0] if len(kinds) == 1 and isinstance(kinds[0], str) else ""
        if kind in _OLD_KINDS:
            members = {_OLD_NAMES.get(str(key), str(key)): value for key, value in raw.items()}
        model = CONTENTS.get(_OLD_KINDS.get(kind, kind))
    try:
        return UnknownContent(raw=raw) if model is None else _read_whole(model, members, level, limit)
    except ValueError:
        return UnknownContent(raw=raw)


_OLD_KINDS: Final = {
    "functionApprovalRequest": "toolApprovalRequest",
    "functionApprovalResponse": "toolApprovalResponse",
}
"""What .NET wrote before 10.3, with these names of members, and reads no more."""

_OLD_NAMES: Final = {"id": "requestId", "functionCall": "toolCall"}


def _kinds(raw: Mapping[str, Any]) -> list[Any]:
    return [value for key, value in raw.items() if folded(key) == "$type"]


def is_typed(raw: object) -> bool:
    """Whether it is an object with a `$type`."""
    return isinstance(raw, dict) and bool(_kinds(raw))


def _carried_in(raw: Object, level: int, limit: int) -> Content | None:
    """The content that stands as a whole in a text, where we would put it there again."""
    text = carried_text(raw)
    if text is None:
        return None
    try:
        original = value_in(text)
        if not is_typed(original):
            return None if original is None else UnknownContent(raw=original)
        content = read_content(original, level, OUR_LEVELS)
        return content if is_carried(write_content(content, level, limit)) else None
    except (ValueError, RefusedError, UnstorableError):
        return None


Whole = TypeVar("Whole", ChatMessage, AIContent)


def _read_whole(model: type[Whole], raw: Object, level: int, limit: int) -> Whole:
    """A message or content, with what was moved aside from it."""
    members, aside = parted(raw)
    place = Place(level, limit, aside)
    fields = _read_members(model, members, place)
    for key, value in aside.items():
        if is_extra(model, key):
            place.extra.setdefault(key, value)
    if place.extra:
        fields["extra"] = place.extra
    return model(**fields)


def _read_members(model: type[Value], raw: Object, place: Place) -> Object:
    """The fields of an object; what it does not know goes to the place's extra."""
    known = BY_NAME[model]
    given: Object = {}
    for key, value in raw.items():
        member = known.get(folded(key))
        if member is not None:
            given[member.name] = value
        elif folded(key) != "$type" or model in _WITHOUT_TYPE:
            place.extra[place.path + pointer(key)] = value
    fields: Object = {}
    for member in MEMBERS[model]:
        _read_member(model, member, given, fields, place)
        if member.required and member.field not in fields:
            raise UnreadableError(f"`{member.name}` is missing")
    return fields


_WITHOUT_TYPE: Final = (ChatMessage, UsageDetails)


def _read_member(model: type[Value], member: Member, given: Object, fields: Object, place: Place) -> None:
    value = given.get(member.name)
    if value is None:
        if member.kind is Kind.BOOL and member.name in given:
            raise UnreadableError(f"`{member.name}` is null")
    elif model is FunctionCallContent and member.kind is Kind.ARGUMENTS and isinstance(value, str):
        fields["arguments_text"] = value
    else:
        fields[member.field] = _READERS[member.kind](value, place, member)
    key = place.path + pointer(member.name)
    if key in place.aside:
        _put_back(model, member, place.aside.pop(key), fields, place)


def _put_back(model: type[Value], member: Member, value: object, fields: Object, place: Place) -> None:
    """Take what was moved aside as the member, where it adds and would be moved aside again."""
    if model is FunctionCallContent and member.kind is Kind.ARGUMENTS and isinstance(value, str):
        if "arguments_text" not in fields and _says(value, fields.get("arguments"), place):
            fields.pop("arguments", None)
            fields["arguments_text"] = value
        return
    present = member.field in fields or (member.kind is Kind.ARGUMENTS and "arguments_text" in fields)
    if present or not member.optional or member.kind in _NEVER_ASIDE:
        return
    try:
        found = _READERS[member.kind](value, place, member)
    except ValueError:
        return
    if _moves_aside(member, found, place):
        fields[member.field] = found


_NEVER_ASIDE: Final = (Kind.CONTENTS, Kind.ANNOTATIONS, Kind.REGIONS)


def _moves_aside(member: Member, value: Any, place: Place) -> bool:
    if member.kind is Kind.PROPERTIES and not value:
        return True
    try:
        write_member(member, value, replace(place, aside={}))
    except RefusedError:
        return True
    return False


def _says(text: str, arguments: Any, place: Place) -> bool:
    """Whether the text is that of the arguments, or of none that could stand beside it."""
    call = FunctionCallContent(name="", call_id="", arguments_text=text)
    if arguments is None:
        return call.arguments is None or not can_stand(call, place)
    try:
        return call.arguments is not None and text_of(call.arguments) == text_of(arguments)
    except ValueError:
        return False


def _read_details(value: object, place: Place, member: Member) -> UsageDetails:
    return UsageDetails(**_read_members(UsageDetails, read_object(value, place, member), place.inside(member.name)))


def _read_contents(value: object, place: Place, member: Member) -> list[Content]:
    return [read_content(one, place.level + 2, place.limit) for one in read_array(value, place, member)]


def _read_call(value: object, place: Place, member: Member) -> Content:
    content = read_content(value, place.level + 1, place.limit, as_call=True)
    if isinstance(content, (*CALLS, ToolCallContent)):
        return content
    raise UnreadableError(f"`{member.name}` is no call")


class Family(NamedTuple):
    """The classes of annotations, or of regions."""

    kind: str
    typed: type[Value]
    base: type[Value]
    unknown: type[UnknownAnnotation | UnknownAnnotatedRegion]


_FAMILIES: Final = {
    Kind.ANNOTATIONS: Family("citation", CitationAnnotation, AIAnnotation, UnknownAnnotation),
    Kind.REGIONS: Family("textSpan", TextSpanAnnotatedRegion, AnnotatedRegion, UnknownAnnotatedRegion),
}


def _read_parts(value: object, place: Place, member: Member) -> list[Any]:
    family = _FAMILIES[member.kind]
    parts = read_array(value, place, member)
    return [_read_part(family, part, place.inside(member.name, index)) for index, part in enumerate(parts)]


def read_part(unknown: UnknownAnnotation | UnknownAnnotatedRegion, place: Place) -> Annotation | Region:
    """The known annotation or region that an unknown one is, or itself; unknown members of it go aside."""
    family = next(family for family in _FAMILIES.values() if isinstance(unknown, family.unknown))
    inside = Place(place.level, place.limit, {}, place.path)
    part = _read_part(family, unknown.raw, inside)
    if isinstance(part, family.unknown):
        return unknown
    place.aside.update(inside.extra)
    return cast("Annotation | Region", part)


def _read_part(family: Family, raw: Any, place: Place) -> Value:
    """An annotation or region; in the place of an empty one, the unknown one that was moved aside."""
    original = place.aside.pop(place.path, None)
    if not isinstance(raw, dict):
        return family.unknown(raw=raw)
    if original is not None and all(value is None for value in raw.values()):
        hidden = _read_part(family, original, replace(place, aside={}, extra={}))
        if isinstance(hidden, family.unknown):
            return hidden
    kinds = _kinds(raw)
    inner = replace(place, extra={})
    try:
        if kinds and kinds != [family.kind]:
            return family.unknown(raw=raw)
        model = family.typed if kinds else family.base
        part = model(**_read_members(model, raw, inner))
    except ValueError:
        return family.unknown(raw=raw)
    place.extra.update(inner.extra)
    return part


_READERS: Final[Mapping[Kind, Reader]] = {
    **READERS,
    Kind.DETAILS: _read_details,
    Kind.CONTENTS: _read_contents,
    Kind.TOOL_CALL: _read_call,
    Kind.ANNOTATIONS: _read_parts,
    Kind.REGIONS: _read_parts,
}
