import asyncio

from chathistory_core import (
    ChatHistoryBackend,
    ChatMessage,
    StoredChatHistoryProvider,
    erase,
    open_backend,
    scope,
)


async def ask(history: StoredChatHistoryProvider, key: str, text: str) -> None:
    async with history.turn(history.session(key), [ChatMessage.user(text)]) as turn:
        turn.add(ChatMessage.assistant("Yes."))  # your model


async def keys(history: StoredChatHistoryProvider) -> list[str]:
    return [summary.key for summary in await history.summaries()]


async def forget_tenant(backend: ChatHistoryBackend, tenant: str) -> int:
    """How many conversations there were, of all of the tenant's users."""
    return await erase(backend, scope(tenant))


async def main() -> None:
    async with open_backend("memory://") as backend:
        acme = StoredChatHistoryProvider(backend, scope=("acme",))
        ann, bob = acme.scoped("ann"), acme.scoped("bob")

        await ask(ann, "holidays", "May I take Friday off?")
        await ask(bob, "holidays", "Who is away on Friday?")
        print("ann:", await keys(ann))

        # Whatever key a client sends, it stays inside the scope.
        await ask(ann, "../bob/holidays", "What does Bob ask?")
        print("ann:", await keys(ann))
        print("bob:", await keys(bob), "with", await bob.count("holidays"), "messages")

        print("in the store:", [summary.key for summary in await backend.summaries()])
        print("forgotten:", await forget_tenant(backend, "acme"))


if __name__ == "__main__":
    asyncio.run(main())
