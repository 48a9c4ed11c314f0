"""What stands between browsers and the service: which web sites may use it."""

from collections.abc import Iterable, Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from chathistory_http.wire import headers
from chathistory_http.wire.problems import MEDIA_TYPE, ProblemError, write_problem

_LOCAL = {b"localhost", b"127.0.0.1", b"[::1]"}
_ASKED = ["Authorization", "Content-Type", "If-Match", "If-None-Match", headers.TURN_ID, headers.EPOCH]
_TOLD = [
    "ETag",
    "Link",
    "Location",
    "Retry-After",
    headers.TURN_ID,
    headers.EPOCH,
    headers.RECORD_COUNT,
    headers.FIRST_POSITION,
    headers.REPLAYED,
]


def with_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """The application, for scripts of web pages from these origins too; of none where there are none."""
    if not origins:
        return app
    methods = ["GET", "HEAD", "POST", "PUT", "DELETE"]
    return CORSMiddleware(app, origins, allow_methods=methods, allow_headers=_ASKED, expose_headers=_TOLD)


class LocalOnly:
    """The application, for requests that call this machine by a name of its own.

    Where everyone is let in, a web page must not be: by a name that its owner lets point to this machine, a browser
    would take the service for a part of the page's own site.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        if scope["type"] == "http" and not _is_local(scope["headers"]):
            problem = ProblemError("misdirected", "without tokens the service answers under `localhost` alone")
            answer = Response(write_problem(problem), problem.status, media_type=MEDIA_TYPE)
            await answer(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def _is_local(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    for name, value in headers:
        if name == b"host":
            host = value[: value.rfind(b"]") + 1] or value.partition(b":")[0]
            return host.lower() in _LOCAL
    return False
