"""What reducers of others got wrong, by public reports: the cases' own conversations, reduced on every store."""

import json
from pathlib import Path
from typing import Any

import pytest

from chathistory_core import ChatHistoryBackend, StoredChatHistoryProvider
from chathistory_core.messages import (
    ChatMessage,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
)
from chathistory_core.reducers import CountingReducer, Reducer, ReducerPipeline, ToolResultReducer
from chathistory_core.views.pairing import units

from .talk import MakeBackend, Model, reducer, run

CASES = Path(__file__).resolve().parents[2] / "../shared/cases/bugcases.jsonl"

NAMES = ["duplicate-call-ids", "trim-orphan-tool-result", "trim-removes-system"]


def case(name: str) -> dict[str, Any]:
    if not CASES.exists():
        pytest.skip("the cases are not in this checkout")
    found = map(json.loads, CASES.read_text("utf-8").rstrip("\n").split("\n"))
    return next(one for one in found if one["id"] == name)


def message(given: dict[str, Any]) -> ChatMessage:
    return ChatMessage(role=given["role"], contents=[content(one) for one in given["contents"]])


def content(given: dict[str, Any]) -> TextContent | FunctionCallContent | FunctionResultContent:
    match given["type"]:
        case "text":
            return TextContent(text=given["text"])
        case "function_call":
            return FunctionCallContent(call_id=given["call_id"], name=given["name"], arguments_text=given["arguments"])
    return FunctionResultContent(call_id=given["call_id"], result=given["result"])


def reducers(most: int) -> list[Reducer]:
    """What may stand for "at most so many messages"."""
    summarizing = reducer(Model(), keep=most, above=most)
    return [CountingReducer(most), summarizing, ReducerPipeline(ToolResultReducer(keep=1), CountingReducer(most))]


def check(found: dict[str, Any], messages: list[ChatMessage]) -> None:
    match found["check"]:
        case "tool_pairs_ok":
            assert all(unit.complete for unit in units(messages))
        case "max_len":
            assert len(messages) <= found["value"]
        case "len":
            assert len(messages) == found["value"]
        case "first_role":
            assert messages[0].role == found["value"]
        case "result_value":
            results = [
                one.result
                for message in messages
                for one in message.contents
                if isinstance(one, FunctionResultContent) and one.call_id == found["call_id"]
            ]
            assert results == [found["value"]]
        case other:
            pytest.fail(f"no such check: {other}")


@pytest.mark.parametrize("kind", range(3), ids=["counting", "summarizing", "pipeline"])
@pytest.mark.parametrize("name", NAMES)
def test_a_case_of_others_is_reduced_as_it_should_be(make_backend: MakeBackend, name: str, kind: int) -> None:
    steps = case(name)["steps"]
    checks = case(name)["expected"]["checks"]

    async def work(backend: ChatHistoryBackend) -> None:
        plain = StoredChatHistoryProvider(backend)
        session = plain.session("s")
        seen: dict[str, list[ChatMessage]] = {}
        for step in steps:
            if step["op"] == "append":
                async with plain.turn(session, [message(one) for one in step["m"]]):
                    pass
            else:
                most = step.get("max_messages")
                history = plain if most is None else StoredChatHistoryProvider(backend, reducer=reducers(most)[kind])
                before = list(await plain.messages(session))
                async with history.turn(session, [ChatMessage.user("next")]) as turn:
                    seen[step["as"]] = [one.without_source() for one in turn.messages[:-1]]
                    turn.add(ChatMessage.assistant("done"))
                assert (await plain.messages(session))[: len(before)] == tuple(before)
                await plain.set_messages(session, before)
        for one in checks:
            is_summary_beside = kind == 1 and one["check"] == "max_len"
            check({**one, "value": one["value"] + 1} if is_summary_beside else one, seen[one["ref"]])

    run(make_backend, work)


@pytest.mark.skipif(not CASES.exists(), reason="the cases are not in this checkout")
def test_no_case_of_reduction_is_left_out() -> None:
    found = [json.loads(line) for line in CASES.read_text("utf-8").rstrip("\n").split("\n")]
    assert sorted(one["id"] for one in found if any(step["op"] == "reduce" for step in one["steps"])) == NAMES
