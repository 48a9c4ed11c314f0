"""A summary and its note."""

import json
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from chathistory_core.formats import chat_message
from chathistory_core.formats.note import Note, carrier
from chathistory_core.messages import ChatMessage


class Summary(NamedTuple):
    """What stands for the first records of a conversation."""

    text: str
    records: int
    """How many records it stands for."""
    end: str
    """The digest of the messages of the last one."""

    def __repr__(self) -> str:
        return f"<Summary of {self.records} records>"


def note_of(summary: Summary, name: str) -> ChatMessage:
    """What a codec writes as the note of a summary of this name."""
    text = json.dumps({"kind": "summary", "name": name, **summary._asdict()}, ensure_ascii=False)
    return carrier(text.encode(errors="replace"))


def is_summary_note(note: Note) -> bool:
    """Whether the note is a summary, whatever its name."""
    value = _value_in(note)
    return isinstance(value, dict) and value.get("kind") == "summary"


def read_note(group: Sequence[ChatMessage], name: str) -> Summary | None:
    """The summary of this name that a record's group is the note of; None of any other group."""
    match _value_in(group) if isinstance(group, Note) else None:
        case {"kind": "summary", "name": str(given), "text": str(text), "records": int(records), "end": str(end)}:
            return Summary(text, records, end) if given == name and records > 0 else None
    return None


def _value_in(note: Note) -> object:
    try:
        value: object = json.loads(note.payload)
    except ValueError:
        return None
    return value


def digest(messages: Sequence[ChatMessage]) -> str:
    """What tells the messages of one record from those of another, also where they are stored otherwise."""
    made = blake2b(digest_size=16)
    for message in messages:
        origin = message.origin
        payload = chat_message.encode(message) if origin is None else origin.payload
        made.update(len(payload).to_bytes(8, "big") + payload)
    return made.hexdigest()
