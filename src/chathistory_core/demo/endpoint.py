"""Where the model of the demonstration is asked: on this machine, or at `OPENAI_BASE_URL`."""

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from textwrap import shorten
from urllib.parse import urlsplit

from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError

from chathistory_core.demo.error import DemoError
from chathistory_core.demo.server import serve

PLACEHOLDER_KEY = "none"
"""The client wants a key; servers on one's own machine take any."""


@dataclass(frozen=True)
class Endpoint:
    """A server that speaks the Chat Completions API."""

    base_url: str = field(repr=False)
    api_key: str = field(repr=False, default=PLACEHOLDER_KEY)
    scripted: bool = False
    """Its answers are known in advance, so what they lead to can be checked."""
    description: str = ""

    @asynccontextmanager
    async def connect(self, model: str | None) -> AsyncIterator[tuple[AsyncOpenAI, str]]:
        """A client of the server, and the name of `model`, or of the first model that the server offers."""
        transport = DefaultAsyncHttpxClient(trust_env=False) if self.scripted else None  # no proxy leads to loopback
        async with AsyncOpenAI(base_url=self.base_url, api_key=self.api_key, http_client=transport) as client:
            yield client, await self._first_model(client) if model is None else model

    async def _first_model(self, client: AsyncOpenAI) -> str:
        try:
            offered = (await client.models.list()).data
        except (AttributeError, ValueError):  # what the client makes of a page that is not JSON
            offered = []
        if not offered:
            raise DemoError(f"{self.description} lists no models: does its URL end in /v1? Or name one with --model")
        return offered[0].id


@contextmanager
def open_endpoint() -> Iterator[Endpoint]:
    """The server at `OPENAI_BASE_URL`, with the key in `OPENAI_API_KEY`; else the scripted model, started here.

    A key alone asks nobody: whoever has one set for other programs pays for nothing here.

    Raises:
        DemoError: for what the client reports while the block runs.
    """
    base_url, api_key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if base_url:
        where = f"the server at {_address(base_url)}"
        with _reported(where):
            yield Endpoint(base_url, api_key or PLACEHOLDER_KEY, description=where)
    else:
        where = "the scripted server on this machine"
        if api_key:
            where = f"{where} (OPENAI_API_KEY is not used without OPENAI_BASE_URL)"
        with serve() as url, _reported(where):
            yield Endpoint(url, scripted=True, description=where)


def _address(base_url: str) -> str:
    """The URL without what may be secret in it."""
    try:
        url = urlsplit(base_url)
        if url.scheme in {"http", "https"} and url.hostname and url.port != 0:
            return url._replace(netloc=url.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:  # a port that is no number, a bracket that is left open
        pass
    raise DemoError("OPENAI_BASE_URL is not a URL such as http://localhost:1234/v1")


@contextmanager
def _reported(who: str) -> Iterator[None]:
    try:
        yield
    except APIStatusError as error:
        reason = error.body.get("message") if isinstance(error.body, dict) else error.body
        raise DemoError(f"{who} answered with status {error.status_code}: {_short(reason or error.message)}") from None
    except OpenAIError as error:
        raise DemoError(f"{who} cannot be asked: {error}") from None


def _short(reason: object) -> str:
    return shorten(str(reason), 300, placeholder=" …")
