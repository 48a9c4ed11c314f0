"""Conversations in files: what in a JSON text is one, and what is its key."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from chathistory_core.cli.error import CommandError
from chathistory_core.cli.places import Place, Step, elements, find, members, values

STDIN = "-"


class Source(NamedTuple):
    """A conversation as it was found."""

    key: str
    """What stands beside the messages as `key`; else the file's name, with a number where the file holds several."""
    place: str
    """What errors call it."""
    messages: Sequence[str]
    """The JSON text of each."""


def read(file: str, path: Sequence[Step]) -> Iterator[Source]:
    """The conversations of the file, where the path leads to.

    A conversation is an array of messages, or an object with such an array as its `messages`; a file holds one, an
    array of them, or one a line. Messages that stand alone, one a line or found by the path, are one conversation.

    Raises:
        CommandError: the file cannot be read, is no JSON, or holds something else.
    """
    text = _text(file)
    name = "stdin" if file == STDIN else Path(file).stem
    shown = "stdin" if file == STDIN else repr(file)
    try:
        found = list(_conversations(text, [one for whole in values(text) for one in find(text, whole, path)]))
    except CommandError as error:
        raise CommandError(f"{shown} {error}") from None
    if not any(messages for _, messages in found):
        raise CommandError(f"{shown} holds no messages{' where --path leads' if path else ''}")
    for number, (key, messages) in enumerate(found, 1):
        one = len(found) == 1
        if messages:
            place = shown if one else f"conversation {number} of {shown}"
            yield Source(key or (name if one else f"{name}-{number}"), place, messages)


def _text(file: str) -> str:
    try:
        content = sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CommandError(f"{file!r} is not UTF-8") from None
    except OSError as error:
        raise CommandError(f"{file!r} cannot be read: {error.strerror}") from None


_Found: TypeAlias = tuple[str | None, Sequence[str]]
"""The key, where one stands beside the messages, and the messages."""


def _conversations(text: str, places: Sequence[Place]) -> Iterator[_Found]:
    kinds = [_Kind(text, place) for place in places]
    if all(kind.message for kind in kinds):
        yield None, _texts(text, places)
        return
    for kind, place in zip(kinds, places, strict=True):
        if text[place.start] == "[":
            yield from _conversations(text, elements(text, place))
        elif kind.messages is not None:
            yield kind.key, _texts(text, elements(text, kind.messages))
        else:
            raise CommandError("holds other things beside conversations: --path leads to these alone")


def _texts(text: str, places: Sequence[Place]) -> list[str]:
    return [text[place.start : place.end] for place in places]


class _Kind:
    """What a value is: a message, an object that holds messages, or neither."""

    def __init__(self, text: str, place: Place) -> None:
        inside = members(text, place)
        array = inside.get("messages")
        wraps = array is not None and "role" not in inside and text[array.start] == "["
        self.messages = array if wraps else None
        self.message = text[place.start] == "{" and not wraps
        key = inside.get("key")
        self.key = (
            json.loads(text[key.start : key.end]) if wraps and key is not None and text[key.start] == '"' else None
        )
