import asyncio
from datetime import timedelta

from chathistory_core import ChatMessage, StoredChatHistoryProvider, open_history
from chathistory_sqlite.plugin import SQLiteOptions


async def note(history: StoredChatHistoryProvider, text: str) -> None:
    async with history.turn(history.session("notes"), [ChatMessage.user(text)]):
        pass  # no answer: the request alone is stored
    print(await history.count("notes"), "messages")


async def main() -> None:
    # a URL; its query holds options
    async with open_history("sqlite:///notes.db?ttl=30d") as history:
        await note(history, "a URL")

    # a name, and options beside it
    async with open_history("sqlite", options={"url": "sqlite:///notes.db", "ttl": "30d"}) as history:
        await note(history, "a name")

    # the options object of a backend, which a type checker knows
    async with open_history(SQLiteOptions(url="sqlite:///notes.db", ttl=timedelta(days=30))) as history:
        await note(history, "an object")

    # nothing: what the environment or chathistory.toml says
    async with open_history() as history:
        await note(history, "configured")


if __name__ == "__main__":
    asyncio.run(main())
