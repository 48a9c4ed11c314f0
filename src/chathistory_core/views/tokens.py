"""How much of a model's context a message takes: an estimate, or tiktoken's count."""

import json
from collections.abc import Callable, Iterator, Sequence
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

from chathistory_core.messages import (
    ChatMessage,
    CodeInterpreterToolCallContent,
    CodeInterpreterToolResultContent,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    ImageGenerationToolResultContent,
    Json,
    McpServerToolCallContent,
    McpServerToolResultContent,
    TextContent,
    TextReasoningContent,
    UriContent,
    WebSearchToolCallContent,
    WebSearchToolResultContent,
)

if TYPE_CHECKING:
    from tiktoken import Encoding

CountTokens: TypeAlias = Callable[[ChatMessage], int]
"""How many tokens a message takes."""

_PER_MESSAGE = 4
"""Its role and what parts it from the next."""

_PER_MEDIUM = 1_000
"""An image of a million pixels; other media are anybody's guess."""

_ASCII_PER_TOKEN = 4


def estimate_tokens(message: ChatMessage) -> int:
    """Four ASCII characters a token, other characters one each; 4 for the message, 1,000 for each image or file.

    For text in European languages and for code that is a little much, for Chinese or Japanese close. What is rather too
    high cuts early and fails never.
    """
    plain = other = 0
    for text in texts(message):
        ascii_count = len(text.encode("ascii", "ignore"))
        plain += ascii_count
        other += len(text) - ascii_count
    return _PER_MESSAGE + _media(message) + ceil(plain / _ASCII_PER_TOKEN) + other


def tiktoken_counter(encoding: "str | Encoding" = "o200k_base") -> CountTokens:
    """Counts text with tiktoken, and 4 for the message, 1,000 for each image or file.

    `encoding` is the name of one, which tiktoken may have to fetch, or an encoding.

    Raises:
        ImportError: tiktoken is not installed.
    """
    try:
        import tiktoken
    except ImportError:
        raise ImportError('tiktoken is missing: pip install "chathistory-core[tiktoken]"') from None
    chosen = tiktoken.get_encoding(encoding) if isinstance(encoding, str) else encoding

    def count(message: ChatMessage) -> int:
        said = sum(len(chosen.encode_ordinary(text)) for text in texts(message))
        return _PER_MESSAGE + _media(message) + said

    return count


def size(message: ChatMessage) -> int:
    """Its bytes: of text, calls, results and data in UTF-8, without what JSON puts around them."""
    data = sum(len(content.uri) for content in _contents(message.contents) if isinstance(content, DataContent))
    return data + sum(len(text.encode("utf-8", "surrogatepass")) for text in texts(message))


def texts(message: ChatMessage) -> Iterator[str]:
    """What a model reads of the message as text: all but media."""
    if message.author_name:
        yield message.author_name
    for content in _contents(message.contents):
        match content:
            case TextContent():
                yield content.text
            case TextReasoningContent():
                yield content.text
                yield content.protected_data or ""
            case ErrorContent():
                yield content.message
            case FunctionCallContent() | McpServerToolCallContent():
                yield content.name
                yield _arguments(content)
            case FunctionResultContent():
                yield _text(content.result)
            case WebSearchToolCallContent():
                yield from (query for query in content.queries or () if query)


def _arguments(call: FunctionCallContent | McpServerToolCallContent) -> str:
    text = call.arguments_text if isinstance(call, FunctionCallContent) else None
    return _text(call.arguments or {}) if text is None else text


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _media(message: ChatMessage) -> int:
    media = (DataContent, UriContent, HostedFileContent)
    return _PER_MEDIUM * sum(isinstance(content, media) for content in _contents(message.contents))


def _contents(contents: Sequence[Content]) -> Iterator[Content]:
    """The contents, and those that hosted tools were given or gave back."""
    for content in contents:
        yield content
        match content:
            case CodeInterpreterToolCallContent():
                yield from _contents(content.inputs or ())
            case (
                McpServerToolResultContent()
                | CodeInterpreterToolResultContent()
                | ImageGenerationToolResultContent()
                | WebSearchToolResultContent()
            ):
                yield from _contents(content.outputs or ())
