"""How one member of the framework's contents is taken into the model, and built from it."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from chathistory_core.messages import (
    AIContent,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    UsageDetails,
    WebSearchToolCallContent,
)

Fields = Mapping[str, Any]

Read = Callable[[Any], AIContent]
"""Reads a content inside another."""

Write = Callable[[Content], Any]
"""Writes a content inside another; None where the framework has none for it."""


class Member(NamedTuple):
    """A member of a kind of content."""

    name: str
    take: Callable[[Mapping[str, Any], Read], Fields | None]
    """The model's fields that the framework's members make; None where this one has nothing for the model."""
    build: Callable[[Any, Write], Any]
    """The member of the model's content; None where there is to be none."""
    absent: Fields | None = {}  # noqa: RUF012 - never changed
    """The fields where it has nothing for the model; None where there is no such content without it."""


def text(name: str, field: str | None = None) -> Member:
    """A text that may be missing."""
    return _text(name, field or name, {})


def blank(name: str, field: str | None = None) -> Member:
    """A text that is "" in the model where it is missing."""
    return _text(name, field or name, {field or name: ""})


def needed(name: str, field: str | None = None) -> Member:
    """A text without which there is no such content."""
    return _text(name, field or name, None)


def _text(name: str, field: str, absent: Fields | None) -> Member:
    return Member(
        name,
        lambda core, _: {field: core[name]} if isinstance(core[name], str) else None,
        lambda content, _: getattr(content, field),
        absent,
    )


def contents(name: str, field: str) -> Member:
    """A list of contents, or one alone."""

    def take(core: Mapping[str, Any], read: Read) -> Fields:
        value = core[name]
        return {field: [read(one) for one in (value if isinstance(value, list) else [value])]}

    def build(content: Any, write: Write) -> Any:
        inner: Sequence[Content] | None = getattr(content, field)
        return None if inner is None else [one for one in map(write, inner) if one is not None]

    return Member(name, take, build)


def constant(name: str, value: object, *, needed: bool = False) -> Member:
    """A member that has this value, and says nothing to the model."""
    return Member(
        name,
        lambda core, _: {} if core[name] == value else None,
        lambda _content, _write: value,
        None if needed else {},
    )


def flag(name: str) -> Member:
    """True, or missing."""
    return Member(
        name,
        lambda core, _: {name: True} if core[name] is True else None,
        lambda content, _: True if getattr(content, name) else None,
    )


def compact(value: object) -> str:
    """The JSON text, other than ASCII as it is."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _object_in(value: object) -> Mapping[str, Any] | None:
    """The JSON object, also one in a text."""
    if isinstance(value, str):
        return FunctionCallContent(name="", call_id="", arguments_text=value).arguments
    return value if isinstance(value, dict) else None


def _take_arguments(core: Mapping[str, Any], _: Read) -> Fields | None:
    arguments = core["arguments"]
    if isinstance(arguments, str):
        return {"arguments_text": arguments}
    return {"arguments": arguments} if isinstance(arguments, dict) else None


def _build_arguments(content: FunctionCallContent, _: Write) -> Any:
    if content.arguments_text is not None:
        return content.arguments_text
    return {} if content.arguments is None else content.arguments  # clients refuse a call without


ARGUMENTS: Final = Member("arguments", _take_arguments, _build_arguments)
"""Of a function's call: an object, or a text that is kept as such."""

OBJECT_ARGUMENTS: Final = Member(
    "arguments",
    lambda core, _: None if (found := _object_in(core["arguments"])) is None else {"arguments": found},
    lambda content, _: content.arguments,
)
"""Of a hosted tool's call: an object, or the text of one."""


def _take_queries(core: Mapping[str, Any], _: Read) -> Fields | None:
    arguments = _object_in(core["arguments"]) or {}
    queries = arguments.get("queries", arguments.get("query"))
    if isinstance(queries, str):
        return {"queries": [queries]}
    if isinstance(queries, list) and all(isinstance(query, str) for query in queries):
        return {"queries": queries}
    return None


def _build_queries(content: WebSearchToolCallContent, _: Write) -> Any:
    if content.queries is None:
        return None
    return {"queries": [query for query in content.queries if query is not None]}


QUERIES: Final = Member("arguments", _take_queries, _build_queries)
"""Of a search of the web."""


def _take_result(core: Mapping[str, Any], _: Read) -> Fields:
    items, result = core.get("items"), core.get("result")
    if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
        said = [item["text"] for item in items if item.get("type") == "text" and isinstance(item.get("text"), str)]
        joined = "\n".join(filter(None, said))
        return {"result": joined if isinstance(result, (str, type(None))) else result}
    return {"result": result}


def result_text(content: FunctionResultContent) -> str:
    """What the framework says that a function gave back."""
    if content.result is None:
        return ""
    return content.result if isinstance(content.result, str) else compact(content.result)


RESULT: Final = (
    Member("result", _take_result, lambda content, _: result_text(content), {}),
    Member(
        "items",
        _take_result,
        lambda content, _: [{"type": "text", "text": result_text(content), "additional_properties": {}}],
    ),
)
"""Of a function: its items decide, for clients send them, and the result is their text."""

_COUNTS: Final = {
    "input_token_count": "input_token_count",
    "output_token_count": "output_token_count",
    "total_token_count": "total_token_count",
    "cache_read_input_token_count": "cached_input_token_count",
    "reasoning_output_token_count": "reasoning_token_count",
    "input_audio_token_count": "input_audio_token_count",
    "input_text_token_count": "input_text_token_count",
    "output_audio_token_count": "output_audio_token_count",
    "output_text_token_count": "output_text_token_count",
}
"""The model's field of each count that the framework or the model has a name for."""


def _take_usage(core: Mapping[str, Any], _: Read) -> Fields | None:
    given = core["usage_details"]
    if not isinstance(given, dict):
        return None
    counts = {key: count for key, count in given.items() if type(count) is int}
    named = {_COUNTS[key]: count for key, count in counts.items() if key in _COUNTS}
    others = {key: count for key, count in counts.items() if key not in _COUNTS}
    return {"details": UsageDetails(**named, additional_counts=others or None)}


def _build_usage(content: Any, _: Write) -> Any:
    details: UsageDetails = content.details
    named = {name: getattr(details, field) for name, field in _COUNTS.items()}
    return {
        **{name: count for name, count in named.items() if count is not None},
        **{name: count for name, count in (details.additional_counts or {}).items() if name not in _COUNTS},
    }


USAGE: Final = Member("usage_details", _take_usage, _build_usage, None)

MEDIA_TYPE: Final = Member(
    "media_type", lambda _core, _read: {}, lambda content, _: re.split("[;,]", content.uri[5:], maxsplit=1)[0] or None
)
"""Of data, which name it in their URI."""
