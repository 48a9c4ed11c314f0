import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from chathistory_core import ChatHistoryBackend, InvalidKeyError
from chathistory_core.messages import ChatMessage
from chathistory_core.session import AgentSession, StateBag
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_memory import MemoryBackend

STATE_KEY = "RemoteChatHistoryProvider"

Work = Callable[[StoredChatHistoryProvider], Coroutine[Any, Any, None]]


def on(backend: ChatHistoryBackend, work: Work) -> None:
    async def run() -> None:
        async with backend as opened:
            await work(StoredChatHistoryProvider(opened))

    asyncio.run(run())


def sent_in(key: str) -> AgentSession:
    """A session as a client sends it, naming whatever key it likes."""
    return AgentSession.from_json({"stateBag": {STATE_KEY: {"externalConversationKey": key}}})


async def say(history: StoredChatHistoryProvider, key: str, text: str) -> None:
    async with history.turn(history.session(key), [ChatMessage.user(text)]):
        pass


async def said(history: StoredChatHistoryProvider, session: AgentSession) -> Sequence[str]:
    return [message.text for message in await history.messages(session)]


def test_one_key_in_two_scopes_is_two_conversations(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        one, two = history.scoped("tenant", "ann"), history.scoped("tenant", "anna")
        await say(one, "k", "ann's")
        await say(two, "k", "anna's")
        assert await said(one, one.session("k")) == ["ann's"]
        assert await said(two, two.session("k")) == ["anna's"]
        assert [summary.key for summary in await one.summaries()] == ["k"]
        assert not await one.exists("other")

    on(backend, work)


def test_the_session_holds_the_key_inside_the_scope(backend: ChatHistoryBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        user = history.scoped("tenant").scoped("ann")
        session = user.session()
        async with user.turn(session, [ChatMessage.user("q")]):
            pass
        key = user.key_of(session)
        assert session.state.to_json() == {STATE_KEY: {"externalConversationKey": key}}
        assert [summary.key for summary in await history.summaries()] == [f"tenant/ann/{key}"]

    on(backend, work)


@pytest.mark.parametrize(
    "key",
    ["ben/k", "../ben/k", "%2E%2E/ben/k", "/tenant/ben/k", "tenant/ben/k", "..", "ben%2Fk", "%2Fben%2Fk", "k/", "%"],
)
def test_a_session_from_outside_names_no_conversation_outside_its_scope(backend: ChatHistoryBackend, key: str) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        tenant = history.scoped("tenant")
        for provider in history.scoped("other"), tenant, tenant.scoped("ben"), tenant.scoped("ann", "x"):
            await say(provider, "k", "secret")
        attacker = tenant.scoped("ann")
        for provider in attacker, tenant:
            assert await said(provider, sent_in(key)) == []
            assert not await provider.clear(sent_in(key))
            async with provider.turn(sent_in(key), [ChatMessage.user("mine")]):
                pass
            assert await said(provider, sent_in(key)) == ["mine"]
        for provider in history.scoped("other"), tenant, tenant.scoped("ben"), tenant.scoped("ann", "x"):
            assert await said(provider, provider.session("k")) == ["secret"]

    on(backend, work)


def test_keys_of_every_kind_are_listed_as_they_were_given(backend: ChatHistoryBackend) -> None:
    keys = ["a", "a/b", "%2F", "%", "%25", "..", "ключ", "x y", "🙂"]

    async def work(history: StoredChatHistoryProvider) -> None:
        user = history.scoped("ten/ant", "%2F")
        for key in keys:
            await say(user, key, key)
        assert sorted(summary.key for summary in await user.summaries()) == sorted(keys)
        for key in keys:
            assert await said(user, user.session(key)) == [key]
            assert await user.count(key) == 1

    on(backend, work)


@pytest.mark.parametrize("order", ["key", "recent"])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 100])
def test_pages_hold_the_scopes_own_conversations_and_none_of_narrower_ones(order: Any, limit: int) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        tenant = history.scoped("tenant")
        for number in range(5):
            await say(tenant, f"k{number}", "own")
            for user in "a", "k", "z":
                await say(tenant.scoped(f"{user}{number}"), "k", "theirs")
        await say(history.scoped("tenant2"), "k", "theirs")
        whole = [summary.key for summary in await tenant.summaries(order=order)]
        assert sorted(whole) == ["k0", "k1", "k2", "k3", "k4"]
        paged: list[str] = []
        last = None
        while True:
            page = await tenant.summaries(after=last, limit=limit, order=order)
            paged += [summary.key for summary in page]
            assert len(page) <= limit
            if len(page) < limit:
                break
            last = page[-1]
        assert paged == whole
        assert await tenant.summaries(limit=0) == ()

    on(MemoryBackend(), work)


def test_a_scope_is_narrowed_by_parts_that_are_no_keys_of_others() -> None:
    history = StoredChatHistoryProvider(MemoryBackend())
    for parts in ("",), ("a", ""), ("\0",):
        with pytest.raises(InvalidKeyError, match="scope part"):
            history.scoped(*parts)
    with pytest.raises(ValueError, match="part"):
        history.scoped()
    with pytest.raises(InvalidKeyError, match="512"):
        history.scoped("t" * 300).session("k" * 300)


def test_a_narrower_provider_keeps_filters_state_key_and_type() -> None:
    class Own(StoredChatHistoryProvider):
        pass

    narrower = Own(MemoryBackend(), state_key="mine", new_key=lambda session: "made").scoped("tenant")
    assert isinstance(narrower, Own)
    assert narrower.state_keys == ("mine",)
    assert narrower.key_of(AgentSession(state=StateBag({"mine": {"externalConversationKey": "x"}}))) == "x"
