"""The formats that files are read and written in."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Annotated, Literal, Protocol, TypeAlias

from typer import Option

from chathistory_core.cli.text import in_one_line
from chathistory_core.formats import agent_framework, chat_message, openai_chat
from chathistory_core.messages import ChatMessage

Name: TypeAlias = Literal["openai-chat", "agent-framework", "chat-message"]

FormatName = Annotated[
    Name,
    Option(
        show_default=False,
        help="The form of the messages: of Chat Completions, of Microsoft Agent Framework for Python, or of "
        "Microsoft.Extensions.AI.",
    ),
]


class ClientFormat(Protocol):
    """A format that has a client's side."""

    def load(self, source: str, /) -> Sequence[ChatMessage]:
        """The messages of a JSON array."""
        ...

    def dump(self, messages: Sequence[ChatMessage], /) -> Sequence[Mapping[str, object]]:
        """What the client takes."""
        ...


_FORMATS: Mapping[Name, ClientFormat] = {
    "openai-chat": openai_chat,
    "agent-framework": agent_framework,
    "chat-message": chat_message,
}


def load(name: Name, messages: Sequence[str]) -> Sequence[ChatMessage]:
    """The messages of these JSON texts; `RecordError` where one is none of this format."""
    return _FORMATS[name].load(f"[{','.join(messages)}]")


def texts(name: Name, messages: Sequence[ChatMessage]) -> Iterator[str]:
    """The JSON text of each message, in one line: what came in this format as it came, anything else as it is sent."""
    for kept, group in groupby(messages, lambda message: message.origin is not None and message.origin.format == name):
        if kept:
            yield from (in_one_line(message.origin.payload.decode()) for message in group if message.origin is not None)
        else:
            yield from (json.dumps(one, ensure_ascii=False) for one in _FORMATS[name].dump(list(group)))
