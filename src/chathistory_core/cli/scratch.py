"""Stores to be tested: what is made of a URL so that no conversation of the user's is touched."""

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Self
from urllib.parse import quote, unquote, urlsplit

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.cli.error import CommandError
from chathistory_core.opening import open_backend
from chathistory_core.reading import erase
from chathistory_core.records import new_turn_id

_PORTS = {"http": 80, "postgres": 5432, "postgresql": 5432, "redis": 6379, "valkey": 6379}
"""Where a server is that stands in a URL without its port."""


@dataclass(frozen=True)
class Opener:
    """Makes another unopened backend at each call, in another process too; its `repr` shows no password."""

    url: str = field(repr=False)
    options: Mapping[str, str] = field(repr=False)

    def __call__(self) -> ChatHistoryBackend:
        """The backend, not yet opened."""
        return open_backend(self.url, options=self.options)

    @property
    def scheme(self) -> str:
        """What the URL begins with."""
        return self.url.partition("://")[0].lower()

    @property
    def server(self) -> str | tuple[str, int] | None:
        """The socket, or the host and port, that the URL names; None where it names no server."""
        if self.scheme in {"memory", "sqlite"}:
            return None
        parts = urlsplit(self.url.partition("?")[0])
        if self.scheme == "unix":
            return unquote(parts.path) or None
        port = parts.port or _PORTS.get(self.scheme)
        return None if parts.hostname is None or port is None else (parts.hostname, port)

    def through(self, address: str | tuple[str, int]) -> Self:
        """The same by way of another address."""
        before, _, query = self.url.partition("?")
        parts = urlsplit(before)
        user, at, _ = parts.netloc.rpartition("@")
        if isinstance(address, str):
            parts = parts._replace(path=quote(address))
        else:
            parts = parts._replace(netloc=f"{user}{at}{address[0]}:{address[1]}")
        return type(self)(f"{parts.scheme}://{parts.netloc}{parts.path}{f'?{query}' if query else ''}", self.options)


class Scratch:
    """Empty stores of the kind that a URL names, one after the other, in a `with`.

    A memory store is one of its own. Of SQLite each is a new file in a folder beside the file that is named, on the
    same disk. Any other is the store itself: it must be empty, or may be emptied because that was said, and is emptied
    each time and at the end.
    """

    def __init__(self, opener: Opener, *, may_empty: bool) -> None:
        self._opener = opener
        self._may_empty = may_empty
        self._numbers = count(1)
        self._folder: Path | None = None
        self._name = f"check-{new_turn_id()}"

    @property
    def where(self) -> str:
        """Which stores these are, in words."""
        return {"memory": "new stores in memory", "sqlite": "new files beside the one that is named"}.get(
            self._opener.scheme, "the store itself, emptied"
        )

    def __enter__(self) -> Self:
        if self._opener.scheme == "sqlite":
            beside = Path(unquote(self._opener.url.partition("?")[0].removeprefix("sqlite:///"))).absolute().parent
            if not beside.is_dir():
                raise CommandError(f"the folder {str(beside)!r} does not exist: make it first")
            self._folder = Path(tempfile.mkdtemp(prefix=".check-", dir=beside))
        elif self._opener.scheme != "memory" and not self._may_empty:
            asyncio.run(self._refuse_others())
        return self

    def __exit__(self, *_: object) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        elif self._opener.scheme != "memory":
            asyncio.run(self._empty())

    def fresh(self) -> Opener:
        """How to open the next store, which is empty."""
        query = self._opener.url.partition("?")[2]
        query = f"?{query}" if query else ""
        if self._folder is not None:
            path = quote((self._folder / f"{next(self._numbers)}.db").as_posix())
            return Opener(f"sqlite:///{path}{query}", self._opener.options)
        if self._opener.scheme == "memory":
            return Opener(f"memory://{self._name}-{next(self._numbers)}{query}", self._opener.options)
        asyncio.run(self._empty())
        return self._opener

    async def _refuse_others(self) -> None:
        async with self._opener() as backend:
            if await backend.summaries(limit=1):
                raise CommandError(
                    "the store holds conversations, and a check empties it: name an empty one (another database, "
                    "namespace or folder), or say --scratch where they may go"
                )

    async def _empty(self) -> None:
        async with self._opener() as backend:
            await erase(backend, "", everything=True)


def parse_options(given: list[str] | None) -> Mapping[str, str]:
    """The options of the command line, by name."""
    return {name: value for name, _, value in (option.partition("=") for option in given or ())}
