"""The guide's code runs as it stands."""

import asyncio
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/when-a-run-fails.md"


def test_the_code_of_the_page_runs_and_does_what_it_says(faulty: Any) -> None:
    names: dict[str, Any] = {"asyncio": asyncio}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
        exec(block, names)

    from chathistory_core import StoredChatHistoryProvider

    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            later: list[Any] = []
            backend.down = {"append"}
            await names["save_later"](history, later)
            backend.down = set()
            await names["save_now"](history, later)
            assert [message.text for message in await history.messages(history.session("ann"))] == ["?", "!"]

    asyncio.run(run())
