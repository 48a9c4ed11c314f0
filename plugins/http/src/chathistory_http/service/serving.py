"""The service as processes: one, or several workers on one port."""

import asyncio
import gc
import os
import signal
import socket
import sys
import tempfile
from contextlib import ExitStack
from functools import partial

import uvicorn
from starlette.types import ASGIApp
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess

from chathistory_core import ConfigurationError
from chathistory_http.service.access import Access
from chathistory_http.service.app import create_app
from chathistory_http.service.doors import LocalOnly, with_origins
from chathistory_http.service.logs import configuration
from chathistory_http.service.protocol import BoundedProtocol
from chathistory_http.service.settings import Settings, addresses

_METRICS = "PROMETHEUS_MULTIPROC_DIR"
"""Names the folder in which the workers add up what they count."""

_KEEP_ALIVE_SECONDS = 75
"""Longer than clients keep an unused connection, so that none is closed under a request."""

_START_SECONDS = 30
"""How long a worker may take to start, or to say that it is alive, before another takes its place."""

_BACKLOG = 2_048

_SHUTDOWN_SECONDS = 60
"""How long requests may take to their end when the service shall stop."""


def serve(settings: Settings) -> None:
    """Run the service until it is told to stop by SIGTERM or SIGINT; requests that are being answered are finished.

    Raises:
        ConfigurationError: it is not safe to run so, or the address is taken.
        ChatHistoryError: the store cannot be opened.
    """
    settings.check()
    make_access(settings)
    asyncio.run(_try(settings))
    with ExitStack() as stack:
        listeners = [stack.enter_context(each) for each in listen(settings.host, settings.port)]
        config = _config(settings)
        _announce(settings, listeners)
        if settings.workers == 1:
            uvicorn.Server(config).run(listeners)
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="chathistory-metrics-"))
            os.environ[_METRICS] = folder
            supervisor = Multiprocess(config, listeners)
            supervisor.run()
            if any(each.exitcode == STARTUP_FAILURE for each in supervisor.processes):
                raise SystemExit(STARTUP_FAILURE)  # the log says why; it is no end that anybody asked for


def make_app(settings: Settings) -> ASGIApp:
    """The application of one process, its store not yet opened."""
    access = make_access(settings)
    if settings.tokens_file is not None and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, lambda *_: access.reload())
    app: ASGIApp = create_app(
        settings.backend(),
        access=access,
        max_body_bytes=settings.max_body_bytes,
        body_seconds=settings.request_seconds,
    )
    app = with_origins(app, settings.cors_origins)
    gc.freeze()  # what is there by now stays: no collection needs to look at it again
    return LocalOnly(app) if settings.anonymous and settings.local and not settings.allow_anonymous else app


def make_access(settings: Settings) -> Access:
    """Who is let in."""
    return Access(settings.tokens, file=settings.tokens_file, anonymous=settings.anonymous, rate=settings.rate)


def listen(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address the name stands for, all on one port; on a free one where it is 0.

    Raises:
        ConfigurationError: the port is taken, or not for this user.
    """
    listeners: list[socket.socket] = []
    for address in addresses(host):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # so that asyncio sets TCP_NODELAY
        listeners.append(listener)
        try:
            if os.name == "posix":  # elsewhere it lets another process take the port, too
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            listener.bind((address, port))
            listener.listen(_BACKLOG)
            port = listener.getsockname()[1]
            listener.set_inheritable(True)
        except OSError as error:
            for each in listeners:
                each.close()
            raise ConfigurationError(f"port {port} of {address} cannot be listened on: {error.strerror}") from None
    return listeners


async def _try(settings: Settings) -> None:
    """Open the store once: what is wrong with it is told in one line, before any process or port is taken."""
    async with settings.backend():
        pass


def _config(settings: Settings) -> uvicorn.Config:
    return uvicorn.Config(
        partial(make_app, settings),  # which each worker is handed
        factory=True,
        backlog=_BACKLOG,
        workers=settings.workers,
        http=partial(BoundedProtocol, seconds=settings.request_seconds),  # type: ignore[arg-type]  # it is called only
        ws="none",
        lifespan="on",
        log_config=dict(configuration(settings.log_level)),
        access_log=settings.log_level in ("debug", "info"),
        server_header=False,
        proxy_headers=bool(settings.behind_proxy),
        forwarded_allow_ips=list(settings.behind_proxy),
        root_path=settings.root_path,
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        timeout_worker_healthcheck=_START_SECONDS,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def _announce(settings: Settings, listeners: list[socket.socket]) -> None:
    scheme = "http" if settings.tls_certificate is None else "https"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    access = "everyone is let in" if settings.anonymous else "with tokens"
    port = listeners[0].getsockname()[1]
    sys.stdout.write(f"The chat history service answers on {scheme}://{host}:{port}{settings.root_path}, {access}.\n")
    sys.stdout.flush()
