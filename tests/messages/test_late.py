"""Results, and arguments that came as text, are made when somebody asks for them: nobody can tell otherwise."""

import copy
import json
import pickle
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter

from chathistory_core.errors import DecodeError
from chathistory_core.formats import chat_message, openai_chat
from chathistory_core.messages import (
    ChatMessage,
    FrozenDict,
    FrozenList,
    FunctionCallContent,
    FunctionResultContent,
    ToolApprovalRequestContent,
)

VALUES: tuple[Any, ...] = (
    *({"a": [1, 2.5, "x", None, True, {"c": []}], "b": {}}, {}, [{"a": 1}, {"b": [2]}], []),
    *([1, {"a": 2}], [[{}]], "text", "", "NaN", None, 7, -0.5, False),
)


CANARY = "canary-7f3a"


def payload(*contents: Any) -> bytes:
    return json.dumps({"role": "tool", "contents": contents}).encode()


def result(value: Any, call_id: str = "c") -> Any:
    return {"$type": "functionResult", "result": value, "callId": call_id}


def call(arguments: Any) -> Any:
    return {"$type": "functionCall", "name": "f", "arguments": arguments, "callId": "c"}


def asked(arguments: str) -> dict[str, Any]:
    function = {"name": "f", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": function}]}


def read(*contents: Any) -> ChatMessage:
    return chat_message.decode(payload(*contents))[0]


def content(one: Any) -> Any:
    return read(one).contents[0]


@pytest.mark.parametrize("value", VALUES)
def test_a_result_is_what_the_payload_says(value: Any) -> None:
    assert content(result(value)).result == value


def test_each_content_finds_its_own_value_in_whatever_order_they_are_asked() -> None:
    texts = [result("text"), {"$type": "text", "text": "x"}]
    lates = [result({"n": 1}), call({"n": 2}), result([{"n": 3}]), result([{"n": 4}, 5])]
    nested = [
        {"$type": "toolApprovalRequest", "toolCall": call({"n": 6}), "requestId": "r"},
        {"$type": "mcpServerToolResult", "outputs": [result({"n": 7}), result("t"), result({"n": 8})], "callId": "m"},
    ]
    message = read(*texts, *lates, *nested, result({"n": 9}))
    contents: Any = message.contents
    assert contents[8].result == {"n": 9}
    assert [contents[at].result for at in (5, 4, 2, 0)] == [[{"n": 4}, 5], [{"n": 3}], {"n": 1}, "text"]
    assert contents[3].arguments == {"n": 2}
    assert [one.result for one in contents[7].outputs] == [{"n": 7}, "t", {"n": 8}]
    assert contents[6].tool_call.arguments == {"n": 6}


@pytest.mark.parametrize(
    "same",
    [
        lambda one, other: one == other,
        lambda one, other: other == one,
        lambda one, other: hash(one) == hash(other),
        lambda one, other: pickle.loads(pickle.dumps(one)) == other,
        lambda one, other: copy.deepcopy(one) == copy.copy(one) == other,
        lambda one, other: one.model_copy(update={"call_id": "d"}) == other.model_copy(update={"call_id": "d"}),
        lambda one, other: one.model_dump() == other.model_dump(),
        lambda one, other: one.model_dump(exclude_none=True) == other.model_dump(exclude_none=True),
        lambda one, other: one.model_dump_json() == other.model_dump_json(),
        lambda one, other: dict(one) == dict(other),
        lambda one, other: list(map(type, dict(one).values())) == list(map(type, dict(other).values())),
        lambda one, other: repr(one) == repr(other),
    ],
)
@pytest.mark.parametrize(
    ("json_value", "other"),
    [
        (call({"a": [1]}), FunctionCallContent(name="f", call_id="c", arguments={"a": [1]})),
        (result({"a": [1]}), FunctionResultContent(call_id="c", result={"a": [1]})),
        (result([{"a": [1]}]), FunctionResultContent(call_id="c", result=[{"a": [1]}])),
    ],
)
def test_what_nobody_asked_for_yet_is_as_what_was_given(
    json_value: Any, other: Any, same: Callable[[Any, Any], bool]
) -> None:
    assert same(content(json_value), other)
    assert same(content(json_value), content(json_value))
    assert content(json_value) != other.model_copy(update={"call_id": "d"})


@pytest.mark.parametrize(("text", "arguments"), [('{"a": [1]}', {"a": [1]}), ("[1]", None)])
def test_arguments_that_nobody_asked_for_yet_are_in_its_json(text: str, arguments: Any) -> None:
    asked_for, one, other, another = (FunctionCallContent(name="f", call_id="c", arguments_text=text) for _ in range(4))
    assert asked_for.arguments == arguments
    assert one.model_dump() == asked_for.model_dump()
    assert other.model_dump_json(exclude_none=True) == asked_for.model_dump_json(exclude_none=True)
    messages = TypeAdapter(list[ChatMessage])
    in_a_list, wanted = ([ChatMessage(role="assistant", contents=[each])] for each in (another, asked_for))
    assert messages.dump_json(in_a_list) == messages.dump_json(wanted)


def with_little_stack(job: Callable[[], Any]) -> Any:
    """What the job gives where some 150 frames are left."""

    def down(frames: int) -> Any:
        return job() if frames == 0 else down(frames - 1)

    frame, used = sys._getframe(), 0
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    return down(sys.getrecursionlimit() - used - 150)


@pytest.mark.parametrize("kind", ["result", "arguments"])
def test_what_the_stack_has_no_room_for_is_made_where_it_has(kind: str) -> None:
    levels = 150
    text = '{"a":' * levels + '"}"' + "}" * levels
    call_of_text = FunctionCallContent(name="f", call_id="c", arguments_text=text)
    one = call_of_text if kind == "arguments" else content(result(json.loads(text)))
    with pytest.raises(RecursionError):
        with_little_stack(lambda: getattr(one, kind))
    assert json.dumps(getattr(one, kind), separators=(",", ":")) == text


def test_a_pickled_content_holds_nothing_of_its_message() -> None:
    message = read({"$type": "text", "text": CANARY}, result({"a": 1}))
    assert CANARY.encode() not in pickle.dumps(message.contents[1])


def test_it_is_made_once_and_frozen_through_and_through() -> None:
    one = content(result({"a": [{"b": 1}]}))
    assert one.result is one.result
    assert (type(one.result), type(one.result["a"])) == (FrozenDict, FrozenList)
    with pytest.raises(TypeError, match="model_copy"):
        one.result.clear()
    with pytest.raises(TypeError, match="model_copy"):
        one.result["a"].append(1)
    for set_it in (setattr, object.__setattr__):
        with pytest.raises(TypeError, match="model_copy"):
            set_it(one, "result", 1)


@pytest.mark.parametrize(
    "value",
    [b'{"a":NaN}', b'[{"a":[-Infinity]}]', b'{"a":Infinity,"b":"NaN"}', b'{"a":01}', b'{"a":}', b'{"a":"\xff"}', b"{"],
)
def test_what_is_no_json_is_refused_when_it_is_read(value: bytes) -> None:
    text = b'{"role":"tool","contents":[{"$type":"functionResult","result":%s,"callId":"c"}]}'
    with pytest.raises(DecodeError):
        chat_message.decode(text % value)


def test_a_text_may_speak_of_what_is_no_json() -> None:
    message = read({"$type": "text", "text": "NaN"}, result({"a": "Infinity"}))
    assert message.contents == (*read({"$type": "text", "text": "NaN"}).contents, content(result({"a": "Infinity"})))


def test_numbers_are_those_of_the_text() -> None:
    text = b'{"role":"tool","contents":[{"$type":"functionResult","result":{"n":[1E400,-0.0,18446744073709551617]}}]}'
    one: Any = chat_message.decode(text.replace(b"]}}", b']},"callId":"c"}'))[0].contents[0]
    assert [str(number) for number in one.result["n"]] == ["inf", "-0.0", "18446744073709551617"]


def test_arguments_that_are_no_object_are_read_the_exact_way() -> None:
    assert content(call("[1]")).arguments_text == "[1]"
    assert content(call([1])).raw["arguments"] == [1]


NUMBERS = list(range(50_000))
LARGE = {
    "a result": (chat_message.decode, payload(result([{"n": number} for number in NUMBERS]))),
    "arguments as text": (openai_chat.decode, json.dumps(asked(json.dumps({"xs": NUMBERS}))).encode()),
}


@pytest.mark.parametrize(("decode", "text"), LARGE.values(), ids=LARGE)
def test_what_nobody_asks_for_takes_no_memory(decode: Callable[[bytes], Any], text: bytes) -> None:
    decode(payload(result({})))
    tracemalloc.start()
    try:
        message = decode(text)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < len(text) * 1.1
    assert message


def test_an_object_that_came_as_text_is_made_when_somebody_asks_for_it() -> None:
    (message,) = openai_chat.load(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": [1]}'}}],
        }
    )
    one: Any = message.contents[0]
    assert one == FunctionCallContent(name="f", call_id="c", arguments_text='{"a": [1]}')
    assert one.arguments is one.arguments
    assert type(one.arguments["a"]) is FrozenList


class Own(FunctionResultContent):
    """A content of a class of one's own."""

    note: str = ""


def test_a_class_of_ones_own_takes_its_values_over() -> None:
    assert Own(call_id="c").result is None
    assert Own(call_id="c", result={"a": 1}).result == {"a": 1}
    assert "result" not in vars(FunctionResultContent(call_id="c")).keys() - Own.model_fields.keys()
    assert not hasattr(FunctionResultContent, "result")


@pytest.mark.parametrize("strict", [None, True])
def test_json_read_by_the_model_itself_is_made_at_once_and_checked(strict: bool | None) -> None:
    reader = TypeAdapter(ChatMessage)
    good, context = payload(result({"a": 1})), list[object]()
    assert reader.validate_json(good, strict=strict, context=context) == read(result({"a": 1}))
    assert context == []
    for number in (b"NaN", b"1E400"):
        with pytest.raises(ValueError, match="no JSON"):
            reader.validate_json(good.replace(b"1", number), strict=strict)


def test_an_approved_call_has_its_arguments() -> None:
    request = content({"$type": "toolApprovalRequest", "toolCall": call({"a": 1}), "requestId": "r"})
    wanted = ToolApprovalRequestContent(
        tool_call=FunctionCallContent(name="f", call_id="c", arguments={"a": 1}), request_id="r"
    )
    assert request == wanted
