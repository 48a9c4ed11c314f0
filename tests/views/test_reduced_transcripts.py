"""Real conversations: every beginning of each, through every reducer, is one that OpenAI's API takes."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from chathistory_core.formats import openai_chat
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import (
    CountingReducer,
    Reducer,
    ReducerPipeline,
    SummarizingReducer,
    ToolResultReducer,
    WindowReducer,
)
from chathistory_core.views.repair import mended
from chathistory_core.views.windows import Window

from .openai_rules import refused
from .test_transcripts import DATA, LONG, conversations, files, sent


async def model(messages: Sequence[ChatMessage]) -> str:
    """Takes what it is given only if the API would."""
    problems = refused(openai_chat.dump(messages))
    assert problems == []
    assert all(message.role in {"user", "assistant", "system", "developer"} for message in messages)
    return f"{len(messages)} messages"


def summarizing(keep: Window, above: Window | None = None) -> Reducer:
    return SummarizingReducer(model, keep=keep, above=above)


REDUCERS: list[Reducer] = [
    *(CountingReducer(count) for count in (1, 3, 8)),
    *(ToolResultReducer(keep=keep) for keep in (0, 1, 4)),
    WindowReducer(Window(turns=2, tokens=800)),
    summarizing(Window(messages=1)),
    summarizing(Window(messages=6), Window(messages=7)),
    summarizing(Window(turns=1), Window(tokens=1_000)),
    ReducerPipeline(ToolResultReducer(keep=1), summarizing(Window(turns=2)), CountingReducer(5)),
]


@pytest.mark.skipif(not DATA.exists(), reason="the conversations are not in this checkout")
@pytest.mark.parametrize("path", files(), ids=[path.name for path in files()])
def test_every_beginning_through_every_reducer_is_taken(path: Path) -> None:
    found = [one for one in conversations(json.loads(path.read_text("utf-8"))) if len(one) > 1]
    assert found
    chance = Random(path.name)
    for given in found:
        messages = openai_chat.load([sent(message) for message in given])
        ends = range(1, len(messages) + 1)
        for end in ends if LONG else sorted(chance.sample(ends, min(2, len(ends)))):
            beginning = mended(messages[:end], "drop").messages
            for reducer in REDUCERS if LONG else chance.sample(REDUCERS, 4):
                check(beginning, reducer)


def check(messages: Sequence[ChatMessage], reducer: Reducer) -> None:
    if not messages:
        return
    view = asyncio.run(reducer.reduce(messages))
    assert refused(openai_chat.dump(view)) == []
    again = asyncio.run(reducer.reduce(view))
    assert [id(message) for message in again] == [id(message) for message in view]
