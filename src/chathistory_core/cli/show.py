"""`chathistory show`: what was said in a conversation."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from typer import Argument, Option

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.cli.options import Json, Options, Url, store
from chathistory_core.cli.summaries import head, unknown
from chathistory_core.cli.text import json_line, put_heading, put_line
from chathistory_core.cli.transcript import body, heading
from chathistory_core.codec import MessageCodec
from chathistory_core.formats import chat_message
from chathistory_core.messages import ChatMessage
from chathistory_core.reading import iter_records
from chathistory_core.records import NO_REVISION, StoredRecord


def show(
    *,
    key: Annotated[str, Argument(metavar="KEY", show_default=False, help="The conversation's key.")],
    limit: Annotated[
        int | None, Option(min=0, metavar="N", show_default=False, help="The newest so many records alone.")
    ] = None,
    url: Url = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Show a conversation: its messages, oldest first, each with its position, role, author and time (UTC)."""
    asyncio.run(_show(store(url, option), key, limit, as_json=json))


async def _show(backend: ChatHistoryBackend, key: str, limit: int | None, *, as_json: bool) -> None:
    codec = MessageCodec()
    async with backend:
        async for record in _records(backend, key, limit):
            for message in (await codec.decode(key, [record]))[0]:
                if as_json:
                    json_line(_object(record, message))
                else:
                    put_heading(heading(record, message))
                    for line in body(message):
                        put_line(line)
                    put_line()


async def _records(backend: ChatHistoryBackend, key: str, limit: int | None) -> AsyncIterator[StoredRecord]:
    if limit is None:
        await head(backend, key)
        async for record in iter_records(backend, key):
            yield record
        return
    found = await backend.get(key, limit=limit)
    if found.revision == NO_REVISION:
        raise unknown(key)
    for record in found.records:
        yield record


def _object(record: StoredRecord, message: ChatMessage) -> dict[str, object]:
    [written] = chat_message.dump([message])
    return {
        "position": record.position,
        "turn_id": record.turn_id,
        "stored_at": record.stored_at.isoformat(),
        "format": record.format,
        "message": written,
    }
