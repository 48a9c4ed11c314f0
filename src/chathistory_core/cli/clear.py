"""`chathistory clear`: conversations away for good, after a yes."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated, NamedTuple

from typer import Argument, Option, confirm

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.cli.error import CommandError
from chathistory_core.cli.options import All, Json, Options, Prefix, Url, check_selection, store
from chathistory_core.cli.progress import progress
from chathistory_core.cli.summaries import head, pages
from chathistory_core.cli.text import json_line, put_line
from chathistory_core.reading import erase


class _Count(NamedTuple):
    conversations: int = 0
    messages: int = 0

    def __str__(self) -> str:
        return f"{_counted(self.conversations, 'conversation')} with {_counted(self.messages, 'message')}"


def clear(
    *,
    keys: Annotated[list[str] | None, Argument(metavar="[KEY]...", show_default=False, help="Their keys.")] = None,
    prefix: Prefix = None,
    everything: All = False,
    yes: Annotated[bool, Option("--yes", show_default=False, help="Do not ask.")] = False,
    url: Url = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Remove conversations for good, after a question that says how many.

    Without a terminal to ask at, --yes is needed.
    """
    keys = list(dict.fromkeys(keys or ()))
    check_selection(keys, prefix, everything=everything)
    backend = store(url, option)
    found = asyncio.run(_count(backend, keys, prefix or ""))
    if found.conversations and not yes:
        _ask(f"{found}{f' whose keys begin with {prefix!r}' if prefix else ''}")
    cleared = asyncio.run(_clear(backend, keys, prefix or "")) if found.conversations else 0
    if json:
        json_line({"cleared": cleared})
    else:
        put_line(f"{_counted(cleared, 'conversation')} cleared.")


async def _count(backend: ChatHistoryBackend, keys: Sequence[str], prefix: str) -> _Count:
    """How much there is to clear; `CommandError` where a key names nothing."""
    async with backend:
        if keys:
            return _Count(len(keys), sum([(await head(backend, key)).record_count for key in keys]))
        total = _Count()
        async for page in pages(backend, prefix=prefix):
            messages = sum(summary.record_count for summary in page)
            total = _Count(total.conversations + len(page), total.messages + messages)
        return total


def _ask(found: str) -> None:
    if not sys.stdin.isatty():
        raise CommandError(f"{found} would be cleared, and there is no terminal to ask at: say --yes")
    if not confirm(f"Clear {found}?", err=True):
        raise CommandError("nothing is cleared")


async def _clear(backend: ChatHistoryBackend, keys: Sequence[str], prefix: str) -> int:
    async with backend:
        if not keys:
            with progress("Clearing"):
                return await erase(backend, prefix, everything=not prefix)
        cleared = 0
        with progress("Clearing", total=len(keys)) as advance:
            for key in keys:
                cleared += await backend.clear(key)
                advance()
        return cleared


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
