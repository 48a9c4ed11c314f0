"""The provider of the article, with the service."""

import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import httpx
import pytest

from chathistory_core import (
    AgentSession,
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryProvider,
    ChatMessage,
    ConfigurationError,
    InvokedContext,
    InvokingContext,
    StoredChatHistoryProvider,
    blocking,
    open_history,
)
from chathistory_core.formats import openai_chat
from chathistory_core.testing import Proxy
from chathistory_http import HTTPBackend, RemoteChatHistoryProvider

TOKEN = "a-token-of-enough-characters-to-be-one"
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}


class Running(Protocol):
    url: str
    address: tuple[str, int]

    def kill(self) -> None: ...

    def stop(self) -> None: ...


Start = Callable[..., Running]


async def ask(history: StoredChatHistoryProvider, session: AgentSession, text: str, *, with_tool: bool = False) -> None:
    async with history.turn(session, [ChatMessage.user(text)]) as turn:
        if with_tool:
            turn.add(openai_chat.load({"role": "assistant", "content": None, "tool_calls": [CALL]}))
            turn.add(ChatMessage.tool("call_1", "12:00"))
        turn.add(openai_chat.load({"role": "assistant", "content": f"An answer to: {text}"}))


async def scenario(history: RemoteChatHistoryProvider) -> tuple[list[int], list[str]]:
    """The article's run: how many messages were counted on the way, and the keys that were there before."""
    counts = []
    async with history:
        before = [summary.key for summary in await history.get_conversation_summaries()]
        one, other = history.session(), history.session()
        for session, with_tool in (one, True), (one, True), (one, False), (other, True):
            await ask(history, session, "What time is it?", with_tool=with_tool)
            key = history.try_get_external_conversation_key(session)
            assert key is not None
            assert await history.session_exists(key)
            counts.append(await history.get_stored_message_count(key))
    return counts, before


@pytest.fixture
def emptied(sqlite_service: Running) -> Running:
    with blocking.open_backend(sqlite_service.url) as backend:
        blocking.erase(backend, "", everything=True)
    return sqlite_service


@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_article_s_run_gives_its_counts_and_its_keys_are_there_later(
    start_service: Start, tmp_path: Path, token: str | None
) -> None:
    url = f"sqlite:///{tmp_path.as_posix()}/history.db"
    variables = {} if token is None else {"CHATHISTORY_SERVICE_TOKEN": token}
    running = start_service(url, **variables)
    counts, before = asyncio.run(scenario(RemoteChatHistoryProvider(running.url, token=token)))
    assert (counts, before) == ([4, 8, 10, 4], [])
    counts, before = asyncio.run(scenario(RemoteChatHistoryProvider(running.url, token=token)))
    assert counts == [4, 8, 10, 4]
    assert len(before) == 2
    running.stop()
    running = start_service(url, **variables)
    _, kept = asyncio.run(scenario(RemoteChatHistoryProvider(running.url, token=token)))
    assert len(kept) == 4
    assert set(before) < set(kept)
    if token is not None:
        for wrong in None, f"{token}-but-wrong":
            with pytest.raises(ConfigurationError, match="token") as caught:
                asyncio.run(scenario(RemoteChatHistoryProvider(running.url, token=wrong)))
            assert token not in str(caught.value)


def test_a_turn_is_two_requests_and_one_that_is_repeated_is_stored_once(
    emptied: Running, proxy_of: Callable[[Running], Proxy]
) -> None:
    async def main() -> None:
        proxy = proxy_of(emptied)
        async with RemoteChatHistoryProvider("http://{}:{}".format(*proxy.address)) as history:
            session = history.session("ann")
            before = proxy.traffic
            await ask(history, session, "What time is it?", with_tool=True)
            assert proxy.traffic.since(before).round_trips == 2
            context = InvokedContext.succeeded(None, session, [ChatMessage.user("lost")], [])
            proxy.break_next("reply")
            await history.invoked(context)
            assert proxy.mend()
            await history.invoked(context)
            assert await history.get_stored_message_count("ann") == 5

    asyncio.run(main())


def test_what_waits_in_the_outbox_is_stored_when_the_block_is_left(
    emptied: Running, proxy_of: Callable[[Running], Proxy]
) -> None:
    async def main() -> None:
        proxy = proxy_of(emptied)
        url = "http://{}:{}".format(*proxy.address)
        async with RemoteChatHistoryProvider(url, on_save_error="outbox") as history:
            with proxy.down():
                await history.invoked(
                    InvokedContext.succeeded(None, history.session("ann"), [ChatMessage.user("a")], [])
                )
            assert len(history.unsaved) == 1
        async with RemoteChatHistoryProvider(emptied.url) as history:
            assert await history.get_stored_message_count("ann") == 1
        history = RemoteChatHistoryProvider(url, on_save_error="outbox")
        await history.__aenter__()
        context = InvokedContext.succeeded(None, history.session("ann"), [ChatMessage.user("b")], [])
        with proxy.down():
            await history.invoked(context)
            with pytest.raises(BackendUnavailableError) as caught:
                await history.__aexit__(None, None, None)
        assert [each.turn_id for each in caught.value.unsaved] == [context.turn_id]

    asyncio.run(main())


def test_its_messages_and_its_sessions_are_those_of_the_article(emptied: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(emptied.url) as history:
            session = AgentSession()
            assert history.try_get_external_conversation_key(session) is None
            assert list(await history.get_messages(session)) == []
            await ask(history, session, "Hello")
            key = history.try_get_external_conversation_key(session)
            assert key is not None
            assert len(key) == 32
            assert session.to_json()["stateBag"] == {"RemoteChatHistoryProvider": {"externalConversationKey": key}}
            given = await history.invoking(InvokingContext(None, session, []))
            assert {message.source.id for message in given} == {"chathistory_http.RemoteChatHistoryProvider"}
            other = AgentSession()
            history.attach_to_session(other, key)
            assert list(await history.get_messages(other)) == list(await history.get_messages(session))
            await history.set_messages(other, [ChatMessage.user("only this")])
            assert [message.text for message in await history.get_messages(session)] == ["only this"]

    asyncio.run(main())


def test_the_same_conversation_is_reached_by_every_face(start_service: Start, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path.as_posix()}/history.db"
    running = start_service(url)

    async def main() -> None:
        async with RemoteChatHistoryProvider(running.url) as history:
            await ask(history, history.session("ann"), "one")
        async with open_history(running.url) as other:
            await ask(other, other.session("ann"), "two")

    asyncio.run(main())
    with blocking.open_history(running.url) as history:
        with history.turn(history.session("ann"), [ChatMessage.user("three")]) as turn:
            turn.add(ChatMessage.assistant("An answer to: three"))
        assert [summary.record_count for summary in history.summaries()] == [6]
    with blocking.open_history(url) as history:
        texts = [message.text for message in history.messages(history.session("ann")) if message.role == "user"]
    assert texts == ["one", "two", "three"]
    told = httpx.get(f"{running.url}/chat-history/ann").json()
    assert [message["contents"][0]["text"] for message in told[::2]] == texts


def test_a_scope_lists_and_reaches_its_own_alone(emptied: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(emptied.url, scope=["tenant"]) as history:
            ann, bob = history.scoped("ann"), history.scoped("bob")
            await ask(ann, ann.session("k/1"), "Hello")
            assert [summary.key for summary in await ann.get_conversation_summaries()] == ["k/1"]
            assert not await bob.session_exists("k/1")

    asyncio.run(main())


def test_a_borrowed_client_is_left_open(emptied: Running) -> None:
    async def main() -> None:
        async with httpx.AsyncClient(base_url=emptied.url) as client:
            async with RemoteChatHistoryProvider(client=client) as history:
                await ask(history, history.session("ann"), "Hello")
            assert not client.is_closed
            with pytest.raises(TypeError, match="base_url"):
                RemoteChatHistoryProvider(emptied.url, client=client)

    asyncio.run(main())


def test_it_is_used_inside_its_block_and_once_at_a_time(emptied: Running) -> None:
    async def main() -> None:
        history = RemoteChatHistoryProvider(emptied.url)
        session = history.session("ann")
        for _ in range(2):
            with pytest.raises(BackendStateError):
                await ask(history, session, "Hello")
            async with history as opened:
                assert opened is history
                with pytest.raises(BackendStateError):
                    await history.__aenter__()
                await ask(history, session, "Hello")
        assert history.get_service(HTTPBackend) is not None
        assert history.get_service(ChatHistoryProvider) is history

    asyncio.run(main())


def test_a_url_that_cannot_be_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in "ftp://secret", "http://user:secret@host":
        with pytest.raises(ConfigurationError, match="`url` should") as caught:
            RemoteChatHistoryProvider(url)
        assert "secret" not in str(caught.value)
    with pytest.raises(ConfigurationError, match="`token` should"):
        RemoteChatHistoryProvider("http://host", token="two words")


def test_without_a_url_the_environment_says_where(emptied: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_HISTORY_SERVICE_URL", emptied.url)
    counts, _ = asyncio.run(scenario(RemoteChatHistoryProvider()))
    assert counts == [4, 8, 10, 4]


def test_it_takes_all_that_the_provider_takes() -> None:
    def keywords(kind: type[StoredChatHistoryProvider]) -> list[tuple[str, object, str]]:
        parameters = inspect.signature(kind).parameters.values()
        return [
            (each.name, each.default, str(each.annotation)) for each in parameters if each.kind == each.KEYWORD_ONLY
        ]

    assert keywords(RemoteChatHistoryProvider)[2:] == keywords(StoredChatHistoryProvider)


def test_a_session_s_json_is_small() -> None:
    history = RemoteChatHistoryProvider("http://host")
    assert len(json.dumps(history.session("ann").to_json())) < 200
