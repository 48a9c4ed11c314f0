import asyncio

from chathistory_core import ChatMessage, StoredChatHistoryProvider, Window, open_history
from chathistory_core.messages import FunctionCallContent, FunctionResultContent


async def look_up(history: StoredChatHistoryProvider, city: str, weather: str) -> None:
    """A turn with a tool round."""
    call = FunctionCallContent(call_id="call_0", name="weather", arguments={"city": city})
    async with history.turn(history.session("ann"), [ChatMessage.user(f"And in {city}?")]) as turn:
        turn.add(ChatMessage(role="assistant", contents=[call]))
        turn.add(ChatMessage.tool("call_0", weather))
        turn.add(ChatMessage.assistant(f"In {city}: {weather}."))


def told(message: ChatMessage) -> str:
    for content in message.contents:
        if isinstance(content, FunctionCallContent):
            return f"calls {content.name} {content.call_id}"
        if isinstance(content, FunctionResultContent):
            return f"{content.call_id}: {content.result}"
    return message.text


async def main() -> None:
    async with open_history("memory://", window=Window(turns=2), repair="answer") as history:
        session = history.session("ann")
        await history.set_messages(session, [ChatMessage.system("Be brief.")])
        for city, weather in [("Rome", "sunny"), ("Oslo", "snow"), ("Bath", "rain")]:
            await look_up(history, city, weather)

        # A process that died behind this turn's call left it without a result.
        call = FunctionCallContent(call_id="call_0", name="weather", arguments={"city": "Lima"})
        async with history.turn(session, [ChatMessage.user("And in Lima?")]) as turn:
            turn.add(ChatMessage(role="assistant", contents=[call]))

        async with history.turn(session, [ChatMessage.user("Where was it best?")]) as turn:
            for message in turn.messages:
                print(f"{message.role}: {told(message)}")
            assert turn.view is not None
            print(f"left out: {turn.view.left_out} of {turn.view.records} records")
            turn.add(ChatMessage.assistant("I only know of Bath."))

        print("stored:", await history.count(session))


if __name__ == "__main__":
    asyncio.run(main())
