"""The checker that views are held to refuses what the API refuses."""

from typing import Any

import pytest

from .openai_rules import refused

USER: dict[str, Any] = {"role": "user", "content": "?"}
SAID: dict[str, Any] = {"role": "assistant", "content": "!"}


def calls(*ids: str) -> dict[str, Any]:
    made = [{"id": each, "type": "function", "function": {"name": "f", "arguments": "{}"}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(call_id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": "done"}


@pytest.mark.parametrize(
    "messages",
    [
        [USER],
        [{"role": "developer", "content": [{"type": "text", "text": "rules"}]}, USER, SAID],
        [USER, calls("a"), result("a"), SAID],
        [calls("a", "b"), result("b"), result("a")],
        [calls("a"), result("a"), calls("a"), result("a")],
        [USER, {"role": "assistant", "content": None, "refusal": "no"}],
        [USER, {"role": "assistant", "audio": {"id": "x"}}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "https://x"}}], "name": "ann"}],
    ],
)
def test_what_the_api_takes_passes(messages: list[dict[str, Any]]) -> None:
    assert refused(messages) == []


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], "there is none"),
        ([result("a")], "no open call"),
        ([USER, result("a")], "no open call"),
        ([calls("a"), result("a"), result("a")], "no open call"),
        ([calls("a"), result("b")], "no open call"),
        ([calls("a"), result("a"), SAID, result("a")], "no open call"),
        ([calls("a")], "are missing"),
        ([calls("a", "b"), result("a")], "are missing"),
        ([calls("a"), USER, result("a")], "stands before"),
        ([calls("a"), calls("b"), result("a"), result("b")], "stands before"),
        ([calls("a", "a"), result("a"), result("a")], "two calls of one id"),
        ([calls("")], "without an id"),
        ([{**calls("a"), "tool_calls": []}], "no list of calls"),
        ([{**calls("a"), "tool_calls": None}], "no list of calls"),
        ([{"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {}}]}], "neither of"),
        ([{"role": "assistant", "content": None}], "says nothing"),
        ([{"role": "user"}], "no content"),
        ([{"role": "system", "content": []}], "neither text nor parts"),
        ([{"role": "system", "content": [{"type": "image_url", "image_url": {}}]}], "part of type"),
        ([{"role": "critic", "content": "x"}], "has the role"),
        ([{**USER, "name": "a b"}], "has the name"),
        ([calls("a"), {"role": "tool", "content": "x"}], "no tool_call_id"),
    ],
)
def test_what_the_api_refuses_does_not(messages: list[dict[str, Any]], reason: str) -> None:
    assert any(reason in each for each in refused(messages)), refused(messages)
