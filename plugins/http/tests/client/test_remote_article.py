"""The provider with a server that has only the article's six routes."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from chathistory_core import (
    AgentSession,
    BackendError,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatMessage,
    ConfigurationError,
    Conversation,
    CorruptRecordError,
    InvalidKeyError,
    InvokedContext,
    Record,
    RevisionConflictError,
    StoredChatHistoryProvider,
    TurnConflictError,
    read_on,
)
from chathistory_core.formats import openai_chat
from chathistory_core.testing import Proxy
from chathistory_http import HTTPOptions, RemoteChatHistoryProvider

GOLDEN = Path(__file__).parents[1] / "golden"
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}


class Running(Protocol):
    url: str
    address: tuple[str, int]

    def asked(self) -> list[str]: ...

    def kill(self) -> None: ...


def exchanges(name: str) -> Iterator[dict[str, Any]]:
    for line in (GOLDEN / name).read_text("utf-8").splitlines():
        exchange = json.loads(line)
        if "method" in exchange:
            yield exchange


async def ask(history: StoredChatHistoryProvider, session: AgentSession, text: str, *, with_tool: bool = False) -> None:
    async with history.turn(session, [ChatMessage.user(text)]) as turn:
        if with_tool:
            turn.add(openai_chat.load({"role": "assistant", "content": None, "tool_calls": [CALL]}))
            turn.add(ChatMessage.tool("call_1", "12:00"))
        turn.add(openai_chat.load({"role": "assistant", "content": f"An answer to: {text}"}))


async def say(history: RemoteChatHistoryProvider, key: str, text: str) -> None:
    context = InvokedContext.succeeded(None, history.session(key), [ChatMessage.user(text)], [])
    await history.invoked(context)


def texts(messages: "list[ChatMessage] | object") -> list[str]:
    assert not isinstance(messages, str)
    return [message.text for message in messages]  # type: ignore[attr-defined]  # any sequence of messages


async def scenario(url: str) -> tuple[list[int], list[str]]:
    """The article's run: how many messages were counted on the way, and the keys that were there before."""
    counts = []
    async with RemoteChatHistoryProvider(url) as history:
        before = [summary.key for summary in await history.get_conversation_summaries()]
        one, other = history.session(), history.session()
        for session, with_tool in (one, True), (one, True), (one, False), (other, True):
            await ask(history, session, "What time is it?", with_tool=with_tool)
            key = history.try_get_external_conversation_key(session)
            assert key is not None
            counts.append(await history.get_stored_message_count(key))
    return counts, before


DIFFERENT = {
    "POST charset utf-16": "the file does not hold its bytes",
    "root": "it says in its own words what it is",
    "key dot dot encoded GET": "as above",
    "GET base content": "it keeps 2.50, and here that is 2.5",
    "list trailing slash": "the order is that of a culture, and one conversation less is there, as of the first",
    "list order": "as above",
}


def test_the_server_of_these_tests_answers_as_the_article_s_own_did(article_server: Running) -> None:
    count = 0
    with httpx.Client(base_url=article_server.url) as client:
        for asked in (*exchanges("exchange.jsonl"), *exchanges("probes.jsonl")):
            given = {name: text for name, text in asked["request_headers"].items() if name == "Content-Type"}
            body = asked["request_body"].encode("latin-1" if asked.get("name") == "POST bad UTF-8" else "utf-8")
            answer = client.request(asked["method"], asked["path"], headers=given, content=body)
            if asked.get("name") in DIFFERENT:
                continue
            headers = asked["response_headers"]
            names = ("Location", "Allow")
            assert answer.status_code == asked["status"], asked.get("name")
            assert [answer.headers.get(name) for name in names] == [headers.get(name) for name in names]
            if answer.content:
                assert answer.json() == json.loads(asked["response_body"]), asked.get("name")
            count += 1
    assert count > 120


def test_the_article_s_run_gives_its_counts_and_a_second_one_finds_the_first_one_s_keys(
    article_server: Running,
) -> None:
    counts, before = asyncio.run(scenario(article_server.url))
    assert (counts, before) == ([4, 8, 10, 4], [])
    counts, before = asyncio.run(scenario(article_server.url))
    assert counts == [4, 8, 10, 4]
    assert len(before) == 2


def test_a_turn_is_one_get_and_one_post(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            await ask(history, history.session("ann"), "What time is it?", with_tool=True)
            assert await history.get_stored_message_count("ann") == 4

    asyncio.run(main())
    assert article_server.asked() == [
        "GET /about",
        "GET /",
        "GET /chat-history/ann",
        "POST /chat-history/ann",
        "GET /chat-history/ann",
    ]


def test_the_log_says_once_which_promises_are_missing(
    article_server: Running, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        history = RemoteChatHistoryProvider(article_server.url)
        for _ in range(2):
            async with history:
                await say(history, "k", "a")

    with caplog.at_level(logging.WARNING, "chathistory"):
        asyncio.run(main())
    [warning] = caplog.messages
    assert article_server.url in warning
    assert "cannot be sent again" in warning


def test_what_is_stored_is_what_a_dotnet_client_reads(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            await ask(history, history.session("ann"), "What time is it?", with_tool=True)
            found = await history.get_messages(history.session("ann"))
            assert [message.role for message in found] == ["user", "assistant", "tool", "assistant"]

    asyncio.run(main())
    stored = httpx.get(f"{article_server.url}/chat-history/ann").json()
    assert [[content["$type"] for content in message["contents"]] for message in stored] == [
        ["text"],
        ["functionCall"],
        ["functionResult"],
        ["text"],
    ]


def test_the_backend_refuses_the_server_and_names_the_provider(article_server: Running) -> None:
    async def main() -> None:
        backend = HTTPOptions(url=article_server.url).open()
        with pytest.raises(ConfigurationError, match=r"404 to /about.*RemoteChatHistoryProvider"):
            async with backend:
                pass

    asyncio.run(main())


def test_a_server_of_something_else_is_refused(article_server: Running) -> None:
    async def main() -> None:
        with pytest.raises(ConfigurationError, match="is no chat history service"):
            async with RemoteChatHistoryProvider(f"{article_server.url}/other"):
                pass

    asyncio.run(main())


def test_a_reply_that_is_lost_is_told_as_such_and_nothing_is_stored_twice(
    article_server: Running, proxy_of: Callable[[Running], Proxy]
) -> None:
    async def main() -> None:
        proxy = proxy_of(article_server)
        async with RemoteChatHistoryProvider("http://{}:{}".format(*proxy.address)) as history:
            await say(history, "k", "before")
            context = InvokedContext.succeeded(None, history.session("k"), [ChatMessage.user("lost")], [])
            proxy.break_next("reply")
            for _ in range(2):
                with pytest.raises(BackendError, match="is unknown") as caught:
                    await history.invoked(context)
                assert not caught.value.retryable
            assert texts(await history.get_messages(history.session("k"))) == ["before", "lost"]
            await say(history, "k", "after")
            assert texts(await history.get_messages(history.session("k"))) == ["before", "lost", "after"]

    asyncio.run(main())


def test_a_turn_that_never_left_is_stored_when_it_is_sent_again(start_article_server: Callable[[int], Running]) -> None:
    async def main() -> None:
        server = start_article_server(0)
        async with RemoteChatHistoryProvider(server.url) as history:
            context = InvokedContext.succeeded(None, history.session("k"), [ChatMessage.user("a")], [])
            server.kill()
            with pytest.raises(BackendUnavailableError):
                await history.invoked(context)
            start_article_server(server.address[1])
            await history.invoked(context)
            assert texts(await history.get_messages(history.session("k"))) == ["a"]

    asyncio.run(main())


def test_a_run_that_is_told_of_twice_is_stored_once(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            context = InvokedContext.succeeded(None, history.session("k"), [ChatMessage.user("a")], [])
            await history.invoked(context)
            await history.invoked(context)
            assert await history.get_stored_message_count("k") == 1
            session, turn_id = history.session("k"), context.turn_id
            other = InvokedContext.succeeded(None, session, [ChatMessage.user("b")], [], turn_id=turn_id)
            with pytest.raises(TurnConflictError):
                await history.invoked(other)

    asyncio.run(main())


def test_messages_are_set_and_taken_away(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            session = history.session("k")
            assert not await history.session_exists("k")
            assert not await history.clear(session)
            await say(history, "k", "a")
            held = await history.get_messages(session)
            await history.set_messages(session, [ChatMessage.user("b")], expected_revision=held.revision)
            with pytest.raises(RevisionConflictError):
                await history.set_messages(session, [ChatMessage.user("c")], expected_revision=held.revision)
            with pytest.raises(RevisionConflictError):
                await history.clear(session, expected_revision=held.revision)
            assert texts(await history.get_messages(session)) == ["b"]
            await history.set_messages(session, [])
            assert await history.session_exists("k")
            assert await history.get_stored_message_count("k") == 0
            assert await history.clear(session)
            assert not await history.session_exists("k")

    asyncio.run(main())


def test_a_conversation_that_is_empty_is_begun_by_a_run_that_allows_no_other(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url, exclusive=True) as history:
            session = history.session("k")
            await history.set_messages(session, [])
            await ask(history, session, "one")
            await ask(history, session, "two")
            assert await history.get_stored_message_count("k") == 4
            await history.set_messages(session, [], expected_revision=(await history.get_messages(session)).revision)
            assert await history.clear(session, expected_revision=(await history.get_messages(session)).revision)

    asyncio.run(main())


def test_conversations_of_a_scope_are_listed_in_pages(article_server: Running) -> None:
    async def main() -> None:
        keys = ["a", "B", "a/b", "c", "100%"]
        async with RemoteChatHistoryProvider(article_server.url, scope=("tenant", "ann")) as history:
            async with RemoteChatHistoryProvider(article_server.url) as other:
                await say(other, "elsewhere", "a")
            for key in keys:
                if "/" not in key and "%" not in key:
                    await say(history, key, key)
            page = await history.get_conversation_summaries(limit=2)
            rest = await history.get_conversation_summaries(after=page[-1])
            assert [summary.key for summary in (*page, *rest)] == ["B", "a", "c"]
            assert [summary.record_count for summary in page] == [1, 1]
            assert await history.get_conversation_summaries(order="recent") == (*page, *rest)

    asyncio.run(main())


@pytest.mark.parametrize("key", ["a%2Fb", "a%2fb", ".", "..", "é", "a\nb"])
def test_a_key_that_the_server_would_take_for_another_is_refused_before_anything_is_sent(
    article_server: Running, key: str
) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            with pytest.raises(InvalidKeyError, match="cannot be used with a server that has only the article's"):
                await say(history, key, "a")

    asyncio.run(main())
    assert article_server.asked() == ["GET /about", "GET /"]


@pytest.mark.parametrize("key", ["a/b", "/", "a b", " ", "a?b#c", "a+b", "a:b", "{x}", "a\\b", "100%", "..."])
def test_every_other_key_is_one_conversation(article_server: Running, key: str) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            await say(history, key, "a")
            assert texts(await history.get_messages(history.session(key))) == ["a"]
            assert [summary.key for summary in await history.get_conversation_summaries()] == [key]

    asyncio.run(main())


def test_pages_of_a_conversation_are_those_of_a_backend(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            for text in "abcde":
                await say(history, "k", text)
            backend = history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract]  # it stands for any
            assert backend is not None

            async def positions(limit: int | None, before: int | None, after: int | None) -> list[int]:
                found = await backend.get("k", limit=limit, before=before, after=after)
                assert found.record_count == 5
                return [record.position for record in found.records]

            assert await positions(None, None, None) == [1, 2, 3, 4, 5]
            assert await positions(2, None, None) == [4, 5]
            assert await positions(9, None, None) == [1, 2, 3, 4, 5]
            assert await positions(0, None, None) == []
            assert await positions(2, 4, None) == [2, 3]
            assert await positions(None, 1, None) == []
            assert await positions(2, None, 0) == [1, 2]
            assert await positions(None, None, 3) == [4, 5]
            assert await positions(None, None, 9) == []
            assert await backend.get("unknown") == Conversation("unknown")

    asyncio.run(main())


def test_a_reader_is_told_to_start_over_where_what_it_holds_was_changed(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            session = history.session("k")
            backend = history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract]  # it stands for any
            assert backend is not None
            await history.set_messages(session, [ChatMessage.user("a"), ChatMessage.user("b")])
            held = await backend.get("k")
            await say(history, "k", "c")
            more = await read_on(backend, "k", held)
            assert more is not None
            assert [record.position for record in more.records] == [3]
            await history.set_messages(session, [ChatMessage.user("x"), ChatMessage.user("b"), ChatMessage.user("c")])
            assert await read_on(backend, "k", held) is None

    asyncio.run(main())


def test_a_record_that_is_no_message_is_refused_and_what_is_stored_of_none_is_told(article_server: Running) -> None:
    async def main() -> None:
        async with RemoteChatHistoryProvider(article_server.url) as history:
            backend = history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract]  # it stands for any
            assert backend is not None
            with pytest.raises(ConfigurationError, match=r"text\+zstd"):
                await backend.append("k", [Record(b"a", "text+zstd")], turn_id="t")
            async with httpx.AsyncClient(base_url=article_server.url) as client:
                await client.post("chat-history/k", json={"messages": [None]})
            with pytest.raises(CorruptRecordError):
                await history.get_messages(history.session("k"))

    asyncio.run(main())
