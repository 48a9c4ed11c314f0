"""The real client of OpenAI against a server that breaks off, stalls and reports errors: the table of the guide.

The table on the page is what the runs here store, whatever the store.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import TCPServer
from threading import Event, Thread
from typing import Any

import openai
import pytest
from openai import (
    APIConnectionError,
    APIError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAsyncHttpxClient,
    InternalServerError,
)

from chathistory_core import ChatMessage, StoredChatHistoryProvider, blocking, is_incomplete
from chathistory_core.formats import openai_chat

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/when-a-run-fails.md"

TEXT = ("Once ", "upon ", "a ", "time.")
"""What a stream says, in pieces; what goes wrong does so behind the second."""


@contextmanager
def serve() -> Iterator[str]:
    """The base URL of the server, on a free port of the loopback interface."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.over = Event()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(self)  # without the look-up of a host name
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that leaves is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        if model == "refuses":
            self._send(500, json.dumps({"error": {"message": "out of order"}}).encode(), "application/json")
            return
        if model == "ends early":
            self._send(200, b"".join(map(_event, [_delta(text) for text in TEXT[:2]])), "text/event-stream")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for text in TEXT[:2]:
            self._piece(_event(_delta(text)))
        if model == "breaks off":
            self.close_connection = True  # in the middle: the last chunk of the body never comes
            return
        if model == "stalls":
            self.server.over.wait(60)
            self.close_connection = True
            return
        if model == "reports an error":
            self._piece(_event({"error": {"message": "out of memory"}}))
        else:
            for text in TEXT[2:]:
                self._piece(_event(_delta(text)))
            self._piece(_event(_delta(None, "stop")))
            self._piece(b"data: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name
        """Nothing."""

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()


def _event(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def _delta(text: str | None, finish_reason: str | None = None) -> dict[str, object]:
    delta = {} if text is None else {"role": "assistant", "content": text}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    }


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serve() as url:
        yield url


Ask = Callable[[StoredChatHistoryProvider, AsyncOpenAI, str], Awaitable[object]]


async def read(history: StoredChatHistoryProvider, client: AsyncOpenAI, model: str) -> None:
    """The run as the guide shows it."""
    async with history.turn(history.session("k"), [ChatMessage.user("q")], turn_id="T") as turn:
        if turn.replayed:
            return
        given = openai_chat.dump(turn.messages)
        assert given == [{"role": "user", "content": "q"}]
        chunks = await client.chat.completions.create(model=model, messages=given, stream=True)
        async for _ in turn.stream(chunks, openai_chat.load_chunks):
            pass


async def leave(history: StoredChatHistoryProvider, client: AsyncOpenAI, model: str) -> None:
    async with history.turn(history.session("k"), [ChatMessage.user("q")], turn_id="T") as turn:
        given = openai_chat.dump(turn.messages)
        chunks = await client.chat.completions.create(model=model, messages=given, stream=True)
        said = ""
        async for chunk in turn.stream(chunks, openai_chat.load_chunks):
            said += chunk.choices[0].delta.content or ""
            if said == "Once upon ":
                break


async def be_cancelled(history: StoredChatHistoryProvider, client: AsyncOpenAI, model: str) -> None:
    came = asyncio.Event()

    async def job() -> None:
        async with history.turn(history.session("k"), [ChatMessage.user("q")], turn_id="T") as turn:
            given = openai_chat.dump(turn.messages)
            chunks = await client.chat.completions.create(model=model, messages=given, stream=True)
            said = ""
            async for chunk in turn.stream(chunks, openai_chat.load_chunks):
                said += chunk.choices[0].delta.content or ""
                if said == "Once upon ":
                    came.set()

    task = asyncio.create_task(job())
    await came.wait()
    task.cancel()
    await task


CASES: dict[str, tuple[str, Ask, type[BaseException] | None]] = {
    "answers": ("whole", read, None),
    "refuses": ("refuses", read, InternalServerError),
    "breaks the connection": ("breaks off", read, APIConnectionError),
    "ends before the answer does": ("ends early", read, EOFError),
    "reports an error in the stream": ("reports an error", read, APIError),
    "says nothing any more": ("stalls", read, APITimeoutError),
    "is no longer read (`break`)": ("whole", leave, None),
    "is waited for by a task that is cancelled": ("stalls", be_cancelled, asyncio.CancelledError),
}
"""What happens, as the page says it: the server's part, ours, and what is raised."""

POLICIES = ("discard", "request", "partial")


def client_of(url: str) -> AsyncOpenAI:
    transport = DefaultAsyncHttpxClient(trust_env=False)
    return AsyncOpenAI(base_url=url, api_key="none", max_retries=0, timeout=5, http_client=transport)


async def fail(history: StoredChatHistoryProvider, client: AsyncOpenAI, case: str) -> str:
    """What was raised, as the table says it."""
    model, ask, expected = CASES[case]
    patience = 0.3 if expected is APITimeoutError else 5
    [error] = await asyncio.gather(ask(history, client.with_options(timeout=patience), model), return_exceptions=True)
    assert isinstance(error, expected or type(None)), repr(error)
    return "" if error is None else f"`{type(error).__name__}`"


async def stored(history: StoredChatHistoryProvider) -> list[tuple[str, bool]]:
    return [(message.text, is_incomplete(message)) for message in await history.messages(history.session("k"))]


def told(found: list[tuple[str, bool]]) -> str:
    """As the table says it."""
    names = {"q": "request", "Once upon a time.": "answer", "Once upon ": "part of the answer"}
    assert all(broken is (names[text] == "part of the answer") for text, broken in found)
    return ", ".join(names[text] for text, _ in found) or "nothing"


def rows() -> list[list[str]]:
    text = PAGE.read_text("utf-8")
    table = re.search(r"^\| the model .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert table is not None
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[0].splitlines()]


def test_the_table_names_every_case_and_every_policy() -> None:
    head, _, *cases = rows()
    assert head == ["the model", "raised", *(f"`{policy}`" for policy in POLICIES)]
    assert [row[0] for row in cases] == list(CASES)


@pytest.mark.parametrize("case", CASES)
def test_the_table_says_what_is_stored_and_a_new_attempt_adds_what_is_missing(
    open_store: Any, url: str, case: str
) -> None:
    async def run(policy: Any) -> tuple[str, str]:
        async with open_store() as backend, client_of(url) as client:
            await backend.clear("k")
            history = StoredChatHistoryProvider(backend, on_failure=policy)
            raised = await fail(history, client, case)
            first = told(await stored(history))
            await read(history, client, "whole")
            missing = {"nothing": "request, answer", "request, answer": "request, answer"}.get(
                first, f"{first}, answer"
            )
            assert told(await stored(history)) == missing
            return raised, first

    found = [asyncio.run(run(policy)) for policy in POLICIES]
    [row] = [row for row in rows()[2:] if row[0] == case]
    assert row[1:] == [found[0][0], *(first for _, first in found)]


def test_the_connection_is_given_up_when_a_stream_is_left(url: str, faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend, client_of(url) as client:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            responses = []
            async with history.turn(history.session("k"), [ChatMessage.user("q")]) as turn:
                chunks = await client.chat.completions.create(model="stalls", messages=[], stream=True)
                responses.append(chunks.response)
                async for _ in turn.stream(chunks, openai_chat.load_chunks):
                    break
            assert responses[0].is_closed
            assert await stored(history) == [("q", False), ("Once ", True)]

    asyncio.run(run())


def test_the_pages_own_stream_runs(url: str, faulty: Any) -> None:
    [code] = re.findall(
        r"^```python\n([^`]*turn\.stream\(chunks.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    names: dict[str, Any] = {"ChatMessage": ChatMessage}
    exec(code, names)
    shown: list[Any] = []

    async def run() -> None:
        async with faulty as backend, client_of(url) as client:
            history = StoredChatHistoryProvider(backend)
            await names["stream"](history, client, shown.append)
            [_, answer] = await history.messages(history.session("ann"))
            assert answer.text == "".join(chunk.choices[0].delta.content or "" for chunk in shown) == "".join(TEXT)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("model", "error"), [("whole", None), ("breaks off", APIConnectionError), ("ends early", EOFError)]
)
def test_the_blocking_client_and_face_do_the_same(url: str, model: str, error: type[Exception] | None) -> None:
    transport = openai.DefaultHttpxClient(trust_env=False)
    with (
        openai.OpenAI(base_url=url, api_key="none", max_retries=0, http_client=transport) as client,
        blocking.open_history("memory://", on_failure="partial") as history,
    ):
        session = history.session("k")
        seen = None
        try:
            with history.turn(session, [ChatMessage.user("q")]) as turn:
                given = openai_chat.dump(turn.messages)
                chunks = client.chat.completions.create(model=model, messages=given, stream=True)
                for _ in turn.stream(chunks, openai_chat.load_chunks):
                    pass
        except (APIError, EOFError) as raised:
            seen = raised
        assert seen is None if error is None else isinstance(seen, error)
        found = [(message.text, is_incomplete(message)) for message in history.messages(session)]
        assert told(found) == ("request, answer" if error is None else "request, part of the answer")
