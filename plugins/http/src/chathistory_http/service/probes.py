"""What the service says of itself, and whether it is well."""

import asyncio
from importlib.metadata import version
from typing import Final

from chathistory_core import BackendUnavailableError
from chathistory_http.service import metrics
from chathistory_http.service.answer import JSON, JSON_UTF8, Answer
from chathistory_http.service.call import Call
from chathistory_http.service.metrics import Metrics
from chathistory_http.service.service import Service
from chathistory_http.wire.about import SERVICE, About, write_about
from chathistory_http.wire.json_text import text_of

DESCRIPTION: Final = "Keeps the histories of conversations with agents."

_SECONDS: Final = 5.0
"""How long the store may take to say that it is there."""

_KEY: Final = "chathistory/ready"
"""A conversation that nobody has; its head is asked for."""


class Probes:
    """Answers for the service itself."""

    def __init__(self, service: Service, counts: Metrics) -> None:
        self._service = service
        self._counts = counts
        self._root = text_of({"service": SERVICE, "description": DESCRIPTION})
        self._asking = asyncio.Lock()  # nobody needs a token to ask: one at a time asks the store
        self._about = write_about(About(version("chathistory-http"), service.limits))

    async def root(self, _: Call) -> Answer:
        """Its name, as in the article."""
        return Answer(200, (JSON_UTF8,), self._root)

    async def about(self, call: Call) -> Answer:
        """The contract that it speaks, and its limits: for whoever has any token."""
        self._service.let_in(call, None)
        return Answer(200, (JSON,), self._about)

    async def health(self, _: Call) -> Answer:
        """That it is alive."""
        return Answer(200, (JSON,), b'{"status":"alive"}')

    async def ready(self, _: Call) -> Answer:
        """That its store answers.

        Raises:
            ChatHistoryError: it does not.
        """
        try:
            async with asyncio.timeout(_SECONDS), self._asking:
                await self._service.backend.get(_KEY, limit=0)
        except TimeoutError:
            raise BackendUnavailableError(f"the store did not answer within {_SECONDS} seconds") from None
        return Answer(200, (JSON,), b'{"status":"ready"}')

    async def metrics(self, call: Call) -> Answer:
        """What it counted, for whoever may read that."""
        self._service.let_in(call, "metrics")
        return Answer(200, ((b"content-type", metrics.CONTENT_TYPE.encode()),), self._counts.text())
