"""Messages as the article's clients send and take them, and the records that are kept of them."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from chathistory_core import (
    ChatMessage,
    Codec,
    CorruptRecordError,
    DecodeError,
    EncodeError,
    MessageCodec,
    Record,
    StoredRecord,
    UnknownFormatError,
)
from chathistory_core.formats import chat_message
from chathistory_http.service.plain import plain_payloads
from chathistory_http.service.refused import refused_in
from chathistory_http.service.splitting import Part, Parts
from chathistory_http.wire.problems import ProblemError, invalid_message, unknown_format

SLICE: Final = 64
"""How many messages are read or written between two chances for other requests."""

_ASIDE: Final = b'"chathistory.'
"""Begins the names under which a message has what .NET would drop or refuse."""

_BLANKS: Final = b" \t\r\n"


class Transcript:
    """Makes records of messages and messages of records."""

    def __init__(self, codec: Codec | None = None) -> None:
        """Without a `codec` messages are kept as `chat-message`, and read in every format that core has."""
        self._reader = MessageCodec() if codec is None else codec
        self._writer = codec

    async def records_of(self, key: str, text: str, most: int) -> Sequence[Record]:
        """The records to keep of the messages in a body, of which there may be `most`.

        Raises:
            ProblemError: bad-request, where it is something else; too-large, where there are more; invalid-message,
                where a message holds what .NET refuses.
        """
        payloads = plain_payloads(text)
        if payloads is None:
            payloads = [_payload_of(part, index) async for index, part in counted(Parts(text, "messages"), most)]
        if self._writer is None:
            return [Record(payload, chat_message.name) for payload in payloads]
        messages = [message for payload in payloads for message in chat_message.decode(payload)]
        return await self._writer.encode(key, messages)

    async def messages_of(self, key: str, records: Sequence[StoredRecord]) -> bytes:
        """The JSON array of the messages in the records; those that are `chat-message` are not looked at.

        Raises:
            ProblemError: unreadable-record, where one cannot be given as messages.
        """
        name = chat_message.name
        if all(record.format == name for record in records):
            return b"[%b]" % b",".join([record.payload for record in records])
        payloads: list[bytes] = []
        for index, record in enumerate(records):
            if index % SLICE == SLICE - 1:
                await asyncio.sleep(0)
            if record.format == name:
                payloads.append(record.payload)
            else:
                payloads.extend(await self._decoded(key, record))
        return b"[%b]" % b",".join(payloads)

    async def _decoded(self, key: str, record: StoredRecord) -> list[bytes]:
        try:
            groups = await self._reader.decode(key, [record])
        except UnknownFormatError as error:
            raise unknown_format(error, record.position) from None
        try:
            return [_written(message) for group in groups for message in group]
        except EncodeError as error:
            raise CorruptRecordError(key, record.position, error.reason) from None


def _written(message: ChatMessage) -> bytes:
    """The message as .NET takes it: as its own text, where that is so."""
    origin = message.origin
    if origin is not None and origin.format == chat_message.name:
        kept = chat_message.load(origin.payload)[0].origin
        if kept is not None:
            return kept.payload
    return chat_message.encode(message)


def _payload_of(part: Part, index: int) -> bytes:
    """What is kept of a message: its canonical form, or, where a number or time would be spelled anew, its own text."""
    try:
        if part.exact:
            (message,) = chat_message.decode(part.text.encode())
            payload = chat_message.encode(message, path=str(index))
            if _ASIDE not in payload:
                return payload
        (message,) = chat_message.load(part.text)
        if message.origin is not None:
            return message.origin.payload
        payload = chat_message.encode(message, path=str(index))
    except UnicodeEncodeError:
        raise invalid_message(str(index), "a lone surrogate") from None
    except DecodeError as error:
        raise invalid_message(str(index), error.reason) from None
    except EncodeError as error:
        raise invalid_message(error.path, error.reason) from None
    if (found := refused_in(message, part.value, payload)) is not None:
        raise invalid_message(
            f"{index}{found}", "its type is not known on .NET, a member is missing there, or a value is refused"
        )
    return payload


async def counted(parts: Iterable[Part], most: int) -> AsyncIterator[tuple[int, Part]]:
    """The parts of a body with their numbers, with chances for other requests between them.

    Raises:
        ProblemError: too-large, where there are more than `most`.
    """
    for index, part in enumerate(parts):
        if index == most:
            raise ProblemError(
                "too-large", f"a write has at most {most} messages or records: send them in several turns"
            )
        if index % SLICE == SLICE - 1:
            await asyncio.sleep(0)
        yield index, part


def check_record(record: Record, index: int) -> None:
    """Whether a record that claims to be a `chat-message` is one that .NET takes as it stands.

    Raises:
        ProblemError: invalid-message, where it is not.
    """
    try:
        (message,) = chat_message.decode(record.payload)
        if chat_message.encode(message) == record.payload:
            return
        loaded = chat_message.load(record.payload)
    except DecodeError as error:
        raise invalid_message(str(index), error.reason) from None
    except EncodeError as error:
        raise invalid_message(f"{index}{error.path[1:]}", error.reason) from None
    origin = loaded[0].origin if len(loaded) == 1 else None
    if origin is None or origin.payload != record.payload.strip(_BLANKS):
        raise invalid_message(
            str(index), "readers on .NET would not take it as it stands: send what `encode` makes of it"
        )
