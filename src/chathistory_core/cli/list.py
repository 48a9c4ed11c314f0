"""`chathistory list`: which conversations there are."""

import asyncio
from typing import Annotated

from typer import Option

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.cli.options import Json, Options, Prefix, Url, store
from chathistory_core.cli.summaries import pages
from chathistory_core.cli.text import json_line, printable, put_line, time
from chathistory_core.records import ConversationSummary


def list_(
    *,
    recent: Annotated[
        bool, Option("--recent", show_default=False, help="The last written first, instead of by key.")
    ] = False,
    prefix: Prefix = None,
    limit: Annotated[int | None, Option(min=0, metavar="N", show_default=False, help="At most so many.")] = None,
    url: Url = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """List the conversations: when each was last written (UTC), how many messages it has, its key."""
    backend = store(url, option)
    asyncio.run(_list(backend, prefix or "", "recent" if recent else "key", limit, as_json=json))


async def _list(backend: ChatHistoryBackend, prefix: str, order: Order, limit: int | None, *, as_json: bool) -> None:
    begun = as_json
    async with backend:
        async for page in pages(backend, prefix=prefix, order=order, limit=limit):
            if not begun:
                put_line(f"{'UPDATED':<19}  {'MESSAGES':>8}  KEY")  # last, since nobody knows the longest one
                begun = True
            for summary in page:
                if as_json:
                    json_line(_object(summary))
                else:
                    put_line(f"{time(summary.updated_at)}  {summary.record_count:>8}  {printable(summary.key)}")


def _object(summary: ConversationSummary) -> dict[str, object]:
    times = {"created_at": summary.created_at.isoformat(), "updated_at": summary.updated_at.isoformat()}
    return summary._asdict() | times
