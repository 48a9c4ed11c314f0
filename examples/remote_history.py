"""The run of the article against a chat history service: at CHAT_HISTORY_SERVICE_URL, else at http://localhost:5000."""

import asyncio

from chathistory_core import AgentSession, ChatMessage
from chathistory_core.formats import openai_chat
from chathistory_http import RemoteChatHistoryProvider

CALL = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}


async def ask(history: RemoteChatHistoryProvider, session: AgentSession, question: str) -> int:
    """One turn, stored in one request; how many messages the conversation has then."""
    async with history.turn(session, [ChatMessage.user(question)]) as turn:
        if "time is it" in question:  # your model asks for a tool, and you call it
            turn.add(openai_chat.load({"role": "assistant", "content": None, "tool_calls": [CALL]}))
            turn.add(ChatMessage.tool("call_1", "12:00"))
        turn.add(openai_chat.load({"role": "assistant", "content": "An answer."}))
    return await history.count(session)


async def main() -> None:
    async with RemoteChatHistoryProvider() as history:
        found = await history.get_conversation_summaries()
        print("found:", sorted(summary.record_count for summary in found))

        first, second = history.session(), history.session()
        counts = [await ask(history, first, "What time is it?")]
        counts.append(await ask(history, first, "And now, what time is it?"))
        counts.append(await ask(history, first, "How much time has passed?"))
        print("first session:", counts)
        print("second session:", [await ask(history, second, "What time is it?")])

        # A session holds a key and nothing else: whoever knows the key goes on.
        key = history.try_get_external_conversation_key(first)
        assert key is not None
        assert await history.session_exists(key)
        resumed = AgentSession()
        history.attach_to_session(resumed, key)
        print("resumed:", len(await history.get_messages(resumed)), "messages")


if __name__ == "__main__":
    asyncio.run(main())
