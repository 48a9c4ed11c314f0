"""What every backend checks before any I/O, said once."""

import re
from collections.abc import Iterable
from functools import lru_cache

from chathistory_core.backend import Order
from chathistory_core.errors import TooLargeError
from chathistory_core.keys import check_key, check_prefix, check_turn_id
from chathistory_core.records import Limits, Operation, Record


def check_read(key: str, limit: int | None, before: int | None, after: int | None) -> None:
    """Whether a `get` may go on; `InvalidKeyError` or `ValueError` where it may not."""
    check_key(key)
    if before is not None and after is not None:
        raise ValueError("`before` and `after` exclude each other: give one")
    for name, value in (("limit", limit), ("before", before), ("after", after)):
        _check_count(name, value)


def check_write(
    operation: Operation, key: str, records: Iterable[Record], turn_id: str, limits: Limits
) -> tuple[Record, ...]:
    """The records to write, in a tuple nobody else holds.

    Raises:
        InvalidKeyError: of the key or the turn id.
        ValueError: an append of nothing, or a record whose format is no name of one.
        TooLargeError: above `limits`.
    """
    check_key(key)
    check_turn_id(turn_id)
    batch = tuple(records)
    if operation == "append" and not batch:
        raise ValueError(f"nothing to append to conversation {key!r}: skip the call")
    if len(batch) > limits.max_records:
        raise TooLargeError(
            f"{operation} to conversation {key!r} has {len(batch)} records, more than {limits.max_records}: "
            "write them in several turns"
        )
    total = 0
    for index, record in enumerate(batch):
        if not isinstance(record, Record):
            raise TypeError(f"record {index} is {type(record).__name__}: it must be a Record")
        if not isinstance(record.payload, bytes):
            raise TypeError(f"record {index} has a payload of {type(record.payload).__name__}: it must be bytes")
        mark = record.fingerprint
        if mark is not None and not isinstance(mark, bytes):
            raise TypeError(f"record {index} has a fingerprint of {type(mark).__name__}: it must be bytes")
        if not _is_format(record.format):
            raise ValueError(
                f"record {index} for conversation {key!r} has the format {record.format!r}: "
                "it is name(+encoding[.keyid])*, names of a-z, 0-9 and -, key ids of A-Z, a-z, 0-9, _ and -"
            )
        size = len(record.payload)
        total += size
        if size > limits.max_record_bytes:
            raise TooLargeError(
                f"record {index} for conversation {key!r} has {size} bytes, more than {limits.max_record_bytes}: "
                "keep large content elsewhere and store its address"
            )
    if total > limits.max_bytes:
        raise TooLargeError(
            f"{operation} to conversation {key!r} has {total} bytes, more than {limits.max_bytes}: "
            "write the records in several turns"
        )
    return batch


def check_page(prefix: str, limit: int | None, order: Order) -> None:
    """Whether a `summaries` may go on; `InvalidKeyError` or `ValueError` where it may not."""
    check_prefix(prefix)
    _check_count("limit", limit)
    if order not in ("key", "recent"):
        raise ValueError(f"order is 'key' or 'recent', not {order!r}")


@lru_cache
def _is_format(name: str) -> bool:
    return re.fullmatch(r"[a-z0-9-]+(\+[a-z0-9-]+(\.[A-Za-z0-9_-]+)?)*", name) is not None


def _check_count(name: str, value: int | None) -> None:
    if value is None:
        return
    if not isinstance(value, int):
        raise TypeError(f"`{name}` is {type(value).__name__}: it must be an integer")
    if value < 0:
        raise ValueError(f"`{name}` is {value}: it must not be negative")
