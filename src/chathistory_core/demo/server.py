"""A server of the Chat Completions API on this machine, for as long as a block runs."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from sys import exc_info
from threading import Thread
from typing import TypeAlias

from chathistory_core.demo.script import MODEL, JsonObject, RefusedError, answer

Answer: TypeAlias = Callable[[JsonObject], JsonObject]
"""From a request's body to the assistant's message; `RefusedError` becomes status 400."""


@contextmanager
def serve(answer: Answer = answer) -> Iterator[str]:
    """The base URL of a server on a free port of the loopback interface. When the block ends, so does its thread."""
    with _Server(answer) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="scripted model")
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # so that closing waits for them, and none is left with an open socket

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        TCPServer.server_bind(
            self
        )  # without HTTPServer's look-up of a host name, which takes seconds where DNS is slow
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment] # AF_INET: text, int

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(exc_info()[1], ConnectionError):  # a client that left is no error
            super().handle_error(request, client_address)  # type: ignore[arg-type] # what socketserver gave


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 10  # a client that sends nothing must not keep the server from closing

    def do_GET(self) -> None:
        if self.path == "/v1/models":
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "chathistory"}
            self._send(HTTPStatus.OK, {"object": "list", "data": [model]})
        else:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")

    def do_POST(self) -> None:
        if self.path != "/v1/chat/completions":
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        try:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        except ValueError:
            self._refuse(HTTPStatus.BAD_REQUEST, "the body is not JSON of a known length")
            return
        if not isinstance(body, dict):
            self._refuse(HTTPStatus.BAD_REQUEST, "the body is not an object")
            return
        try:
            message = self.server.answer(body)
        except RefusedError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))
            return
        self._send(HTTPStatus.OK, _completion(body, message))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the overridden method's name
        """Nothing: the terminal belongs to the demonstration."""

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        self._send(status, {"error": {"message": reason, "type": "invalid_request_error", "param": None, "code": None}})

    def _send(self, status: HTTPStatus, value: JsonObject) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _completion(request: JsonObject, message: JsonObject) -> JsonObject:
    messages = request.get("messages")
    return {
        "id": f"chatcmpl-{len(messages) if isinstance(messages, list) else 0}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": request.get("model"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": "tool_calls" if message.get("tool_calls") else "stop",
            }
        ],
    }
