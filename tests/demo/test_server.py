"""The server of the scripted model, asked by the client that the example uses and by hand."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

import pytest
from openai import BadRequestError, OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam

from chathistory_core.demo import DemoError, open_endpoint, serve

TOOLS: list[ChatCompletionFunctionToolParam] = [{"type": "function", "function": {"name": "get_time"}}]


def ask(url: str, method: str, path: str, body: bytes | None = None) -> tuple[int, dict[str, object]]:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
    try:
        connection.request(method, path, body)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def test_the_real_client_gets_models_and_completions() -> None:
    with serve() as url, OpenAI(base_url=url, api_key="none") as client:
        assert [model.id for model in client.models.list().data] == ["scripted"]
        reply = client.chat.completions.create(
            model="scripted", tools=TOOLS, messages=[{"role": "user", "content": "What time is it?"}]
        )
        calls = reply.choices[0].message.tool_calls
        assert reply.choices[0].finish_reason == "tool_calls"
        assert calls is not None
        assert calls[0].type == "function"
        assert (calls[0].function.name, calls[0].function.arguments) == ("get_time", "{}")


def test_what_the_script_refuses_is_status_400_with_the_reason() -> None:
    with (
        serve() as url,
        OpenAI(base_url=url, api_key="none") as client,
        pytest.raises(BadRequestError, match="history is missing"),
    ):
        client.chat.completions.create(
            model="scripted", messages=[{"role": "user", "content": "How much time has passed?"}]
        )


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/", None, 404),
        ("POST", "/v1/models", b"{}", 404),
        ("POST", "/v1/chat/completions", b"", 400),
        ("POST", "/v1/chat/completions", b"\xff", 400),
        ("POST", "/v1/chat/completions", b"[]", 400),
        ("POST", "/v1/chat/completions", b"{}", 400),
    ],
)
def test_a_bad_request_is_answered_in_the_apis_words(method: str, path: str, body: bytes | None, status: int) -> None:
    with serve() as url:
        answered, value = ask(url, method, path, body)
    assert answered == status
    assert isinstance(value["error"], dict)
    assert value["error"]["message"]


def test_nothing_of_a_server_is_left_behind_its_block() -> None:
    before = threading.active_count()
    with serve() as url, serve() as other:
        assert url != other
        assert ask(url, "GET", "/v1/models")[0] == 200
    assert threading.active_count() == before
    address = urlsplit(url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((address.hostname or "", address.port or 0), timeout=10)


def test_a_client_that_leaves_before_its_answer_goes_unmentioned(capfd: pytest.CaptureFixture[str]) -> None:
    asked, left = threading.Event(), threading.Event()

    def late(request: object) -> dict[str, object]:
        asked.set()
        left.wait(10)
        return {"role": "assistant", "content": "x" * 10_000_000}

    with serve(late) as url:
        address = urlsplit(url)
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=10) as client:
            client.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: 2\r\n\r\n{}")
            assert asked.wait(10)
        left.set()
    assert capfd.readouterr().err == ""


def test_without_a_base_url_the_scripted_model_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")

    async def first_model() -> str:
        async with endpoint.connect(None) as (_, model):
            return model

    with open_endpoint() as endpoint:
        assert endpoint.scripted
        assert endpoint.description.endswith("(OPENAI_API_KEY is not used without OPENAI_BASE_URL)")
        assert "canary" not in repr(endpoint)
        assert asyncio.run(first_model()) == "scripted"


def test_a_base_url_needs_no_key_and_shows_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://ann:canary@127.0.0.1:9/v1?token=canary")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with open_endpoint() as endpoint:
        assert not endpoint.scripted
        assert endpoint.description == "the server at http://127.0.0.1:9/v1"
        assert "canary" not in repr(endpoint)


def test_a_server_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve() as closed:
        pass
    with pytest.raises(DemoError, match=f"the server at {closed} cannot be asked"):
        connect_to(closed, monkeypatch)


def connect_to(url: str, monkeypatch: pytest.MonkeyPatch, model: str | None = None) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)

    async def connect() -> None:
        async with endpoint.connect(model) as (client, name):
            await client.chat.completions.create(model=name, messages=[{"role": "user", "content": "Hello"}])

    with open_endpoint() as endpoint:
        asyncio.run(connect())


@contextmanager
def canned(status: int, body: str) -> Iterator[str]:
    """The base URL of a server that gives one answer to whatever it is asked."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET  # noqa: N815 - the name that is called

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("body", ['{"data": []}', '{"error": "Unexpected endpoint"}', "<html></html>", '"text"'])
def test_a_server_that_lists_no_models_gets_a_hint(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with canned(200, body) as url, pytest.raises(DemoError, match="lists no models: does its URL end in /v1"):
        connect_to(url, monkeypatch)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('{"error": {"message": "no such\\nmodel"}}', "no such model"),
        ('{"error": "no such model"}', "no such model"),
        ('{"detail": "no such model"}', "404"),
        ("no such " + "model " * 1000, "no such model"),
    ],
)
def test_what_a_server_refuses_is_told_in_its_words(body: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with canned(404, body) as url, pytest.raises(DemoError) as refused:
        connect_to(url, monkeypatch, "m")
    assert f"the server at {url} answered with status 404: " in str(refused.value)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("url", ["localhost:1234/v1", "ftp://host/v1", "http://", "http://h:canary", "http://[canary"])
def test_a_base_url_that_is_none_is_said_without_showing_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DemoError, match="OPENAI_BASE_URL is not a URL such as") as refused:
        connect_to(url, monkeypatch)
    assert "canary" not in str(refused.value)
