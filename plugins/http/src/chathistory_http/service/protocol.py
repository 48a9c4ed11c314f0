"""HTTP as the service speaks it under uvicorn: with bounds for what no application sees.

A head is read before any application is asked, and what is left of a body after the application answered; both may be
endless or endlessly slow. So may a client be that reads its answer.
"""
# ruff: noqa: D102 - when each method is called, asyncio and uvicorn say

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from chathistory_http.wire.problems import MEDIA_TYPE, ProblemError, write_problem

MAX_HEAD_BYTES = 32 * 1024
"""The request line and all headers. The longest key takes 1,536 bytes of it."""


_BAD = ProblemError("bad-request", "this is no HTTP that is taken here")
_HEAD = ProblemError("head-too-large", f"the request line and the headers take more than {MAX_HEAD_BYTES} bytes")
_SLOW = ProblemError("timeout", "the head of the request came too slowly")


class BoundedProtocol(HttpToolsProtocol):
    """One connection. Its client has `seconds` for a head, and as many for an answer, and the time its size takes.

    The rest of a body behind an answer that did not wait for it is read, and thrown away, for `linger_seconds`. To
    close at once would often take the answer away too: a client that is still sending sees its connection reset.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        seconds: float = 30.0,
        linger_seconds: float = 10.0,
        bytes_per_second: int = 64 * 1024,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._seconds = seconds
        self._linger_seconds = linger_seconds
        self._bytes_per_second = bytes_per_second
        self._before_body = True  # nothing, or a part of a head, is what came of the next request
        self._head_bytes = 0  # of that head, or of trailers; and, rarely, of what came in one piece with it
        self._refusal = _BAD
        self._deadline: asyncio.TimerHandle | None = None
        self._reader_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the class above
        super().connection_made(transport)
        self._set_deadline(self._seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        self._clear_reader_deadline()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes and not self.transport.is_closing():
            if self._head_bytes > MAX_HEAD_BYTES:
                self._refuse(_HEAD)
            elif self._deadline is None and self._is_idle():
                self._set_deadline(self._seconds)

    def on_headers_complete(self) -> None:
        hosts = 0
        for name, _ in self.headers:
            if name == b"host":
                hosts += 1
        version = self.parser.get_http_version()
        if version not in ("1.0", "1.1") or hosts > 1 or (hosts == 0 and version == "1.1"):
            raise ValueError("no request of one host")  # of two, a proxy and we might each take another
        if self._head_bytes > MAX_HEAD_BYTES:
            self._check_head()
        self._head_bytes = 0
        self._before_body = False
        self._clear_deadline()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._head_bytes = 0  # what brings no body is a head, or trailers, which may be endless too
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._before_body = True
        self._head_bytes = 0
        if self._deadline is not None:  # of a body that nobody waited for: now the connection is in no use
            self._set_deadline(self.timeout_keep_alive)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self._before_body and not self.transport.is_closing():
            self._set_deadline(self._linger_seconds)

    def pause_writing(self) -> None:
        super().pause_writing()
        seconds = self._seconds + self.transport.get_write_buffer_size() / self._bytes_per_second
        self._reader_deadline = self.loop.call_later(seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._clear_reader_deadline()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - the parser's own words help nobody
        self._refuse(self._refusal)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]  # at first it is None

    def _check_head(self) -> None:
        """Whether the head alone is not too large: a part of the body may have come with it."""
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > MAX_HEAD_BYTES:
            self._refusal = _HEAD
            raise ValueError("the head is too large")

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._give_up)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _clear_reader_deadline(self) -> None:
        if self._reader_deadline is not None:
            self._reader_deadline.cancel()
            self._reader_deadline = None

    def _give_up(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self._head_bytes:
            self._refuse(_SLOW)
        else:
            self.transport.close()

    def _refuse(self, problem: ProblemError) -> None:
        body = write_problem(problem)
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
