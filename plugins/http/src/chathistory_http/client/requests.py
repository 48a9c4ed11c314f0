"""Requests to the service: sent, repeated where they may be, and their answers read."""

import asyncio
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from random import uniform
from typing import Final, TypeVar

import httpx
from pydantic import SecretStr

from chathistory_core import BackendStateError
from chathistory_http.client.failures import DRIVER_ERRORS, Request, failure, refusal, unreadable

T = TypeVar("T")

LARGE: Final = 2**20
"""Bytes of a body above which it is written and read beside the loop, where the loop would stand still for long."""

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5
"""Seconds before a repetition, where the service names none; between them it doubles."""

_LONGEST_WAIT: Final = 10.0
"""Seconds that the service may ask to wait; where it is more, the caller is told at once."""

_TRANSIENT: Final = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)

_NOT_REPEATED: Final = (httpx.ReadTimeout, httpx.WriteTimeout, httpx.UnsupportedProtocol, httpx.LocalProtocolError)
"""The first two have taken long enough already."""


class Requests:
    """What is sent through one client, in the loop where that is used."""

    def __init__(self, client: httpx.AsyncClient, *, token: SecretStr | None, retries: int) -> None:
        """The token goes with every request, and nowhere else: no redirection is followed."""
        self._client = client
        self._headers = {} if token is None else {"Authorization": f"Bearer {token.get_secret_value()}"}
        self._retries = retries

    @property
    def url(self) -> httpx.URL:
        """Where they go."""
        return self._client.base_url

    async def ask(
        self,
        request: Request,
        method: str,
        target: str,
        read: Callable[[bytes], T],
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> T:
        """What `read` makes of the answer's body; its `ValueError` says that there is something else.

        `target` is a path, from the service's root, and a query, both percent-encoded.
        """
        response = await self.send(request, method, target, headers=headers, body=body)
        if not response.is_success:
            raise refusal(response, request)
        answer = response.content
        try:
            return read(answer) if len(answer) <= LARGE else await asyncio.to_thread(read, answer)
        except ValueError as error:
            raise unreadable(response, request, error) from None

    async def send(
        self,
        request: Request,
        method: str,
        target: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx.Response:
        """The answer, whatever its status, where no repetition brings another; see `ask`."""
        if self._client.is_closed:
            raise BackendStateError(f"the client was closed by its owner: the service cannot {request.action}")
        sent = self._client.build_request(method, target, content=body, headers={**self._headers, **(headers or {})})
        left = self._retries if request.again == "safe" else 0
        pause = _FIRST_PAUSE
        while True:
            try:
                response = await self._client.send(sent, follow_redirects=False)
            except DRIVER_ERRORS as error:
                if not left or isinstance(error, _NOT_REPEATED):
                    raise failure(error, request, self.url) from None
                wait: float | None = None
            else:
                wait = _wait(response)
                if not left or not _is_transient(response, wait):
                    return response
            left -= 1
            await asyncio.sleep(uniform(pause / 2, pause) if wait is None else wait)  # noqa: S311 - no secret
            pause = min(2 * pause, _LONGEST_PAUSE)


def _is_transient(response: httpx.Response, wait: float | None) -> bool:
    if wait is None:
        return response.status_code in _TRANSIENT
    return wait <= _LONGEST_WAIT and response.status_code in (*_TRANSIENT, HTTPStatus.TOO_MANY_REQUESTS)


def _wait(response: httpx.Response) -> float | None:
    """The seconds in `Retry-After`; None where there are none."""
    text = response.headers.get("Retry-After", "")
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        time = parsedate_to_datetime(text)
    except ValueError:
        return None
    return max(0.0, (time.replace(tzinfo=time.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
