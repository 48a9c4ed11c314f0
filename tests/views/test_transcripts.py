"""Real conversations: every beginning of each, through every window, is one that OpenAI's API takes."""

import json
import os
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from random import Random
from typing import Any, Literal, TypeVar

import pytest

from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage, ToolApprovalRequestContent, ToolApprovalResponseContent
from chathistory_core.views.repair import mended
from chathistory_core.views.windows import Window

from .golden import RUNS
from .openai_rules import refused

DATA = Path(__file__).resolve().parents[2] / "../shared/data/openai_chat"
LONG = os.environ.get("LONG") == "1"
REPAIRS: tuple[Literal["drop", "answer"], ...] = ("drop", "answer")

Conversation = list[dict[str, Any]]
Kind = TypeVar("Kind")


def conversations(value: Any) -> Iterator[Conversation]:
    """Every list of nothing but messages, at any depth; also in JSON that is kept as text."""
    if isinstance(value, list) and value and all(isinstance(one, dict) and "role" in one for one in value):
        yield value
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from conversations(item)
    elif isinstance(value, str) and value.startswith("{"):
        try:
            yield from conversations(json.loads(value))
        except ValueError:
            return


def sent(message: dict[str, Any]) -> dict[str, Any]:
    """As SWE-agent sends it: its log has the ids that a result answers in a list."""
    ids = message.get("tool_call_ids")
    return {**message, "tool_call_id": ids[0]} if ids else message


def files() -> list[Path]:
    return sorted(DATA.glob("*.json")) if DATA.exists() else []


NEXT = ChatMessage.user("Go on.")

WINDOWS = [
    *(Window(messages=limit) for limit in (1, 2, 3, 4, 5, 7, 10, 20, 50)),
    *(Window(turns=limit) for limit in (1, 2, 3, 5)),
    *(Window(tokens=limit) for limit in (50, 500, 2_000, 8_000)),
    *(Window(bytes=limit) for limit in (200, 4_000, 30_000)),
    Window(messages=6, turns=2),
    Window(turns=3, tokens=1_500),
]


def checked(found: Sequence[ChatMessage], *following: ChatMessage) -> list[str]:
    return refused(openai_chat.dump([*found, *following]))


@pytest.mark.skipif(not DATA.exists(), reason="the conversations are not in this checkout")
@pytest.mark.parametrize("path", files(), ids=[path.name for path in files()])
def test_every_beginning_through_every_window_is_taken(path: Path) -> None:
    found = [one for one in conversations(json.loads(path.read_text("utf-8"))) if len(one) > 1]
    assert found
    chance = Random(path.name)
    for given in found:
        messages = openai_chat.load([sent(message) for message in given])
        assert checked(messages) == []
        ends = range(1, len(messages) + 1)
        for end in ends if LONG else sorted(chance.sample(ends, min(4, len(ends)))):
            for window in WINDOWS if LONG else chance.sample(WINDOWS, 6):
                check(messages, end, window)


@pytest.mark.parametrize(("case", "messages"), RUNS, ids=[case for case, _ in RUNS])
def test_every_beginning_of_a_dotnet_run_through_every_window_is_taken(case: str, messages: list[ChatMessage]) -> None:
    for end in range(1, len(messages) + 1):
        for window in WINDOWS:
            check(messages, end, window)
            shown = window.select(messages[:end]).messages
            asked = [content.request_id for content in contents(shown, ToolApprovalRequestContent)]
            assert all(one.request_id in asked for one in contents(shown, ToolApprovalResponseContent))


def contents(messages: Sequence[ChatMessage], kind: type[Kind]) -> list[Kind]:
    return [content for message in messages for content in message.contents if isinstance(content, kind)]


def check(messages: Sequence[ChatMessage], end: int, window: Window) -> None:
    """The beginning as it is shown to a run that goes on otherwise, and to one that goes on with the results."""
    beginning = messages[:end]
    for how in REPAIRS:
        shown = window.select(mended(beginning, how, following=[NEXT]).messages).messages
        assert checked(shown, NEXT) == [], (end, window, how)
        assert window.select(shown).messages == shown
    rest = [*takewhile(lambda message: message.role == "tool", messages[end:]), NEXT]
    shown = window.select(mended(beginning, "drop", following=rest).messages).messages
    assert checked(shown, *rest) == [], (end, window)
    if not checked(beginning, *rest):
        assert checked(window.select(beginning).messages, *rest) == [], (end, window)
