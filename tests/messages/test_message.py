"""Messages as values."""

import copy
import pickle
import traceback
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import BaseModel, PrivateAttr, ValidationError

from chathistory_core.formats import chat_message
from chathistory_core.messages import (
    CHAT_HISTORY,
    AIContent,
    ChatMessage,
    ChatRole,
    FunctionCallContent,
    FunctionResultContent,
    Origin,
    SourceAttribution,
    TextContent,
    UnknownContent,
)

CANARY = "canary-7f3a"
ORIGIN = Origin("chat-message", b"{}")
MARK = SourceAttribution(CHAT_HISTORY, "provider")


def whole() -> ChatMessage:
    return ChatMessage(
        role="assistant",
        contents=[
            TextContent(text=CANARY),
            FunctionCallContent(call_id="c", name="f", arguments={"a": [CANARY]}),
            UnknownContent(raw={"$type": "hologram", "x": CANARY}),
        ],
        author_name=CANARY,
        message_id="m",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        additional_properties={"k": CANARY},
        extra={"/x": CANARY},
    )


@pytest.mark.parametrize("role", ["user", "assistant", "system"])
def test_the_short_forms_hold_one_text_and_neither_id_nor_time(role: str) -> None:
    message = getattr(ChatMessage, role)("hi")
    assert message == ChatMessage(role=role, contents=[TextContent(text="hi")])
    assert message.message_id is None
    assert message.created_at is None


def test_a_tool_message_holds_the_result_of_its_call() -> None:
    message = ChatMessage.tool("call_1", {"n": 1})
    assert message.role == "tool"
    assert message.contents == (FunctionResultContent(call_id="call_1", result={"n": 1}),)


def test_its_text_is_that_of_its_text_contents() -> None:
    contents = [TextContent(text="a"), FunctionResultContent(call_id="c", result="x"), TextContent(text="b")]
    assert ChatMessage(role="user", contents=contents).text == "ab"


def test_roles_keep_their_case_and_compare_without_it() -> None:
    role = ChatMessage(role="User").role
    assert str(role) == "User"
    assert role == "user"
    assert "USER" == role  # noqa: SIM300 - from both sides
    assert role != "assistant"
    assert {"user": 1}[role] == 1
    assert ChatRole("x") != 1
    assert ChatMessage(role="USER") == ChatMessage(role="user")


@pytest.mark.parametrize("name", ["", " ", "\t\n", "\u3000", "\x85"])
def test_a_blank_author_is_none(name: str) -> None:
    assert ChatMessage(role="user", author_name=name).author_name is None


def test_an_author_of_separators_is_no_white_space_in_dotnet_and_stays() -> None:
    assert ChatMessage(role="user", author_name="\x1c").author_name == "\x1c"


def test_a_time_from_python_needs_an_offset() -> None:
    with pytest.raises(ValidationError, match="timezone"):
        ChatMessage(role="user", created_at=datetime(2026, 1, 1))  # noqa: DTZ001 - refused


def test_a_time_as_text_without_an_offset_is_utc() -> None:
    message = ChatMessage.model_validate({"role": "user", "createdAt": "2026-01-02T03:04:05.1234567"})
    assert message.created_at == datetime(2026, 1, 2, 3, 4, 5, 123456, UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-01-02", datetime(2026, 1, 2, tzinfo=UTC)),
        ("2026-01-02 03:04:05+00:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2026-01-02t03:04z", datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
        (
            "2026-01-02T03:04:05,5+0930",
            datetime(2026, 1, 2, 3, 4, 5, 500_000, timezone(timedelta(hours=9, minutes=30))),
        ),
        ("2026-01-02T03:04:05-03", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=-3)))),
        ("2026-01-02T03:04:05+15:00", datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=15)))),
    ],
)
def test_times_are_read_in_the_forms_that_writers_have(text: str, moment: datetime) -> None:
    read = ChatMessage.model_validate({"role": "user", "createdAt": text}).created_at
    assert read is not None
    assert (read, read.utcoffset()) == (moment, moment.utcoffset())


@pytest.mark.parametrize(
    "text", ["", "1776303052", "2026-02-30", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05+09:60", "x"]
)
def test_a_text_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        ChatMessage.model_validate({"role": "user", "createdAt": text})


@pytest.mark.parametrize(
    "change",
    [
        lambda message: setattr(message, "role", "user"),
        lambda message: setattr(message, "text", "user"),
        lambda message: delattr(message, "role"),
        lambda message: setattr(message.contents[0], "text", "x"),
        lambda message: message.contents.append(1),
        lambda message: message.contents[1].arguments.update(a=1),
        lambda message: message.contents[1].arguments["a"].append(1),
        lambda message: message.contents[2].raw.update(a=1),
        lambda message: message.additional_properties.update(a=1),
        lambda message: message.extra.update(a=1),
    ],
)
def test_nothing_in_a_message_can_be_changed(change: Any) -> None:
    message = whole()
    with pytest.raises((TypeError, AttributeError, ValidationError)):
        change(message)
    assert message == whole()


def test_a_refused_change_shows_nothing_of_either_value() -> None:
    message = ChatMessage.user(CANARY)
    changes: list[Callable[[], None]] = [
        lambda: setattr(message.contents[0], "text", CANARY),
        lambda: delattr(message.contents[0], "text"),
        lambda: setattr(message, "author_name", CANARY),
    ]
    for change in changes:
        with pytest.raises(TypeError, match=r"make a changed copy with model_copy\(update=…\)") as caught:
            change()
        assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_what_the_caller_gave_does_not_reach_into_the_message() -> None:
    contents = [TextContent(text="a")]
    properties: dict[str, Any] = {"k": [1]}
    message = ChatMessage(role="user", contents=contents, additional_properties=properties)
    contents.append(TextContent(text="b"))
    properties["k"].append(2)
    assert message.text == "a"
    assert message.additional_properties == {"k": [1]}


def test_a_message_is_its_own_copy() -> None:
    message = whole()
    assert copy.copy(message) is message
    assert copy.deepcopy(message) is message
    assert message.model_copy() is message
    assert message.model_copy(deep=True) is message


def test_a_pickled_message_comes_back_equal_with_origin_and_mark() -> None:
    message = whole().with_source(MARK).with_origin(ORIGIN)
    again = pickle.loads(pickle.dumps(message))
    assert again == message
    assert again.origin == ORIGIN
    assert again.source == MARK
    assert type(again.role) is ChatRole


def test_a_changed_copy_has_no_origin() -> None:
    message = whole().with_origin(ORIGIN)
    changed = message.model_copy(update={"role": "user"})
    assert changed.role == "user"
    assert changed.origin is None
    assert changed.contents == message.contents
    assert message.origin == ORIGIN


def test_a_changed_copy_is_checked() -> None:
    with pytest.raises(ValidationError):
        whole().model_copy(update={"role": 5})
    with pytest.raises(ValidationError):
        whole().model_copy(update={"no_such_member": 5})


def test_equality_and_hash_ignore_the_origin() -> None:
    assert whole().with_origin(ORIGIN) == whole()
    assert hash(whole().with_origin(ORIGIN)) == hash(whole())
    assert whole() != whole().model_copy(update={"message_id": None})


def test_marking_and_stripping_keep_the_origin_and_take_nothing_else() -> None:
    message = whole().with_origin(ORIGIN)
    marked = message.with_source(MARK)
    assert marked.source == MARK
    assert marked.origin == ORIGIN
    assert marked.without_source() == message
    assert marked.without_source().origin == ORIGIN
    assert message.source == SourceAttribution()


def test_a_mark_that_is_there_already_makes_no_copy() -> None:
    marked = whole().with_source(MARK)
    assert marked.with_source(MARK) is marked
    assert whole().without_source() == whole()
    message = ChatMessage.user("x")
    assert message.without_source() is message
    assert message.with_source(MARK).without_source().additional_properties is None


def test_data_in_the_place_of_a_mark_is_no_mark_and_is_stripped_too() -> None:
    data: Any = {"sourceType": {"value": "ChatHistory"}, "sourceId": "x"}
    message = ChatMessage(role="user", additional_properties={"_attribution": data, "k": 1})
    assert message.source == SourceAttribution()
    assert message.without_source().additional_properties == {"k": 1}


def test_a_mark_given_with_the_properties_counts() -> None:
    properties: dict[str, Any] = {"_attribution": MARK, "k": [1]}
    message = ChatMessage(role="user", additional_properties=properties)
    assert message.source == MARK


def test_a_mark_stands_in_no_content() -> None:
    with pytest.raises(ValidationError, match="SourceAttribution is no JSON value"):
        AIContent(additional_properties={"_attribution": MARK})  # type: ignore[dict-item] # refused


@pytest.mark.parametrize("kind", ["", " ", 5, None])
def test_a_source_type_is_text_and_not_blank(kind: Any) -> None:
    with pytest.raises(ValueError, match="a source type is text and not blank"):
        SourceAttribution(kind)


def test_sources_compare_with_case_and_read_as_text() -> None:
    assert SourceAttribution("chathistory") != SourceAttribution(CHAT_HISTORY)
    assert str(SourceAttribution()) == "External"
    assert str(MARK) == "ChatHistory:provider"


def test_no_repr_shows_content() -> None:
    message = whole().with_origin(Origin("x", CANARY.encode()))
    for value in (message, *message.contents, message.origin, message.contents[1]):
        assert CANARY not in repr(value)
        assert CANARY not in str(value)
    assert repr(message) == "<ChatMessage>"
    assert repr(message.origin) == "<Origin 'x', 11 bytes, 1 of 1>"


@pytest.mark.parametrize(
    "wrong",
    [
        {"role": {"x": CANARY}},
        {"role": "user", "contents": [{"$type": "text", "text": CANARY}]},
        {"role": "user", "contents": CANARY},
        {"role": "user", "created_at": CANARY},
        {"role": "user", "additional_properties": {"k": {CANARY}}},
        {"role": "user", "additional_properties": [CANARY]},
        {"role": "user", "extra": {CANARY: 1}},
        {"role": "user", "message_id": [CANARY]},
        {"role": "user", CANARY.replace("-", "_"): 1},
    ],
)
def test_no_validation_error_shows_a_value(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as refused:
        ChatMessage(**wrong)
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "wrong", [{}, {"role": None}, {"role": "user", "contents": [1]}, {"role": "user", "contents": None}]
)
def test_members_of_another_type_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChatMessage(**wrong)


@pytest.mark.parametrize(
    "extra", [{"x": 1}, {"": 1}, {"/role": 1}, {"/AuthorName": 1}, {"/x/y": 1}, {"/contents/0": 1}]
)
def test_extra_is_by_pointer_and_no_place_for_a_known_member(extra: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="no place for a member that the model has"):
        ChatMessage(role="user", extra=extra)


class Own(ChatMessage):
    """A message of a class of one's own, with something to itself."""

    _own: str = PrivateAttr(default="mine")


def test_a_class_of_ones_own_may_have_private_attributes() -> None:
    message = Own.user("hello")
    assert message.origin is None
    assert message.with_source(MARK).source == MARK
    assert message._own == "mine"


def test_a_message_is_marked_once_and_the_same_again() -> None:
    message = ChatMessage.user("hello")
    first, second = SourceAttribution("ChatHistory", "a"), SourceAttribution("ChatHistory", "b")
    marked = message.with_source(first)
    assert message.with_source(first) is marked
    assert [message.with_source(mark).source for mark in (second, first, second)] == [second, first, second]
    assert message.source == SourceAttribution()
    assert marked.source == first


def test_a_marked_copy_is_no_part_of_the_message_that_is_sent_elsewhere() -> None:
    message, other = ChatMessage.user("hello"), ChatMessage.user("hello")
    before = len(pickle.dumps(message))
    message.with_source(SourceAttribution("ChatHistory", "a"))
    assert len(pickle.dumps(message)) == before
    assert pickle.loads(pickle.dumps(message)) == message == other
    changed = message.model_copy(update={"message_id": "1"})
    assert changed.with_source(SourceAttribution("ChatHistory", "a")).message_id == "1"


def test_who_changes_the_set_of_given_members_changes_no_message() -> None:
    one, other = chat_message.decode(b'{"role":"user"}')[0], chat_message.decode(b'{"role":"user"}')[0]
    one.model_fields_set.add("message_id")
    assert one.model_fields_set == other.model_fields_set == {"role"}


def test_a_message_class_of_ones_own_keeps_its_private_attributes_in_copies() -> None:
    class Scored(ChatMessage):
        _score: int = PrivateAttr(default=0)

    message = Scored(role="user")
    object.__setattr__(message, "__pydantic_private__", {"_score": 7})
    for copied in (message.with_source(MARK), message.with_origin(ORIGIN), message.with_source(MARK).without_source()):
        assert isinstance(copied, Scored)
        assert copied._score == 7


def test_a_copy_does_not_change_with_a_private_attribute_of_the_message() -> None:
    class Counting(ChatMessage):
        _count: int = PrivateAttr(default=0)

    message = Counting(role="user")
    copied = message.with_source(MARK)
    BaseModel.__setattr__(message, "_count", 1)
    assert (message._count, copied._count) == (1, 0)


def test_what_was_pickled_without_an_origin_is_read_without_one() -> None:
    message, read = ChatMessage.user("hello"), ChatMessage.__new__(ChatMessage)
    read.__setstate__(BaseModel.__getstate__(message))
    assert read == message
    assert read.origin is None
