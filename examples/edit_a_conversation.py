import asyncio

from chathistory_core import (
    AgentSession,
    ChatMessage,
    RevisionConflictError,
    StoredChatHistoryProvider,
    open_history,
)
from chathistory_core.messages import TextContent


def redacted(message: ChatMessage, word: str) -> ChatMessage:
    """The message without the word; itself where the word is not in it."""
    if word not in message.text:
        return message
    contents = [
        content.model_copy(update={"text": content.text.replace(word, "[…]")})
        if isinstance(content, TextContent)
        else content
        for content in message.contents
    ]
    return message.model_copy(update={"contents": contents})


async def redact(history: StoredChatHistoryProvider, session: AgentSession, word: str) -> None:
    while True:
        read = await history.messages(session)
        edited = [redacted(message, word) for message in read]
        try:
            await history.set_messages(session, edited, expected_revision=read.revision)
        except RevisionConflictError:
            continue  # somebody wrote meanwhile: read it again
        return


async def main() -> None:
    async with open_history("memory://") as history:
        session = history.session("ann")
        async with history.turn(session, [ChatMessage.user("My PIN is 4711.")]) as turn:
            turn.add(ChatMessage.assistant("I did not need to know that."))

        read = await history.messages(session)
        async with history.turn(session, [ChatMessage.user("It is still 4711.")]):
            pass  # another tab of the same user
        try:
            await history.set_messages(session, read[:1], expected_revision=read.revision)
        except RevisionConflictError as error:
            print(error)

        await redact(history, session, "4711")
        for message in await history.messages(session):
            print(f"{message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
