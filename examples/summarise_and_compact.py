import asyncio
from collections.abc import Sequence

from chathistory_core import ChatMessage, StoredChatHistoryProvider, Window, open_history
from chathistory_core.reducers import SummarizingReducer

CITIES = ["Rome", "Oslo", "Bath", "Lima"]


async def summarise(messages: Sequence[ChatMessage]) -> str:
    """Stands for a model: it is given what to summarise, and last the prompt."""
    print(f"(the model is asked about {len(messages) - 1} messages)")
    return "; ".join(message.text.removeprefix("[Summary]\n") for message in messages[:-1] if message.role != "user")


async def ask(history: StoredChatHistoryProvider, city: str) -> None:
    async with history.turn(history.session("ann"), [ChatMessage.user(f"And in {city}?")]) as turn:
        print(f"{city}: the model sees {len(turn.messages)} messages")
        turn.add(ChatMessage.assistant(f"It rains in {city}"))


async def main() -> None:
    reducer = SummarizingReducer(summarise, keep=Window(turns=1), above=Window(turns=2))
    async with open_history("memory://", reducer=reducer) as history:
        session = history.session("ann")
        for city in CITIES:
            await ask(history, city)
        async with history.turn(session, [ChatMessage.user("So?")]) as turn:
            for message in turn.messages:
                print(f"  {message.role}: {message.text!r}")
            turn.add(ChatMessage.assistant("Take an umbrella."))

        done = await history.compact(session, reducer)
        print(f"compacted: {done.before} messages, now {done.after}; a copy is at {done.archive!r}")
        for summary in await history.summaries():
            print(f"  {summary.key}: {summary.record_count} records")


if __name__ == "__main__":
    asyncio.run(main())
