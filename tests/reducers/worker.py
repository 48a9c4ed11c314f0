"""A process that loads conversation `k` with a summary: `worker.py URL NAME`, where the model's answer is the name.

It prints "asked" when the model is asked and waits for a line then; last, it prints what a run is shown, as JSON.
"""

import asyncio
import json
import sys
from collections.abc import Sequence

from chathistory_core import ChatMessage, InvokingContext, StoredChatHistoryProvider, open_backend
from chathistory_core.reducers import SummarizingReducer
from chathistory_core.views.windows import Window


async def model(messages: Sequence[ChatMessage]) -> str:
    print("asked", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    return sys.argv[2]


async def main() -> None:
    reducer = SummarizingReducer(model, keep=Window(messages=2), above=Window(messages=4))
    async with open_backend(sys.argv[1]) as backend:
        history = StoredChatHistoryProvider(backend, reducer=reducer)
        shown = await history.invoking(InvokingContext(None, history.session("k"), []))
        print(json.dumps([message.text for message in shown]), flush=True)


asyncio.run(main())
