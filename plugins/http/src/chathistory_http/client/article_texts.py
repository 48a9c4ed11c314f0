"""What a server with only the article's routes keeps and tells, as a backend's values."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Final

from chathistory_core import (
    ConfigurationError,
    ConversationSummary,
    MessageCodec,
    Record,
    StoredRecord,
    UnknownFormatError,
)
from chathistory_core.formats import chat_message

UNTOLD: Final = "untold"
"""The revision where the server does not say enough to know it: no conversation is at it."""

EMPTY: Final = "empty"
"""The revision of a conversation that is listed and has no messages."""

NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The server keeps no times."""


async def write_messages(key: str, batch: Sequence[Record]) -> list[bytes]:
    """The JSON text of the records' messages: the server keeps nothing else.

    Raises:
        ConfigurationError: a record is of a format that cannot become messages here.
    """
    placed = [StoredRecord(*record[:2], position, "", NO_TIME) for position, record in enumerate(batch, 1)]
    try:
        groups = await MessageCodec().decode(key, [one for one in placed if one.format != chat_message.name])
    except UnknownFormatError as error:
        raise ConfigurationError(
            f"a server that has only the article's routes keeps messages alone, and no record of the format "
            f"{error.format!r}: leave the codec out"
        ) from None
    others = iter(groups)
    found: list[bytes] = []
    for record in batch:
        if record.format == chat_message.name:
            found.append(record.payload)
        else:
            found += map(chat_message.encode, next(others))
    return found


def read_messages(body: bytes) -> list[StoredRecord]:
    """The messages of an answer as records.

    Their turn ids are a chain of hashes: two of them are the same where all that stands up to there is.

    Raises:
        ValueError: there is something else; the text of the error shows none of it.
    """
    stored: list[StoredRecord] = []
    digest = blake2b(digest_size=16)
    for payload in _texts(body.decode("utf-8-sig")):
        digest.update(len(payload).to_bytes(8, "big") + payload)
        stored.append(StoredRecord(payload, chat_message.name, len(stored) + 1, digest.hexdigest(), NO_TIME))
    return stored


_SCANNER: Final = json.JSONDecoder()
_BETWEEN: Final = re.compile(r"[ \t\r\n,]*")


def _texts(text: str) -> Iterator[bytes]:
    """The JSON text of each element of a list."""
    if not isinstance(_value(text), list):
        raise ValueError("no list of messages")  # noqa: TRY004 - of what came, not of wrong use
    at = text.index("[") + 1
    while text[at := _end(text, at)] != "]":
        _, end = _SCANNER.raw_decode(text, at)
        yield text[at:end].encode()
        at = end


def _end(text: str, at: int) -> int:
    """Where what stands between elements ends."""
    found = _BETWEEN.match(text, at)
    return at if found is None else found.end()


def _value(text: str | bytes) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError("no JSON") from None
    return value


def read_summaries(body: bytes) -> list[ConversationSummary]:
    """The heads in an answer, as far as the server tells them; `ValueError` as of `read_messages`."""
    match _value(body.removeprefix(b"\xef\xbb\xbf")):
        case list(values):
            return list(map(_read_summary, values))
    raise ValueError("no list of conversations")


def _read_summary(value: object) -> ConversationSummary:
    match value:
        case {"conversationKey": str(key), "messageCount": int(count)}:
            key = re.sub("%2F", "/", key, flags=re.IGNORECASE)
            return ConversationSummary(key, UNTOLD, "", count, NO_TIME, NO_TIME)
    raise ValueError("no conversation")


def chosen(
    stored: Sequence[StoredRecord], limit: int | None, before: int | None, after: int | None
) -> Sequence[StoredRecord]:
    """Those of all that `get` of a backend would give."""
    if after is not None:
        return stored[after:][:limit]
    found = stored if before is None else stored[: max(0, before - 1)]
    return found if limit is None else found[max(0, len(found) - limit) :]
