"""Messages as people read them: a heading, and what is said under it, indented, so that no content looks like one."""

import json
from collections.abc import Iterator

from chathistory_core.cli.text import printable, printable_lines, time
from chathistory_core.messages import (
    AIContent,
    ChatMessage,
    Content,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    Json,
    KnownContent,
    TextContent,
    TextReasoningContent,
    UriContent,
)
from chathistory_core.records import StoredRecord

_INDENT = "    "


def heading(record: StoredRecord, message: ChatMessage) -> str:
    """Where the message stands, who speaks, and when it was stored."""
    author = f" ({printable(message.author_name)})" if message.author_name else ""
    return f"{record.position} {printable(message.role)}{author}, {time(record.stored_at)}"


def body(message: ChatMessage) -> Iterator[str]:
    """The lines of what is said, called and answered."""
    for content in message.contents:
        for line in printable_lines(_said(content)):
            yield _INDENT + line if line else ""


def _said(content: Content) -> str:
    match content:
        case TextContent():
            return content.text
        case TextReasoningContent():
            return f"[thinking] {content.text}"
        case ErrorContent():
            return f"[error{_after(content.error_code)}] {content.message}"
        case FunctionCallContent():
            text = content.arguments_text
            arguments = _json(content.arguments or {}) if text is None else text
            return f"[call{_after(content.call_id)}] {content.name} {arguments}"
        case FunctionResultContent():
            result = content.result if isinstance(content.result, str) else _json(content.result)
            return f"[result{_after(content.call_id)}] {result}"
        case DataContent():
            head, _, data = content.uri.partition(",")
            kind = head.removeprefix("data:").removesuffix(";base64")
            return f"[data {kind}, {len(data) * 3 // 4 - data[-2:].count('='):,} bytes{_after(content.name)}]"
        case UriContent():
            return f"[{content.media_type}] {content.uri}"
        case HostedFileContent():
            return f"[file {content.file_id}{_after(content.name)}]"
    return f"[{_kind(content)}]"


def _kind(content: Content) -> str:
    """The name of a kind that shows no more than that."""
    if isinstance(content, KnownContent):
        return content.type
    return "content of no kind" if isinstance(content, AIContent) else "unknown content"


def _after(word: str | None) -> str:
    return f" {word}" if word else ""


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)
