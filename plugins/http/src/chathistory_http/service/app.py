"""The service as an ASGI application."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from chathistory_core import ChatHistoryBackend, Codec
from chathistory_http.service.access import Access
from chathistory_http.service.article import Article
from chathistory_http.service.endpoint import Endpoint, Handler
from chathistory_http.service.limits import BODY_SECONDS, MAX_BODY_BYTES, Bodies
from chathistory_http.service.metrics import Metrics
from chathistory_http.service.openapi import document
from chathistory_http.service.probes import DESCRIPTION, Probes
from chathistory_http.service.records import Records
from chathistory_http.service.service import Service
from chathistory_http.service.transcript import Transcript
from chathistory_http.wire.about import limits_within
from chathistory_http.wire.keys import ABOUT, MESSAGES, RECORDS
from chathistory_http.wire.problems import MEDIA_TYPE, PROBLEMS, ProblemError, write_problem


class _Application(FastAPI):
    """An application whose own paths, which tell all that goes wrong themselves, stand before the framework.

    What the framework does for every request costs a write a tenth of its time. Middleware that is added comes before
    them all the same.
    """

    own: Sequence[Route] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request."""
        if scope["type"] == "http" and not self.user_middleware:
            path, root = scope["path"], scope.get("root_path", "")
            path = path.removeprefix(root) if root and path.startswith(f"{root}/") else path
            for route in self.own:
                if route.path_regex.match(path):
                    await route.app(scope, receive, send)
                    return
        await super().__call__(scope, receive, send)


def create_app(
    backend: ChatHistoryBackend,
    *,
    access: Access | None = None,
    codec: Codec | None = None,
    max_body_bytes: int = MAX_BODY_BYTES,
    body_seconds: float = BODY_SECONDS,
) -> FastAPI:
    """The service over a backend: the article's routes, records as they are, health, metrics and their documentation.

    The application opens the backend when it starts and closes it when it stops. Mounted in another application it is
    told of neither: that one opens the backend. Without `access` everyone may do everything. `codec` is for stores with
    records that core's own formats do not read; messages are kept as it encodes them.
    """
    service = Service(
        backend,
        access,
        Bodies(max_bytes=max_body_bytes, seconds=body_seconds),
        Transcript(codec),
        limits_within(backend.limits, max_body_bytes),
    )

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncIterator[None]:
        async with backend:
            yield

    app = _Application(
        title="chat-history-service",
        description=DESCRIPTION,
        version=version("chathistory-http"),
        lifespan=opened,
        redirect_slashes=False,
        exception_handlers={HTTPException: _refuse},
    )
    app.own = _routes(service)
    app.router.routes[:0] = app.own
    app.openapi = lambda: document(app, secured=access is not None)  # type: ignore[method-assign]  # FastAPI's own way
    return app


def _routes(service: Service) -> list[Route]:
    metrics = Metrics()
    article, records, probes = Article(service), Records(service), Probes(service, metrics)

    def route(path: str, handlers: dict[str, Handler], name: str | None = None) -> Route:
        made = Route(path, Endpoint(name or path, handlers, metrics))
        made.path_regex = re.compile(made.path_regex.pattern, re.DOTALL)  # a key may hold line breaks
        return made

    below = MESSAGES + "/{key:path}"
    return [
        route(below, article.handlers),
        route(RECORDS, records.handlers),
        route(f"{RECORDS}/", records.handlers, RECORDS),
        route(MESSAGES, article.handlers),
        route("/", {"GET": probes.root}),
        route(ABOUT, {"GET": probes.about}),
        route("/health", {"GET": probes.health}),
        route("/ready", {"GET": probes.ready}),
        route("/metrics", {"GET": probes.metrics}),
    ]


async def _refuse(_: Request, error: Exception) -> Response:
    """The answer to what no path of ours answers."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    name = next((name for name, (known, _) in PROBLEMS.items() if known == status), "internal")
    problem = ProblemError(name, "there is nothing at this path: see /docs" if name == "not-found" else "")
    headers = error.headers if isinstance(error, HTTPException) else None
    return Response(write_problem(problem), problem.status, headers, MEDIA_TYPE)
