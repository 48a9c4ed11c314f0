import asyncio

from chathistory_core import ChatMessage, open_history


async def main() -> None:
    async with open_history("sqlite:///first.db") as history:
        session = history.session("ann")
        async with history.turn(session, [ChatMessage.user("Good morning!")]) as turn:
            known = len(turn.messages) > 1  # the history stands before the request
            turn.add(ChatMessage.assistant("Good to see you again." if known else "Nice to meet you."))  # your model

        for message in await history.messages(session):
            print(f"{message.role}: {message.text}")


asyncio.run(main())
