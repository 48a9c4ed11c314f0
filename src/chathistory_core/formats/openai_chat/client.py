"""The format's two sides: the store's `decode`, the client's `load` and `dump`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from chathistory_core.formats.openai_chat.chunks import join
from chathistory_core.formats.openai_chat.leftovers import NAME
from chathistory_core.formats.openai_chat.objects import Given, parse, take
from chathistory_core.formats.openai_chat.reading import read
from chathistory_core.formats.openai_chat.writing import write
from chathistory_core.messages import ChatMessage, Origin, as_incomplete
from chathistory_core.messages.message import made_of

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam


def decode(payload: bytes) -> tuple[ChatMessage, ...]:
    """The message of one stored object, with its origin.

    Raises:
        DecodeError: it is no such object.
    """
    value, _ = parse(payload, 0)
    return (made_of(read(value, 0), Origin(NAME, payload)),)


def load(given: Given | Sequence[Given]) -> list[ChatMessage]:
    """The messages of what the client has, each with its origin.

    That is one message or a list of them, each a dict, an object of the SDK or JSON text; also a request's body, which
    gives its `messages`, and a response, which gives the message of its only choice. What stands beside messages
    (`finish_reason`, `usage`, the response's id) is not kept.

    Raises:
        DecodeError: there is no message in it.
        EncodeError: it holds what no record can: a value that is not JSON, a lone surrogate, more than 200 levels.
    """
    return [made_of(read(value, index), Origin(NAME, payload)) for index, (value, payload) in enumerate(take(given))]


def load_chunks(chunks: Sequence[Given]) -> list[ChatMessage]:
    """The message of a streamed answer, as `load` makes it of one that came whole; none where none has begun.

    An answer whose `finish_reason` has not come is marked as incomplete.

    Raises:
        DecodeError: there is no chunk in it, or there are several answers (`n`).
        EncodeError: as of `load`.
    """
    value, ended = join(chunks)
    messages = [] if value is None else load(value)
    return messages if ended else [as_incomplete(message) for message in messages]


def dump(messages: Sequence[ChatMessage]) -> "list[ChatCompletionMessageParam]":
    """What the client's `messages=` takes: plain dicts that nobody else holds.

    A message that `load` made and nobody changed is the client's own object. It lacks only what answers have and
    requests must not: `annotations`, the SDK's `parsed` and `parsed_arguments`, a `function_call` of null, `tool_calls`
    of null or of no call, and of an `audio` with an id all but the id.

    Any other message is written from the model, each result as a message of its own. Left out is what the API does not
    take: reasoning that came from another client, errors other than refusals, usage, approvals, calls and results of
    hosted tools, media of a role that has none, URIs of other media than images, contents of no known kind, and a
    message in which nothing is left. What a `tool` message says beside its results is said by `user` behind the last
    of them.
    """
    return cast("list[ChatCompletionMessageParam]", write(messages))
