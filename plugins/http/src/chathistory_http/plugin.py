"""The names under which this distribution offers its backend."""

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration, hookimpl
from chathistory_http.client.token import is_token

if TYPE_CHECKING:
    from httpx import AsyncClient

DEFAULT_URL = "http://localhost:5000"
"""Where the service is, if nothing says where."""

URL_VARIABLE = "CHAT_HISTORY_SERVICE_URL"
TOKEN_VARIABLE = "CHAT_HISTORY_SERVICE_TOKEN"  # noqa: S105 - the name of one


class HTTPOptions(BackendOptions):
    """`http://host:port` or `https://host`, with a path where the service is mounted under one.

    Without a URL it is the one in the environment variable `CHAT_HISTORY_SERVICE_URL`, with the token in
    `CHAT_HISTORY_SERVICE_TOKEN`, else `http://localhost:5000`. That token goes to no URL that was given elsewhere.
    """

    url: str = DEFAULT_URL
    token: SecretStr | None = None
    """The bearer token that the service knows the client by. It stands beside the URL, never in it."""
    timeout: Duration = timedelta(seconds=60)
    """How long the service may be silent; a connection has to be there in 5 seconds."""
    max_connections: int = Field(default=32, ge=1, le=1_000)
    """Calls beyond wait for one."""
    retries: int = Field(default=2, ge=0, le=10)
    """How often a read or a write is sent again where the connection or the service failed; a `clear` never is."""

    _schemes: ClassVar[tuple[str, ...]] = ("http", "https")

    @model_validator(mode="before")
    @classmethod
    def _look_in_environment(cls, given: object) -> object:
        if not isinstance(given, Mapping) or "url" in given:
            return given
        url, token = os.environ.get(URL_VARIABLE), os.environ.get(TOKEN_VARIABLE)
        if not url:
            return given
        return {"url": url, **({"token": token} if token else {}), **given}

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        place = f", in the environment variable {URL_VARIABLE} too" if url == os.environ.get(URL_VARIABLE) else ""
        try:
            parts = urlsplit(url)
            is_address = bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number, a bracket that is left open
            parts, is_address = urlsplit(""), False
        if "@" in parts.netloc:
            raise PydanticCustomError(
                "http_credentials", f"should hold no user and no password{place}: give `token`, or pass a client"
            )
        if parts.scheme not in cls._schemes or not is_address or not re.fullmatch(r"[!-~]+", url):
            shown = " or ".join(f"{scheme}://host:port/path" for scheme in cls._schemes)
            raise PydanticCustomError("http_url", f"should be {shown}, percent-encoded{place}")
        return url

    @field_validator("token")
    @classmethod
    def _check_token(cls, token: SecretStr | None) -> SecretStr | None:
        if token is not None and not is_token(token.get_secret_value()):
            raise PydanticCustomError("http_token", "should be of ASCII characters without blanks")
        return token

    def open(self) -> ChatHistoryBackend:
        """A backend that makes a client of its own at each opening."""
        from chathistory_http.client.backend import HTTPBackend

        return HTTPBackend(self.client, token=self.token, retries=self.retries)

    def client(self) -> "AsyncClient":
        """A new client of the service; who asks for it closes it."""
        from chathistory_http.client.connecting import connect

        return connect(self.url, timeout=self.timeout, max_connections=self.max_connections)


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The client of the service."""
    return BackendPlugin(contract=1, options=HTTPOptions)
