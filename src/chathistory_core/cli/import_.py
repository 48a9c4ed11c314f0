"""`chathistory import`: conversations from files, each stored once however often it is imported."""

import asyncio
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Annotated

from typer import Argument, BadParameter, Option

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.cli.error import CommandError
from chathistory_core.cli.formats import FormatName, Name, load
from chathistory_core.cli.options import Json, Options, Url, store
from chathistory_core.cli.places import parse_path
from chathistory_core.cli.progress import progress
from chathistory_core.cli.source import Source, read
from chathistory_core.cli.text import json_line, printable, put_line
from chathistory_core.codec import MessageCodec
from chathistory_core.errors import RecordError, RevisionConflictError, TooLargeError, TurnConflictError
from chathistory_core.keys import check_key
from chathistory_core.records import NO_REVISION, Limits, Record

_Plan = dict[str, Sequence[Record]]


def _check_path(path: str | None) -> str | None:
    try:
        parse_path(path or "")
    except ValueError as error:
        raise BadParameter(str(error)) from None
    return path


def import_(
    *,
    files: Annotated[
        list[str], Argument(metavar="FILE...", show_default=False, help="JSON or JSON lines; - is stdin.")
    ],
    format: FormatName,  # noqa: A002 - the option's name
    path: Annotated[
        str | None,
        Option(
            metavar="PATH",
            show_default=False,
            callback=_check_path,
            help='Where messages stand in a file, such as history, [*].traj or items["a.b"].messages.',
        ),
    ] = None,
    key: Annotated[
        str | None, Option(metavar="KEY", show_default=False, help="The key of the only conversation.")
    ] = None,
    key_prefix: Annotated[
        str, Option(metavar="TEXT", show_default=False, help="What all keys begin with; by default nothing.")
    ] = "",
    url: Url = None,
    option: Options = None,
    json: Json = False,
) -> None:
    """Store the conversations that files hold, each message as it is.

    The keys are those in the files, as export writes them, else the file's name, with a number where it holds several.
    Nothing is written before all files are read and found right. A conversation that an earlier import stored is left
    as it is, and one that holds anything else is never written to.
    """
    backend = store(url, option)
    steps = parse_path(path or "")
    sources = [source for file in files for source in read(file, steps)]  # out here, where Ctrl-C ends a read at once
    if key is not None:
        if len(sources) != 1:
            raise CommandError(
                f"--key names one conversation, and there are {len(sources)}: --key-prefix is for several"
            )
        sources = [sources[0]._replace(key=key)]
    named = [source._replace(key=key_prefix + source.key) for source in sources]
    asyncio.run(_import(backend, named, format, hint=path is None, as_json=json))


async def _import(
    backend: ChatHistoryBackend, sources: Sequence[Source], name: Name, *, hint: bool, as_json: bool
) -> None:
    plan: _Plan = {}
    for source in sources:
        if check_key(source.key) in plan:
            raise CommandError(
                f"two conversations would get the key {source.key!r}: import them apart, with --key-prefix"
            )
        plan[source.key] = await _records(source, name, hint=hint)
        list(_batches(source.key, plan[source.key], backend.limits))
    results: dict[str, str] = {}
    async with backend:
        with progress("Importing", total=len(plan)) as advance:
            for key, records in plan.items():
                results[key] = await _store(backend, key, records)
                advance()
    for key, result in results.items():
        if as_json:
            json_line({"key": key, "messages": len(plan[key]), "result": result})
        else:
            put_line(f"{result:<8}  {len(plan[key]):>8}  {printable(key)}")
    refused = list(results.values()).count("refused")
    if refused:
        raise CommandError(
            f"{refused} of {len(plan)} conversations are refused: their keys hold something else, or an import that "
            "others have continued before it was complete"
        )


async def _records(source: Source, name: Name, *, hint: bool) -> Sequence[Record]:
    try:
        return await MessageCodec().encode(source.key, load(name, source.messages))
    except RecordError as error:
        deeper = " (where messages stand deeper in the file, --path says where)" if hint else ""
        raise CommandError(f"{source.place}: {error}{deeper}") from None


def _batches(key: str, records: Sequence[Record], limits: Limits) -> Iterator[tuple[int, Sequence[Record]]]:
    """The records as few writes, each with the place of its first one."""
    start = size = 0
    for at, record in enumerate(records):
        more = len(record.payload)
        if more > limits.max_record_bytes:
            raise TooLargeError(
                f"message {at} for conversation {key!r} has {more} bytes, more than {limits.max_record_bytes}"
            )
        if at - start == limits.max_records or size + more > limits.max_bytes:
            yield start, records[start:at]
            start, size = at, 0
        size += more
    yield start, records[start:]


async def _store(backend: ChatHistoryBackend, key: str, records: Sequence[Record]) -> str:
    """What became of the conversation: stored, present since an earlier import, or refused.

    A turn's id says where in the conversation the turn stands: so the same import writes the same turns, one that was
    cut short goes on, and another conversation of this key is a conflict.
    """
    expected, fresh = NO_REVISION, False
    try:
        for start, batch in _batches(key, records, backend.limits):
            turn_id = blake2b(f"import {start}".encode(), digest_size=16).hexdigest()
            written = await backend.append(key, batch, turn_id=turn_id, expected_revision=expected)
            expected, fresh = written.revision, fresh or not written.replayed
    except (RevisionConflictError, TurnConflictError):
        return "refused"
    return "stored" if fresh else "present"
