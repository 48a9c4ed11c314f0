"""How conversations lie in the server: names of keys, and what stands in them.

A shard's keys share a hash tag, so that a conversation and the listing change in one script. Under `{namespace:shard}:`

- `heads`: a hash, by conversation key; `names`, `recent` and `expiry`: sorted sets of the conversation keys;
- `records:<key>`: a list, the record at position p at index p - 1; `sizes:<key>`: a list of their lengths, kept where
  they are more than one call reads, 4 MiB or 10,000;
- `turns:<key>`: a hash of the turns that are remembered, and of their ids by number;

and under `{namespace}:store` the version of this layout and the number of shards. The scripts are the other half of
this page.
"""

from binascii import crc_hqx
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

from chathistory_core import Conversation, ConversationSummary, Record, StoredRecord

VERSION = 1

NAMESPACE = r"[^{}\x00-\x1f\x7f]+"
"""What a namespace may be, as a regular expression: braces would end its hash tag."""

MAX_SHARDS = 256
"""More help nobody: each page of the listing asks every shard."""

MAX_TTL = timedelta(days=36_525)
"""So that the instant of expiry is exact, and has 16 digits."""

_NONE = b"?"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Shard:
    """The keys of one shard."""

    tag: bytes

    def index(self, name: str) -> bytes:
        """The key of `heads`, `names`, `recent` or `expiry`."""
        return b"%b:%b" % (self.tag, name.encode())

    @cached_property
    def of_index(self) -> tuple[bytes, ...]:
        """Every key that is not of one conversation."""
        return tuple(self.index(name) for name in ("heads", "names", "recent", "expiry"))

    def of_conversation(self, key: bytes) -> tuple[bytes, ...]:
        """Every key that is of this one."""
        return tuple(b"%b:%b:%b" % (self.tag, name, key) for name in (b"records", b"sizes", b"turns"))


@dataclass(frozen=True)
class Layout:
    """A namespace, divided into shards."""

    namespace: str
    count: int

    @cached_property
    def shards(self) -> tuple[Shard, ...]:
        """All of them."""
        return tuple(Shard(f"{{{self.namespace}:{number}}}".encode()) for number in range(self.count))

    def shard_of(self, key: bytes) -> Shard:
        """The one that keeps this conversation."""
        return self.shards[crc_hqx(key, 0) % self.count]


def store_key(namespace: str) -> bytes:
    """Where the layout of a store is noted."""
    return f"{{{namespace}}}:store".encode()


def pack(records: Sequence[Record]) -> list[bytes]:
    """The records as the write script takes them."""
    return [b"%b\0%b" % (_checked(record.format), record.payload) for record in records]


def _checked(format_name: str) -> bytes:
    if "\0" in format_name:
        raise ValueError(f"{format_name!r} is no name of a format")
    return format_name.encode()


def unpack(entries: Sequence[bytes], first: int) -> list[StoredRecord]:
    """The records of a page that begins at position `first`."""
    records = []
    turn, turn_id, stored_at = b"", "", _EPOCH
    for position, entry in enumerate(entries, first):
        stamp, format_name, payload = entry.split(b"\0", 2)
        if stamp != turn:  # those of a turn stand together
            turn = stamp
            time, _, turn_id = stamp.decode().partition(" ")
            stored_at = _time(time)
        records.append(StoredRecord(payload, format_name.decode(), position, turn_id, stored_at))
    return records


def conversation(key: str, head: bytes, records: Sequence[StoredRecord]) -> Conversation:
    """What a read answers."""
    return Conversation(*summary(key, head), records=tuple(records))


def summary(key: str, head: bytes) -> ConversationSummary:
    """What a head tells."""
    count, _, created, updated, _ = head[48:].decode().split()
    return ConversationSummary(key, head[:16].hex(), epoch_of(head).hex(), int(count), _time(created), _time(updated))


def epoch_of(head: bytes) -> bytes:
    """The epoch of the conversation as the scripts take it."""
    return head[16:32]


def token(text: str | None) -> bytes:
    """A revision or epoch as the scripts take it: `*` for None, what no conversation has for one that is not ours."""
    if text is None:
        return b"*"
    try:
        value = bytes.fromhex(text)
    except ValueError:
        return _NONE
    return value if len(value) in (0, 16) and value.hex() == text else _NONE


def microseconds(time: datetime) -> int:
    """A time as the scripts reckon it."""
    return (time - _EPOCH) // _MICROSECOND


def _time(text: str) -> datetime:
    return _EPOCH + timedelta(microseconds=int(text))
