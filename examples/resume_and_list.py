import asyncio
import json

from chathistory_core import AgentSession, ChatMessage, StoredChatHistoryProvider, open_history


async def ask(history: StoredChatHistoryProvider, session: AgentSession, text: str) -> None:
    async with history.turn(session, [ChatMessage.user(text)]) as turn:
        turn.add(ChatMessage.assistant(f"An answer to: {text}"))  # your model


async def first_process() -> str:
    """Begins three conversations; returns the JSON of a session."""
    async with open_history("sqlite:///chat.db") as history:
        for key in ("weather", "news"):
            await ask(history, history.session(key), f"Some {key}, please.")
        session = history.session()  # its key is made by chance, in the first turn
        await ask(history, session, "Tell me a joke.")
        return json.dumps(session.to_json())


async def second_process(kept: str) -> None:
    async with open_history("sqlite:///chat.db") as history:
        # Resume by the session that was kept, as a browser's cookie or an application's database keeps it ...
        session = AgentSession.from_json(json.loads(kept))
        await ask(history, session, "Another one.")
        print("the joke's:", await history.count(session), "messages")

        # ... or by a key that is known. Another key would begin a new conversation, so look first.
        if await history.exists("weather"):
            await ask(history, history.session("weather"), "And tomorrow?")

        # The last two messages, for a page that opens at its end.
        for message in await history.messages(history.session("weather"), limit=2):
            print(f"{message.role}: {message.text}")

        # All conversations, those that were active last first, two a page.
        page = await history.summaries(order="recent", limit=2)
        while page:
            print([(summary.key if len(summary.key) < 32 else "the joke's", summary.record_count) for summary in page])
            page = await history.summaries(order="recent", limit=2, after=page[-1])


if __name__ == "__main__":
    asyncio.run(second_process(asyncio.run(first_process())))
