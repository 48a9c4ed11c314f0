"""Records in blocks, and back."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import NamedTuple

from chathistory_core.conditional.state import microseconds, moment
from chathistory_core.conditional.store import Block
from chathistory_core.records import Record, StoredRecord

_MOST = 64
"""Records in a group."""
_LENGTH = 4
"""Bytes that say how long a group's description is."""


class Origin(NamedTuple):
    """The write that brought records."""

    revision: str
    before: str
    """The revision of the head that it was made for: read, so committed, whatever became of this write."""
    turn_id: str
    stored_at: datetime


class Group(NamedTuple):
    """Neighbouring records of one write, which are kept together."""

    origin: Origin
    records: tuple[StoredRecord, ...]


def bound(position: int) -> str:
    """Where in a log the groups begin whose last record is at the position or behind.

    A group is named after its last record, so that a read of the newest records need not look in front of them.
    """
    return f"{position:014x}"


def pack(log: str, records: Sequence[Record], first: int, origin: Origin, *, max_block: int) -> tuple[list[Block], int]:
    """The blocks of a write, and how many records its largest group has.

    A group is cut into as many blocks as it needs, which is more than one only where a single record is too large.
    """
    blocks = []
    widest = 0
    for group in _groups(records, max_block - len(_describe(origin, ()))):
        widest = max(widest, len(group))
        body = _describe(origin, group) + b"".join(record.payload for record in group)
        first += len(group)
        blocks += [
            Block(log, f"{bound(first - 1)}.{origin.revision}.{number:06x}", body[start : start + max_block])
            for number, start in enumerate(range(0, len(body), max_block))
        ]
    return blocks, widest


def unpack(blocks: Sequence[Block]) -> list[Group]:
    """The groups of neighbouring blocks, without those of which a part is missing."""
    parts = [(*block.name.split("."), block.body) for block in blocks]
    found = []
    for (last, revision), members in groupby(parts, key=lambda part: part[:2]):
        numbers, bodies = zip(*(part[2:] for part in members), strict=True)
        if [int(number, 16) for number in numbers] != list(range(len(numbers))):
            continue
        group = _read(b"".join(bodies), int(last, 16), revision)
        if group is not None:
            found.append(group)
    return found


def names(blocks: Sequence[Block], revision: str) -> list[str]:
    """The names of the blocks that the write of this revision staged."""
    return [block.name for block in blocks if block.name.split(".")[1] == revision]


def _groups(records: Sequence[Record], room: int) -> Iterator[Sequence[Record]]:
    start, size = 0, 0
    for index, record in enumerate(records):
        own = len(record.payload) + len(record.format) + 16  # JSON's brackets, quotes and the number
        if index > start and (index - start == _MOST or size + own > room):
            yield records[start:index]
            start, size = index, 0
        size += own
    if records:
        yield records[start:]


def _describe(origin: Origin, group: Sequence[Record]) -> bytes:
    rows = [(record.format, len(record.payload)) for record in group]
    fields = (origin.before, origin.turn_id, microseconds(origin.stored_at), rows)
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    return len(text).to_bytes(_LENGTH, "big") + text


def _read(body: bytes, last: int, revision: str) -> Group | None:
    at = _LENGTH + int.from_bytes(body[:_LENGTH], "big")
    if len(body) < at:
        return None
    before, turn_id, time, rows = json.loads(body[_LENGTH:at])
    if len(body) != at + sum(size for _, size in rows):
        return None
    stored_at = moment(time)
    records = []
    for position, (format_name, size) in enumerate(rows, last - len(rows) + 1):
        records.append(StoredRecord(body[at : at + size], format_name, position, turn_id, stored_at))
        at += size
    return Group(Origin(revision, before, turn_id, stored_at), tuple(records))
