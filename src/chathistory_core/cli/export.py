"""`chathistory export`: conversations as a client has them, and as import takes them."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from typer import Argument

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.cli.formats import FormatName, Name, texts
from chathistory_core.cli.options import All, Json, Options, Prefix, Url, check_selection, store
from chathistory_core.cli.progress import progress
from chathistory_core.cli.summaries import head, pages
from chathistory_core.cli.text import put_json
from chathistory_core.codec import MessageCodec
from chathistory_core.reading import iter_records
from chathistory_core.records import StoredRecord

_SLICE = 64
"""How many records are decoded and written at once."""


def export(
    *,
    keys: Annotated[list[str] | None, Argument(metavar="[KEY]...", show_default=False, help="Their keys.")] = None,
    format: FormatName,  # noqa: A002 - the option's name
    prefix: Prefix = None,
    everything: All = False,
    url: Url = None,
    option: Options = None,
    as_lines: Json = False,
) -> None:
    """Print conversations in JSON, each message that came in this format as it came.

    One key: the array of its messages. Otherwise, and always with --json, one line a conversation:
    {"key": …, "messages": […]}.
    """
    keys = list(dict.fromkeys(keys or ()))
    check_selection(keys, prefix, everything=everything)
    as_array = len(keys) == 1 and not as_lines
    asyncio.run(_export(store(url, option), format, keys, prefix or "", as_array=as_array))


async def _export(backend: ChatHistoryBackend, name: Name, keys: Sequence[str], prefix: str, *, as_array: bool) -> None:
    async with backend:
        for key in keys:
            await head(backend, key)
        with progress("Exporting", total=len(keys) or None, beside_output=True) as advance:
            async for key in _keys(backend, keys, prefix):
                put_json("[\n" if as_array else f'{{"key": {json.dumps(key, ensure_ascii=False)}, "messages": [')
                await _put_messages(backend, name, key, separator=",\n" if as_array else ", ")
                put_json("\n]\n" if as_array else "]}\n")
                advance()


async def _keys(backend: ChatHistoryBackend, keys: Sequence[str], prefix: str) -> AsyncIterator[str]:
    for key in keys:
        yield key
    if not keys:
        async for page in pages(backend, prefix=prefix):
            for summary in page:
                yield summary.key


async def _put_messages(backend: ChatHistoryBackend, name: Name, key: str, *, separator: str) -> None:
    codec = MessageCodec()
    between = ""
    async for records in _slices(backend, key):
        groups = await codec.decode(key, records)
        for text in texts(name, [message for group in groups for message in group]):
            put_json(between + text)
            between = separator


async def _slices(backend: ChatHistoryBackend, key: str) -> AsyncIterator[Sequence[StoredRecord]]:
    taken: list[StoredRecord] = []
    async for record in iter_records(backend, key):
        taken.append(record)
        if len(taken) == _SLICE:
            yield taken
            taken = []
    if taken:
        yield taken
