"""Messages, both ways."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from chathistory_core.errors import DecodeError, EncodeError
from chathistory_core.formats import chat_message
from chathistory_core.formats.agent_framework.contents import (
    PROPERTIES,
    parted,
    read_content,
    read_properties,
    restored_content,
    settled,
    write_content,
    write_properties,
)
from chathistory_core.formats.agent_framework.leftovers import (
    CANONICAL,
    NAME,
    Members,
    combined,
    difference,
    leftovers,
    overlaid,
    same,
)
from chathistory_core.formats.agent_framework.members import compact
from chathistory_core.messages import ATTRIBUTION_KEY, ChatMessage, Content, SourceAttribution
from chathistory_core.messages.white_space import is_blank

TYPE: Final = "message"

_TYPES: Final = (TYPE, "chat_message")
"""What the framework calls a message, and once called it."""

_CONTENTS: Final = "contents"
_PLAIN: Final = {"type", "role", _CONTENTS, "author_name", "message_id", PROPERTIES}
"""The members that the model has a place for."""


def read(value: object, index: int) -> ChatMessage:
    """The message, without its origin.

    Raises:
        DecodeError: it is none; `index` is how the error calls it.
    """
    if not isinstance(value, dict):
        _refuse(index, "is no object")
    if value.get("type", TYPE) not in _TYPES:
        _refuse(index, "is an object of another type")
    role = value.get("role")
    if not isinstance(role, str) or is_blank(role):
        _refuse(index, "has no role")
    given = value.get(_CONTENTS)
    if not isinstance(given, (str, list, type(None))):
        _refuse(index, "has contents that are no list")
    listed = [given] if isinstance(given, str) else given or []
    spelled = [_spelled(one) for one in listed if one is not None]
    try:
        if value.keys() <= _PLAIN and value.get(PROPERTIES) == {} and _is_plain(value):
            return _take(value, [read_content(one) for one in spelled])
        return _read({**value, "type": TYPE, _CONTENTS: spelled})
    except (ValidationError, RecursionError):  # what they say shows the content
        _refuse(index, "holds what no message can, such as too many levels")


def _is_plain(value: Mapping[str, Any]) -> bool:
    """Whether the texts among the members are what the model has in their place."""
    author, message_id = value.get("author_name"), value.get("message_id")
    return (author is None or (isinstance(author, str) and not is_blank(author))) and (
        message_id is None or isinstance(message_id, str)
    )


def _refuse(index: int, reason: str) -> NoReturn:
    raise DecodeError(NAME, f"message {index} {reason}") from None


def _spelled(content: Any) -> Any:
    return {"type": "text", "text": content, PROPERTIES: {}} if isinstance(content, str) else content


def write(message: ChatMessage, path: str) -> Members:
    """The framework's JSON of the message, with what it lacks; `path` is what an error calls the message.

    Raises:
        EncodeError: the message holds what no record can.
    """
    try:
        return _write(message)
    except EncodeError as error:
        raise EncodeError(path + error.path.removeprefix("0"), error.reason) from None
    except (ValidationError, RecursionError):
        raise EncodeError(path, "more than 200 levels") from None


def _read(given: Mapping[str, Any]) -> ChatMessage:
    members, rest = parted(given)
    contents: list[Content] = [read_content(one) for one in members[_CONTENTS]]
    message = _of(members, contents)
    if rest is None:
        return message
    aside = rest.get(_CONTENTS)
    if aside is None or (isinstance(aside, dict) and all(map(str.isdecimal, aside))):
        for at, content in sorted((int(key), content) for key, content in (aside or {}).items()):
            contents.insert(at, restored_content(content))
        restored = _restored(message, {key: value for key, value in rest.items() if key != _CONTENTS}, contents)
        if same(_write(restored), settled(given)):
            return restored
    return _of(settled(given), [read_content(one) for one in members[_CONTENTS]])


def _of(members: Mapping[str, Any], contents: Sequence[Content]) -> ChatMessage:
    core = {key: value for key, value in members.items() if key not in (PROPERTIES, _CONTENTS)}
    message = _take(core, contents)
    properties = read_properties(members, difference(core, _build(message)))
    return message if properties is None else message.model_copy(update={PROPERTIES: properties})


def _take(core: Mapping[str, Any], contents: Sequence[Content] = ()) -> ChatMessage:
    author, message_id = core.get("author_name"), core.get("message_id")
    return ChatMessage(
        role=core["role"],
        contents=contents,
        author_name=author if isinstance(author, str) else None,
        message_id=message_id if isinstance(message_id, str) else None,
    )


def _build(message: ChatMessage) -> Members:
    built: Members = {"type": TYPE, "role": str(message.role)}
    if message.author_name is not None:
        built["author_name"] = message.author_name
    if message.message_id is not None:
        built["message_id"] = message.message_id
    return built


def _write(message: ChatMessage) -> Members:
    if isinstance((message.additional_properties or {}).get(ATTRIBUTION_KEY), SourceAttribution):
        message = message.without_source()
    written = [write_content(content) for content in message.contents]
    aside = {
        str(at): _canonical(message.model_copy(update={_CONTENTS: [message.contents[at]]}))[_CONTENTS][0]
        for at, content in enumerate(written)
        if content is None
    }
    head = message.model_copy(update={_CONTENTS: ()})
    laid = _laid(head)
    members, _ = parted(laid)
    read = _of(members, ())
    rest: Members = {} if read == head else difference(_canonical(head), _canonical(read))
    if aside:
        rest[_CONTENTS] = aside
    if rest:
        laid[PROPERTIES] = {**laid[PROPERTIES], CANONICAL: rest}
    laid[_CONTENTS] = [content for content in written if content is not None]
    return {key: laid[key] for key in ("type", "role", _CONTENTS)} | laid


def _laid(head: ChatMessage) -> Members:
    whole = leftovers(head)
    rest = {key: value for key, value in whole.items() if key != PROPERTIES}
    built = _build(head)
    laid = combined(built, rest, lambda core: _build(_take(core)) == built)
    laid[PROPERTIES] = write_properties(head.additional_properties, whole)
    return laid


def _canonical(message: ChatMessage) -> Members:
    """The message as .NET has it."""
    return chat_message.dump([message])[0]


def _restored(message: ChatMessage, rest: Mapping[str, Any], contents: Sequence[Content]) -> ChatMessage:
    head = message.model_copy(update={_CONTENTS: ()})
    if rest:
        (head,) = chat_message.decode(compact(overlaid(_canonical(head), rest)).encode())
    return head.model_copy(update={_CONTENTS: contents})
