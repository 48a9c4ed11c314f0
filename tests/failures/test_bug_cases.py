"""Public reports of runs that were cancelled or failed, step by step: the same on every store, under every policy."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from chathistory_core import ChatHistoryBackend, StoredChatHistoryProvider, is_incomplete
from chathistory_core.messages import (
    ChatMessage,
    Content,
    FunctionCallContent,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)

CASES = Path(__file__).resolve().parents[2] / "../shared/cases/bugcases.jsonl"

pytestmark = pytest.mark.skipif(not CASES.exists(), reason="the cases are not in this checkout")


def case(name: str) -> Any:
    lines = CASES.read_text("utf-8").rstrip("\n").split("\n")
    return next(each for each in map(json.loads, lines) if each["id"] == name)


def message(value: Any) -> ChatMessage:
    return ChatMessage(role=value["role"], contents=[content(each) for each in value["contents"]])


def content(value: Any) -> Content:
    match value["type"]:
        case "text":
            return TextContent(text=value["text"])
        case "function_call":
            return FunctionCallContent(
                call_id=value["call_id"], name=value["name"], arguments=json.loads(value["arguments"])
            )
        case "function_approval_request":
            return ToolApprovalRequestContent(request_id=value["id"], tool_call=call(value))
        case "function_approval_response":
            return ToolApprovalResponseContent(
                request_id=value["id"], approved=value["approved"], tool_call=call(value)
            )
    raise AssertionError(value["type"])


def call(value: Any) -> FunctionCallContent:
    found = content(value["function_call"])
    assert isinstance(found, FunctionCallContent)
    return found


class Steps:
    """Does the steps of a case, each part between two restarts in a loop of its own."""

    def __init__(self, open_store: Callable[[], ChatHistoryBackend], policy: Any) -> None:
        self.read: dict[str, Sequence[ChatMessage]] = {}
        self._open_store = open_store
        self._policy = policy

    def run(self, steps: list[Any]) -> None:
        parts: list[list[Any]] = [[]]
        for step in steps:
            if step["op"] == "restart":
                parts.append([])
            else:
                parts[-1].append(step)
        for part in parts:
            asyncio.run(self._part(part))

    async def _part(self, steps: list[Any]) -> None:
        async with self._open_store() as backend:
            history = StoredChatHistoryProvider(backend, on_failure=self._policy)
            for step in steps:
                session = history.session(step["s"])
                if step["op"] == "get":
                    self.read[step["as"]] = await history.messages(session)
                else:
                    waits = asyncio.Event()
                    task = asyncio.create_task(self._turn(history, step, waits))
                    if step.get("error") == "cancelled":
                        await waits.wait()
                        task.cancel()
                    [end] = await asyncio.gather(task, return_exceptions=True)
                    expected = {None: type(None), "cancelled": asyncio.CancelledError, "model_error": LookupError}
                    assert isinstance(end, expected[step.get("error")]), repr(end)

    async def _turn(self, history: StoredChatHistoryProvider, step: Any, waits: asyncio.Event) -> None:
        session, request = history.session(step["s"]), [message(each) for each in step["request"]]
        async with history.turn(session, request) as turn:
            turn.add(message(each) for each in step["response"] or step.get("partial") or ())
            if step.get("error") == "cancelled":
                waits.set()
                await asyncio.Event().wait()
            if step.get("error") == "model_error":
                raise LookupError


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        ("discard", []),
        ("request", [("long?", False)]),
        ("partial", [("long?", False), ("Once upon", True)]),
    ],
)
def test_stream_aborted(open_store: Any, policy: str, kept: list[Any]) -> None:
    steps = Steps(open_store, policy)
    steps.run(case("stream-aborted")["steps"])
    first, then = ([(each.text, is_incomplete(each)) for each in steps.read[name]] for name in ("r", "r2"))
    assert first == kept
    assert then == [*kept, ("again", False), ("ok", False)]


@pytest.mark.parametrize("policy", ["discard", "request", "partial"])
def test_approval_pending_survives(open_store: Any, policy: str) -> None:
    steps = Steps(open_store, policy)
    found = case("approval-pending-survives")
    steps.run(found["steps"])
    [_, request] = steps.read["pending"]
    assert request == message(found["steps"][0]["response"][0])
    assert [each.text for each in steps.read["r"]][-2:] == ["never mind", "ok"]
    answers = [each for each in steps.read["r"] if isinstance(each.contents[0], ToolApprovalResponseContent)]
    assert len(answers) == (0 if policy == "discard" else 1)
