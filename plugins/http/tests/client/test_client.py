"""What the client sends, how often, and what it says when something else than the service answers."""

import asyncio
import json
import logging
import ssl
import traceback
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, closing, suppress
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple, Protocol

import httpx
import pytest
import trustme

from chathistory_core import (
    BackendError,
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatHistoryError,
    ConfigurationError,
    Conversation,
    Record,
    TooLargeError,
    erase,
)
from chathistory_core.testing import Proxy
from chathistory_http import HTTPBackend, HTTPOptions

TOKEN = "the-token-nobody-may-see"
CONTENT = "the-content-nobody-may-see"
HEAD = {"revision": "r", "epoch": "e"}
ABOUT = {
    "service": "chat-history-service",
    "contract": 1,
    "version": "1",
    "limits": {"maxRecords": 1000, "maxBytes": 2**24, "maxRecordBytes": 2**24, "turnsKept": 1000},
}
WRITTEN = HEAD | {"firstPosition": 1, "replayed": False}
CONVERSATION: dict[str, object] = HEAD | {
    "key": "k",
    "recordCount": 0,
    "createdAt": None,
    "updatedAt": None,
    "records": [],
}

Call = Callable[[ChatHistoryBackend], Awaitable[object]]


class Running(Protocol):
    url: str
    address: tuple[str, int]


class Asked(NamedTuple):
    method: str
    target: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, value: object = None, **headers: str) -> bytes:
    body = b"" if value is None else value if isinstance(value, bytes) else json.dumps(value).encode()
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {text}" for name, text in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Scripted:
    """A server that answers what it is told to, and remembers what it was asked after `GET /about`."""

    def __init__(self, answers: Sequence[bytes | None], about: bytes) -> None:
        self.asked: list[Asked] = []
        self._answers = list(answers)
        self._about = about
        self.url = ""

    async def serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *rest = head.decode("latin-1").rstrip().split("\r\n")
                method, target, _ = line.split(" ")
                headers = dict(each.split(": ", 1) for each in rest)
                body = await reader.readexactly(int(headers.get("Content-Length", 0)))
                if target.endswith("/about"):
                    writer.write(self._about)
                    continue
                self.asked.append(Asked(method, target, headers, body))
                reply = self._answers.pop(0)
                if reply is None:
                    break
                writer.write(reply)


@asynccontextmanager
async def scripted(*answers: bytes | None, about: bytes | None = None) -> AsyncIterator[Scripted]:
    """A server with these answers, one after the other; None breaks the connection."""
    server = Scripted(answers, answer(200, ABOUT) if about is None else about)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, limit=2**20)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with listening:
        yield server


def options(url: str, **more: object) -> HTTPOptions:
    return HTTPOptions.model_validate({"url": url, "token": TOKEN} | more)


def record(text: str = CONTENT) -> list[Record]:
    return [Record(text.encode(), "text")]


async def append(backend: ChatHistoryBackend) -> object:
    return await backend.append("k", record(), turn_id="turn é")


CALLS: dict[str, tuple[Call, object]] = {
    "get": (lambda backend: backend.get("k"), CONVERSATION),
    "append": (append, WRITTEN),
    "replace": (lambda backend: backend.replace("k", record(), turn_id="t"), WRITTEN),
    "summaries": (lambda backend: backend.summaries(), {"summaries": []}),
}


async def clear(backend: ChatHistoryBackend) -> bool:
    return await backend.clear("k")


async def called(call: Call, *answers: bytes | None, **more: object) -> tuple[object, list[Asked]]:
    async with scripted(*answers) as server, options(server.url, **more).open() as backend:
        return await call(backend), server.asked


async def failed(call: Call, *answers: bytes | None, **more: object) -> tuple[ChatHistoryError, list[Asked]]:
    async with scripted(*answers) as server, options(server.url, **more).open() as backend:
        with pytest.raises(ChatHistoryError) as caught:
            await call(backend)
        shown = "".join(traceback.format_exception(caught.value))
        assert CONTENT not in shown
        assert TOKEN not in shown
        assert caught.value.__cause__ is None
        return caught.value, server.asked


@pytest.mark.parametrize("operation", CALLS)
@pytest.mark.parametrize(
    "trouble", [None, answer(502), answer(503, retry_after="0"), answer(504)], ids=["broken", "502", "503", "504"]
)
def test_a_read_or_write_that_failed_on_the_way_is_sent_again_unchanged(operation: str, trouble: bytes | None) -> None:
    call, value = CALLS[operation]
    _, asked = asyncio.run(called(call, trouble, trouble, answer(200, value)))
    assert len(asked) == 3
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize("trouble", [None, answer(503), answer(429, retry_after="0")], ids=["broken", "503", "429"])
def test_after_the_last_repetition_the_store_is_unavailable(trouble: bytes | None) -> None:
    for retries in 0, 1:
        error, asked = asyncio.run(failed(append, trouble, trouble, trouble, retries=retries))
        assert isinstance(error, BackendUnavailableError)
        assert len(asked) == 1 + retries


@pytest.mark.parametrize(
    "trouble",
    [None, answer(502), answer(503, retry_after="0"), answer(429, retry_after="0")],
    ids=["broken", "502", "503", "429"],
)
def test_a_clear_is_sent_once(trouble: bytes | None) -> None:
    error, asked = asyncio.run(failed(clear, trouble))
    assert isinstance(error, BackendUnavailableError)
    assert len(asked) == 1


@pytest.mark.parametrize("wait", ["0", formatdate(0, usegmt=True)])
def test_a_service_that_asks_to_wait_is_asked_again_then(wait: str) -> None:
    _, asked = asyncio.run(called(append, answer(429, retry_after=wait), answer(200, WRITTEN)))
    assert len(asked) == 2


@pytest.mark.parametrize("headers", [{}, {"retry_after": "11"}, {"retry_after": "soon"}])
def test_one_that_asks_to_wait_long_or_says_nothing_is_left_to_the_caller(headers: dict[str, str]) -> None:
    error, asked = asyncio.run(failed(append, answer(429, **headers)))
    assert isinstance(error, BackendUnavailableError)
    assert error.retryable
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("reply", "kind", "words"),
    [
        (answer(401), ConfigurationError, "token"),
        (answer(403), ConfigurationError, "token"),
        (answer(404), BackendError, "404"),
        (answer(302), BackendError, "302"),
        (answer(302, location="http://host:port"), BackendUnavailableError, "no answer"),
        (answer(413), TooLargeError, "413"),
        (answer(500, CONTENT), BackendError, "500"),
        (answer(400, CONTENT, Content_Type="text/html"), BackendError, "400"),
        (answer(200, b"<html>" + CONTENT.encode()), BackendError, "cannot be read"),
        (answer(200, [CONTENT]), BackendError, "cannot be read"),
        (answer(204), BackendError, "cannot be read"),
        (answer(200, b"no gzip", Content_Encoding="gzip"), BackendError, "compressed"),
        (b"NOT HTTP AT ALL\r\n\r\n", BackendUnavailableError, "connection broke"),
    ],
    ids=lambda value: "" if isinstance(value, bytes) else None,
)
def test_what_something_else_answers_is_told_without_its_words(
    reply: bytes, kind: type[ChatHistoryError], words: str
) -> None:
    for call, _ in CALLS.values():
        error, asked = asyncio.run(failed(call, reply, retries=0))
        assert type(error) is kind
        assert words in str(error)
        assert len(asked) == 1


def test_an_error_names_the_service_what_was_tried_and_on_what() -> None:
    error, _ = asyncio.run(failed(append, None, retries=0))
    assert "http://127.0.0.1:" in str(error)
    assert "did not append to conversation 'k', turn 'turn é'" in str(error)


def test_a_redirection_is_not_followed_and_the_token_stays_at_home() -> None:
    async def main(client: httpx.AsyncClient | None) -> None:
        async with scripted() as other, scripted(answer(307, location=f"{other.url}/records?secret")) as server:
            given = options(server.url).client if client is None else client
            if client is not None:
                client.base_url = server.url
            async with HTTPBackend(given, token=TOKEN) as backend:
                with pytest.raises(ConfigurationError, match=other.url) as caught:
                    await append(backend)
            assert "secret" not in str(caught.value)
            assert (len(server.asked), other.asked) == (1, [])

    async def with_borrowed() -> None:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            await main(client)

    asyncio.run(main(None))
    asyncio.run(with_borrowed())


@pytest.mark.parametrize(
    ("about", "words"),
    [
        (answer(200, ABOUT | {"contract": 2}), "contract 2"),
        (answer(200, ABOUT | {"service": "another"}), "no chat history service"),
        (answer(200, b"<html>"), "no JSON"),
        (answer(404), r"404 to /about.*RemoteChatHistoryProvider"),
        (answer(401), "token"),
        (answer(302, location="https://login.example/?next=1"), "https://login.example,"),
    ],
)
def test_a_server_that_is_no_such_service_is_refused_when_it_is_opened(about: bytes, words: str) -> None:
    async def main() -> None:
        async with scripted(about=about) as server:
            backend = options(server.url).open()
            for _ in range(2):
                with pytest.raises(ConfigurationError, match=words):
                    async with backend:
                        pass
            with pytest.raises(BackendStateError):
                await backend.get("k")

    asyncio.run(main())


def test_limits_are_the_service_s_once_it_is_open() -> None:
    async def main() -> None:
        async with scripted() as server:
            backend = options(server.url).open()
            assert backend.limits.max_records == 100_000
            async with backend:
                assert backend.limits.max_records == 1_000
                with pytest.raises(TooLargeError):
                    await backend.append("k", record() * 1_001, turn_id="t")
            assert server.asked == []

    asyncio.run(main())


def test_the_token_goes_with_every_request_and_a_request_without_one_has_none() -> None:
    async def main(token: str | None) -> list[str | None]:
        async with scripted(answer(200, WRITTEN), answer(200, {"cleared": True})) as server:
            async with HTTPBackend(options(server.url).client, token=token) as backend:
                await append(backend)
                await clear(backend)
            return [each.headers.get("Authorization") for each in server.asked]

    assert asyncio.run(main(TOKEN)) == [f"Bearer {TOKEN}"] * 2
    assert asyncio.run(main(None)) == [None] * 2


def test_a_token_that_no_header_can_carry_is_refused_without_showing_it() -> None:
    for token in f"{TOKEN}\r\nX: y", f"{TOKEN} é", "":
        with pytest.raises(ValueError, match="ASCII") as caught:
            HTTPBackend(httpx.AsyncClient, token=token)
        assert TOKEN not in str(caught.value)


def test_a_path_in_the_url_stands_before_every_path() -> None:
    async def main() -> None:
        async with scripted(answer(200, CONVERSATION)) as server:
            for url in f"{server.url}/my/history", f"{server.url}/my/history/":
                async with options(url).open():
                    pass
            async with options(url).open() as backend:
                await backend.get("a/b ?%é", limit=3)
            assert [each.target for each in server.asked] == ["/my/history/records?key=a%2Fb%20%3F%25%C3%A9&limit=3"]

    asyncio.run(main())


def test_a_borrowed_client_is_left_open_and_one_that_is_made_is_closed() -> None:
    made: list[httpx.AsyncClient] = []

    async def main() -> None:
        async with scripted(answer(200, CONVERSATION)) as server:

            def make() -> httpx.AsyncClient:
                made.append(httpx.AsyncClient(base_url=server.url))
                return made[-1]

            async with httpx.AsyncClient(base_url=server.url) as client:
                async with HTTPBackend(client) as backend:
                    await backend.get("k")
                assert not client.is_closed
                owner = HTTPBackend(make)
                for _ in range(2):
                    async with owner:
                        pass
                assert [each.is_closed for each in made] == [True, True]

    asyncio.run(main())


def test_a_borrowed_client_that_was_closed_is_told_so() -> None:
    async def main() -> None:
        async with (
            scripted() as server,
            httpx.AsyncClient(base_url=server.url) as client,
            HTTPBackend(client) as backend,
        ):
            await client.aclose()
            with pytest.raises(BackendStateError, match="closed by its owner"):
                await backend.get("k")

    asyncio.run(main())


def test_a_client_that_does_not_know_where_the_service_is_is_refused() -> None:
    async def main() -> None:
        async with httpx.AsyncClient() as client:
            with pytest.raises(ConfigurationError, match="base_url"):
                async with HTTPBackend(client):
                    pass

    asyncio.run(main())


def test_a_service_that_is_silent_is_unavailable_after_the_timeout_and_not_asked_again() -> None:
    async def main() -> None:
        asked = 0

        async def serve(reader: StreamReader, writer: StreamWriter) -> None:
            nonlocal asked
            with closing(writer), suppress(asyncio.IncompleteReadError):
                while await reader.readuntil(b"\r\n\r\n"):
                    asked += 1
                    if asked == 1:
                        writer.write(answer(200, ABOUT))

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            async with options(f"http://127.0.0.1:{port}", timeout=1).open() as backend:
                with pytest.raises(BackendUnavailableError, match="in time"):
                    await backend.get("k")
            assert asked == 2

    asyncio.run(main())


def test_more_calls_than_connections_wait_for_one(sqlite_service: Running) -> None:
    async def main() -> None:
        async with HTTPOptions(url=sqlite_service.url, max_connections=2).open() as backend:
            await asyncio.gather(*(backend.append("many", record(), turn_id=f"{number}") for number in range(20)))
            assert (await backend.get("many")).record_count == 20
            assert await backend.clear("many")

    asyncio.run(main())


def test_numbers_beyond_every_position_mean_what_they_mean_elsewhere(sqlite_service: Running) -> None:
    async def main() -> None:
        huge = 2**80
        async with HTTPOptions(url=sqlite_service.url).open() as backend:
            await backend.append("huge", record(), turn_id="t")
            whole = await backend.get("huge")
            assert await backend.get("huge", limit=huge) == whole
            assert await backend.get("huge", before=huge) == whole
            assert await backend.get("huge", after=huge) == whole._replace(records=())
            assert [each.key for each in await backend.summaries(prefix="huge", limit=huge)] == ["huge"]
            assert await backend.clear("huge")

    asyncio.run(main())


def test_each_operation_is_one_round_trip(sqlite_service: Running, proxy_of: Callable[[Running], Proxy]) -> None:
    async def main() -> None:
        proxy = proxy_of(sqlite_service)
        async with HTTPOptions(url="http://{}:{}".format(*proxy.address)).open() as backend:
            batch = [Record(b"." * 1_000, "text")] * 1_000
            calls: list[Call] = [
                lambda backend: backend.append("k", batch, turn_id="t"),
                lambda backend: backend.append("k", batch, turn_id="t"),
                lambda backend: backend.get("k"),
                lambda backend: backend.get("k", limit=20),
                lambda backend: backend.get("unknown"),
                lambda backend: backend.replace("k", batch, turn_id="u"),
                lambda backend: backend.summaries(limit=20, order="recent"),
                clear,
            ]
            for call in calls:
                before = proxy.traffic
                await call(backend)
                passed = proxy.traffic.since(before)
                assert passed.connections == 0
                assert passed.round_trips == 1

    asyncio.run(main())


def test_a_proxy_in_the_environment_is_not_asked_for_what_is_on_this_machine(
    sqlite_service: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy":
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)

    async def main() -> Conversation:
        async with HTTPOptions(url=sqlite_service.url).open() as backend:
            return await backend.get("unknown")

    assert asyncio.run(main()) == Conversation("unknown")


@pytest.mark.parametrize(
    "proxy", [f"nonsense://user:{TOKEN}@host:1", f"socks5://user:{TOKEN}@host:1", f"http://{TOKEN}:x"]
)
def test_a_proxy_that_cannot_be_used_is_told_without_its_password(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)

    async def main() -> None:
        with pytest.raises(ConfigurationError, match="ALL_PROXY") as caught:
            async with HTTPOptions(url="http://history.example").open():
                pass
        shown = "".join(traceback.format_exception(caught.value))
        assert TOKEN not in shown

    asyncio.run(main())


def test_no_log_line_shows_the_token_or_content(sqlite_service: Running, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with options(sqlite_service.url).open() as backend:
            await append(backend)
            await backend.get("k")
            assert await erase(backend, "k") == 1

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert caplog.records
    assert TOKEN not in caplog.text
    assert CONTENT not in caplog.text


AUTHORITY = trustme.CA()


@asynccontextmanager
async def secured(server: Running, *, host: str) -> AsyncIterator[str]:
    """The URL at which the service is reached with TLS, under a certificate for this host."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    AUTHORITY.issue_cert(host).configure_cert(context)

    async def pump(reader: StreamReader, writer: StreamWriter) -> None:
        with closing(writer):
            while data := await reader.read(2**16):
                writer.write(data)
                await writer.drain()

    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        back, forth = await asyncio.open_connection(*server.address)
        await asyncio.gather(pump(reader, forth), pump(back, writer), return_exceptions=True)

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context) as listening:
        yield f"https://localhost:{listening.sockets[0].getsockname()[1]}"


async def read_through(server: Running, *, host: str) -> Conversation:
    async with secured(server, host=host) as url, HTTPOptions(url=url).open() as backend:
        return await backend.get("unknown")


def test_a_certificate_that_is_trusted_is_taken_and_others_are_refused(
    sqlite_service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigurationError, match="certificate"):
        asyncio.run(read_through(sqlite_service, host="localhost"))
    file = tmp_path / "authority.pem"
    AUTHORITY.cert_pem.write_to_path(file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    assert asyncio.run(read_through(sqlite_service, host="localhost")) == Conversation("unknown")
    with pytest.raises(ConfigurationError, match="certificate"):
        asyncio.run(read_through(sqlite_service, host="another.example"))


def test_authorities_that_cannot_be_read_are_told_when_it_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/authority.pem")

    async def main() -> None:
        with pytest.raises(ConfigurationError, match="SSL_CERT_FILE"):
            async with HTTPOptions(url="https://localhost:1").open():
                pass

    asyncio.run(main())
