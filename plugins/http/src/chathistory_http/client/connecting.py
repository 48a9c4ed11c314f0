"""Clients of a service: made for one URL, and told where they lead."""

import os
import ssl
from datetime import timedelta
from functools import lru_cache
from typing import Final

import httpx

from chathistory_core import ConfigurationError

_CONNECT_SECONDS: Final = 5.0

_IDLE_SECONDS: Final = 30.0
"""After which a connection is made anew; the client sees before it sends where the service closed one earlier."""

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


def connect(url: str, *, timeout: timedelta, max_connections: int) -> httpx.AsyncClient:
    """A client of what is at this URL; it follows no redirection.

    Raises:
        ConfigurationError: the URL, or what the environment says of proxies and certificates, is nothing to begin with.
    """
    try:
        return _made(url, timeout, max_connections)
    except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
        kind = type(error).__name__
    raise ConfigurationError(  # out here: the driver's error may show a proxy's password
        f"no client of the service can be made ({kind}): check its URL, the authorities that SSL_CERT_FILE or "
        "SSL_CERT_DIR names, and the proxies that HTTP_PROXY, HTTPS_PROXY or ALL_PROXY names"
    )


def _made(url: str, timeout: timedelta, max_connections: int) -> httpx.AsyncClient:
    seconds = timeout.total_seconds()
    base = httpx.URL(url)
    direct: dict[str, httpx.AsyncBaseTransport | None] = {}
    if base.host in _LOOPBACK:
        direct[f"all://{base.netloc.decode()}"] = None  # a proxy, if one is configured, has a loopback of its own
    return httpx.AsyncClient(
        base_url=base,
        verify=_trust(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        timeout=httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS), pool=None),
        limits=httpx.Limits(
            max_connections=max_connections,
            max_keepalive_connections=max_connections,
            keepalive_expiry=_IDLE_SECONDS,
        ),
        mounts=direct,
    )


@lru_cache(maxsize=4)
def _trust(file: str | None, folder: str | None) -> ssl.SSLContext:  # noqa: ARG001 - what httpx looks at
    """The driver's own choice of authorities; reading them takes longer than a hundred requests."""
    return httpx.create_ssl_context()


def where(url: httpx.URL) -> str:
    """The URL's scheme, host and port: what errors may show of it."""
    return f"{url.scheme}://{url.netloc.decode()}"
