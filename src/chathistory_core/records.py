"""What a backend keeps and answers: cheap immutable values, for a read makes thousands."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from os import urandom
from typing import Literal, NamedTuple

NO_REVISION = ""
"""The revision of a conversation that does not exist; as an expectation: "only if new"."""

Operation = Literal["append", "replace"]


def new_revision() -> str:
    """A random token of 128 bits, for a revision or an epoch: none comes back after a clear or from a backup."""
    return urandom(16).hex()


def new_turn_id() -> str:
    """A random token of 128 bits that names a turn."""
    return urandom(16).hex()


class Record(NamedTuple):
    """What a codec makes of a message: bytes that a backend keeps unread."""

    payload: bytes
    format: str
    """`name(+encoding[.keyid])*`, as in `chat-message+zstd`."""
    fingerprint: bytes | None = None
    """What stands for the payload in `turn_digest`, where encoding the same message again gives other bytes."""

    def __repr__(self) -> str:
        return f"<Record {self.format!r}, {len(self.payload)} bytes>"


class StoredRecord(NamedTuple):
    """A record and its place in a conversation."""

    payload: bytes
    format: str
    position: int
    """From 1, below 2**53, strictly increasing within an epoch; there may be gaps."""
    turn_id: str
    """The write that brought it."""
    stored_at: datetime
    """The store's clock, UTC, in microseconds: part of the record's identity, never of its order."""

    @property
    def record(self) -> Record:
        """The record as it can be written again."""
        return Record(self.payload, self.format)

    def __repr__(self) -> str:
        return f"<StoredRecord {self.position}, {self.format!r}, {len(self.payload)} bytes>"


class ConversationSummary(NamedTuple):
    """The head of a conversation."""

    key: str
    revision: str
    """Made anew by each write."""
    epoch: str
    """Made anew whenever records are taken away."""
    record_count: int
    created_at: datetime
    updated_at: datetime


class Conversation(NamedTuple):
    """A conversation's head and the records that were asked for, oldest first: one snapshot."""

    key: str
    revision: str = NO_REVISION
    epoch: str = ""
    record_count: int = 0
    """Of the whole conversation."""
    created_at: datetime | None = None
    updated_at: datetime | None = None
    records: tuple[StoredRecord, ...] = ()

    def __repr__(self) -> str:
        return f"<Conversation {self.key!r}, {len(self.records)} of {self.record_count} records>"


class Written(NamedTuple):
    """What a write did: the head after it, and where its first record stands."""

    revision: str
    epoch: str
    first_position: int
    """1 for a replace with nothing."""
    replayed: bool = False
    """The turn was stored already; the other fields are what it got then."""


class Limits(NamedTuple):
    """What a backend takes in one write, and how many turns it remembers."""

    max_records: int = 100_000
    max_bytes: int = 64 * 2**20
    max_record_bytes: int = 16 * 2**20
    turns_kept: int = 1_000
    """The newest turns of a conversation that a retry is recognised against; at least 1,000."""


def turn_digest(operation: Operation, records: Sequence[Record]) -> bytes:
    """The 16 bytes that tell a retry from another write under the same turn id.

    BLAKE2b over the operation and, for each record, the name of its base format and its fingerprint (where it has none,
    its payload), each behind its length in 8 big-endian bytes. Encodings are left out, so a record that was encrypted
    again under a new key is the same record.
    """
    digest = blake2b(digest_size=16)
    for part in _parts(operation, records):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _parts(operation: Operation, records: Sequence[Record]) -> list[bytes]:
    parts = [operation.encode()]
    for payload, format_name, fingerprint in records:
        parts.append(format_name.partition("+")[0].encode())
        parts.append(payload if fingerprint is None else fingerprint)
    return parts
