"""What the service says of itself."""

from typing import Final, NamedTuple

from chathistory_core import Limits
from chathistory_http.wire.json_text import text_of, value_in

SERVICE: Final = "chat-history-service"
CONTRACT: Final = 1

_RECORD_BYTES: Final = 128
"""What a record takes in a body beside its payload, with a fingerprint and a format of a usual length."""


class About(NamedTuple):
    """What the service says of itself."""

    version: str
    limits: Limits


def limits_within(limits: Limits, max_body_bytes: int) -> Limits:
    """The limits, reduced so that a write of that size fits into a body whatever its payloads are.

    At worst they are base64, which adds a third. Eight parts of nine are for them, and what they leave for names.
    """
    size = min(limits.max_bytes, max_body_bytes * 2 // 3, max(1, (max_body_bytes - 2 * _RECORD_BYTES) * 3 // 4))
    records = max(1, (max_body_bytes - size * 4 // 3) // _RECORD_BYTES)
    return limits._replace(
        max_records=min(limits.max_records, records),
        max_bytes=size,
        max_record_bytes=min(limits.max_record_bytes, size),
    )


def write_about(about: About) -> bytes:
    """The body of the service's answer about itself."""
    limits = about.limits
    return text_of(
        {
            "service": SERVICE,
            "contract": CONTRACT,
            "version": about.version,
            "limits": {
                "maxRecords": limits.max_records,
                "maxBytes": limits.max_bytes,
                "maxRecordBytes": limits.max_record_bytes,
                "turnsKept": limits.turns_kept,
            },
        }
    )


def read_about(body: bytes) -> About:
    """What a service says of itself, in an answer's body.

    Raises:
        ValueError: there is something else, or the contract is another.
    """
    match value_in(body):
        case {
            "service": "chat-history-service",
            "contract": int(contract),
            "version": str(version),
            "limits": {
                "maxRecords": int(records),
                "maxBytes": int(size),
                "maxRecordBytes": int(record_size),
                "turnsKept": int(turns),
            },
        }:
            if contract == CONTRACT:
                return About(version, Limits(records, size, record_size, turns))
            raise ValueError(f"contract {contract}, where {CONTRACT} is spoken here")
    raise ValueError("no chat history service")
