"""Messages and records: the only place where one becomes the other."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from chathistory_core.errors import ConfigurationError, CorruptRecordError, DecodeError, UnknownFormatError
from chathistory_core.formats import chat_message, note
from chathistory_core.formats.format import Format
from chathistory_core.messages import ChatMessage
from chathistory_core.pauses import Pauses
from chathistory_core.records import Record, StoredRecord


class Codec(Protocol):
    """Makes records of messages and messages of records. Encryption and compression are codecs.

    A note is written from a message whose origin it is (`chathistory_core.formats.note`), so a codec around another one
    takes care of notes without knowing of them.
    """

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:
        """The whole batch for the conversation of this key, or nothing.

        A codec whose bytes differ from one call to the next sets each record's `fingerprint`.

        Raises:
            EncodeError: a message holds what no record can.
        """
        ...

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        """One group of messages a record: one, several or none.

        Raises:
            CorruptRecordError: a record is not what its format says.
            UnknownFormatError: a record is of no known format.
        """
        ...


class MessageCodec:
    """Writes what nobody changed as its client's own object, and everything else as `chat-message`."""

    def __init__(self, formats: Iterable[Format] | None = None) -> None:
        """`formats` are those it reads, all of this library by default."""
        ChatMessage.model_rebuild()  # where it is not built yet: no message is to wait for that
        self._formats: dict[str, Format] = {}
        for one in _all_formats() if formats is None else formats:
            if one.name in self._formats:
                raise ConfigurationError(f"format {one.name!r} is given twice: a codec has one reader a format")
            self._formats[one.name] = one

    async def encode(self, key: str, messages: Sequence[ChatMessage]) -> Sequence[Record]:  # noqa: ARG002 - these bytes are bound to no key
        """As of every codec. Of an object that gave several messages all must stand together and in order."""
        records: list[Record] = []
        index = 0
        pauses = Pauses()
        while index < len(messages):
            if pauses.due:
                await pauses.pause()
            origin = messages[index].origin
            if origin is not None and origin.format in self._formats and _stands_whole(messages, index):
                records.append(Record(origin.payload, origin.format))
                index += origin.count
            else:
                payload = chat_message.encode(messages[index], path=str(index))
                records.append(Record(payload, chat_message.name))
                index += 1
        return records

    async def decode(self, key: str, records: Sequence[StoredRecord]) -> Sequence[Sequence[ChatMessage]]:
        """As of every codec."""
        groups: list[Sequence[ChatMessage]] = []
        pauses = Pauses()
        for record in records:
            if pauses.due:
                await pauses.pause()
            reader = self._formats.get(record.format)
            if reader is None:
                raise UnknownFormatError(record.format, tuple(self._formats))
            try:
                groups.append(reader.decode(record.payload))
            except DecodeError as error:
                raise CorruptRecordError(key, record.position, str(error)) from None
        return groups


def _all_formats() -> Iterable[Format]:
    from chathistory_core.formats import agent_framework, openai_chat  # a backend alone needs neither

    return chat_message, openai_chat, agent_framework, note


def _stands_whole(messages: Sequence[ChatMessage], start: int) -> bool:
    first = messages[start].origin
    if first is None or first.index != 0 or start + first.count > len(messages):
        return False
    return all(
        (origin := messages[start + index].origin) is not None
        and (origin.format, origin.payload, origin.index) == (first.format, first.payload, index)
        for index in range(first.count)
    )
