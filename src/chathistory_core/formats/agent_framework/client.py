"""The format's two sides: the store's `decode`, the framework's `load` and `dump`."""

import json
from collections.abc import Sequence
from typing import Any

from chathistory_core.formats.agent_framework.leftovers import NAME, thawed
from chathistory_core.formats.agent_framework.messages import TYPE, read, write
from chathistory_core.formats.agent_framework.objects import Given, parse, take
from chathistory_core.formats.agent_framework.origin import FrameworkOrigin
from chathistory_core.messages import ChatMessage
from chathistory_core.messages.message import made_of


def decode(payload: bytes) -> tuple[ChatMessage, ...]:
    """The message of one stored object, with its origin.

    Raises:
        DecodeError: it is no such object.
    """
    return (made_of(read(parse(payload, 0), 0), FrameworkOrigin(NAME, payload)),)


def load(given: Given | Sequence[Given]) -> list[ChatMessage]:
    """The messages of what the framework has, each with its origin.

    That is one message or a list of them, each a `Message`, the dict of its `to_dict`, or JSON text; also a response,
    which gives its `messages`. What `to_dict` leaves out (`raw_representation`, what is no JSON) is not kept.

    Raises:
        DecodeError: there is no message in it.
        EncodeError: it holds what no record can: a value that is not JSON, a lone surrogate, more than 200 levels.
    """
    return [
        made_of(read(value, index), FrameworkOrigin(NAME, payload))
        for index, (value, payload) in enumerate(take(given))
    ]


def dump(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The dicts that `Message.from_dict` takes, which nobody else holds.

    A message that `load` made and nobody changed is the dict it was made of, so it may hold members that a version of
    the framework older than its writer does not know. Any other message is written from the model. Marks of source are
    left out, and so is what another client's format keeps under its name; a content that the framework has no kind for
    is not among the `contents`, but is there again when the dict is loaded.

    Raises:
        EncodeError: a message holds what no record can.
    """
    return [_dumped(message, index) for index, message in enumerate(messages)]


def _dumped(message: ChatMessage, index: int) -> dict[str, Any]:
    if not isinstance(message, ChatMessage):
        raise TypeError(f"message {index} is {type(message).__name__}: what is the framework's needs no `dump`")
    origin = message.origin
    if origin is not None and origin.format == NAME:
        whole: dict[str, Any] = _reader.decode(origin.payload.decode())
        whole["type"] = TYPE  # which was `chat_message` once
        return whole
    written: dict[str, Any] = thawed(write(message, str(index)))
    return written


_reader = json.JSONDecoder()
