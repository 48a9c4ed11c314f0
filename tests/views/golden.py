"""What .NET stored of real runs of an agent, as messages."""

import json
from pathlib import Path
from typing import Any

from chathistory_core.messages import ChatMessage, Content

from .messages import call, request, response, result, says, text

FILE = Path(__file__).resolve().parents[1] / "golden" / "runs.jsonl"


def stored_runs() -> list[tuple[str, list[ChatMessage]]]:
    """Each case and its messages."""
    runs = [json.loads(line) for line in FILE.read_text("utf-8").split("\n") if line]
    return [(run["case"], [_message(each) for each in run["stored"]]) for run in runs if run["stored"]]


def _message(told: dict[str, Any]) -> ChatMessage:
    return says(told["role"], *map(_content, told["contents"]))


def _content(told: str) -> Content:
    kind, *rest = told.split(":", 2)
    match kind:
        case "call":
            call_id, _, mark = rest[1].partition(":")
            return call(call_id, executed=mark == "informational")
        case "result":
            return result(*rest)
        case "approval request":
            return request(rest[0], rest[0])
        case "approval response":
            return response(rest[0], rest[0], approved=rest[1] == "True")
    assert kind == "text", told
    return text(":".join(rest))


RUNS = stored_runs()
