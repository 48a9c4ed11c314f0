"""Records and conversations as JSON and back.

A record's payload is bytes. Where they are UTF-8 they stand as a JSON *string*, so that they come back as they were;
else, and where that is shorter, as base64.
"""

import binascii
from base64 import b64encode
from collections.abc import Iterable, Mapping
from datetime import datetime
from json.encoder import encode_basestring  # the one in C, where there is one
from typing import Final

from chathistory_core import Conversation, Record, StoredRecord
from chathistory_http.wire.json_text import value_in
from chathistory_http.wire.problems import ProblemError
from chathistory_http.wire.times import read_time, write_time

MEDIA_TYPE: Final = "application/json"


def write_records(records: Iterable[Record]) -> bytes:
    """The body that carries records to the service."""
    return b'{"records":[%b]}' % b",".join(map(_write_record, records))


def _write_record(record: Record) -> bytes:
    text = f'{{"format":{encode_basestring(record.format)},'.encode() + _write_payload(record.payload)
    if record.fingerprint is None:
        return text + b"}"
    return b'%b,"fingerprint":"%b"}' % (text, b64encode(record.fingerprint))


def _write_payload(payload: bytes) -> bytes:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return b'"payloadBase64":"%b"' % b64encode(payload)
    quoted = encode_basestring(text)
    if (len(quoted) - len(text)) * 3 > len(payload) + 12:  # what is escaped is ASCII; base64 adds a third
        return b'"payloadBase64":"%b"' % b64encode(payload)
    return b'"payload":%b' % quoted.encode()


def read_record(value: object, index: int) -> Record:
    """The record that a JSON value is; `index` is where it stands among those that are sent.

    Raises:
        ProblemError: invalid-record, where it is none.
    """
    try:
        if not isinstance(value, dict):
            raise ValueError("it is no object")  # noqa: TRY301, TRY004 - one sentence for all that a record is not
        name, mark = value.get("format"), value.get("fingerprint")
        if not isinstance(name, str):
            raise ValueError("`format` is no text")  # noqa: TRY301, TRY004
        return Record(_read_payload(value), name, None if mark is None else _from_base64(mark, "fingerprint"))
    except ValueError as error:
        raise ProblemError("invalid-record", f"record {index}: {error}", members={"index": index}) from None


def _read_payload(value: Mapping[str, object]) -> bytes:
    text, base64 = value.get("payload"), value.get("payloadBase64")
    if (text is None) == (base64 is None):
        raise ValueError("it has either `payload` or `payloadBase64`")
    if text is None:
        return _from_base64(base64, "payloadBase64")
    if not isinstance(text, str):
        raise ValueError("`payload` is no text: JSON stands there as a string")  # noqa: TRY004
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ValueError("`payload` holds a lone surrogate: use `payloadBase64`") from None


def _from_base64(text: object, name: str) -> bytes:
    if isinstance(text, str):
        try:
            return binascii.a2b_base64(text, strict_mode=True)
        except ValueError:
            pass
    raise ValueError(f"`{name}` is no base64 with padding")


def write_conversation(conversation: Conversation) -> bytes:
    """The body that carries a conversation from the service."""
    return joined(conversation, map(write_stored, conversation.records))


def joined(head: Conversation, stored: Iterable[bytes]) -> bytes:
    """The body that carries a conversation with this head, and these of `write_stored` as its records."""
    times = (head.created_at, head.updated_at)
    created, updated = ("null" if time is None else f'"{write_time(time)}"' for time in times)
    text = (
        f'{{"key":{encode_basestring(head.key)},"revision":{encode_basestring(head.revision)},'
        f'"epoch":{encode_basestring(head.epoch)},"recordCount":{head.record_count},'
        f'"createdAt":{created},"updatedAt":{updated},"records":['
    )
    return b"%b%b]}" % (text.encode(), b",".join(stored))


def write_stored(record: StoredRecord) -> bytes:
    """The JSON of a record that is stored."""
    return b'{"format":%b,%b,"position":%d,"turnId":%b,"storedAt":"%b"}' % (
        encode_basestring(record.format).encode(),
        _write_payload(record.payload),
        record.position,
        encode_basestring(record.turn_id).encode(),
        write_time(record.stored_at).encode(),
    )


def read_conversation(body: bytes) -> Conversation:
    """The conversation in an answer's body.

    Raises:
        ValueError: there is something else; the text of the error shows none of it.
    """
    match value_in(body):
        case {
            "key": str(key),
            "revision": str(revision),
            "epoch": str(epoch),
            "recordCount": int(count),
            "createdAt": created,
            "updatedAt": updated,
            "records": list(records),
        }:
            stored = tuple(map(_read_stored, records))
            return Conversation(key, revision, epoch, count, _read_time(created), _read_time(updated), stored)
    raise ValueError("no conversation")


def _read_time(value: object) -> datetime | None:
    return None if value is None else read_time(value if isinstance(value, str) else "")


def _read_stored(value: object) -> StoredRecord:
    if isinstance(value, dict):
        match value:
            case {"format": str(name), "position": int(position), "turnId": str(turn_id), "storedAt": str(time)}:
                return StoredRecord(_read_payload(value), name, position, turn_id, read_time(time))
    raise ValueError("no stored record")
