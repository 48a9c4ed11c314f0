"""From the client's object to a message."""

from typing import Any, NoReturn

from pydantic import ValidationError

from chathistory_core.errors import DecodeError
from chathistory_core.formats.openai_chat.calls import read_call, read_legacy_call, read_result
from chathistory_core.formats.openai_chat.leftovers import NAME, beyond, leftovers
from chathistory_core.formats.openai_chat.parts import REFUSAL, read_part
from chathistory_core.messages import (
    AIAnnotation,
    AIContent,
    Annotation,
    ChatMessage,
    CitationAnnotation,
    DataContent,
    ErrorContent,
    TextContent,
    TextReasoningContent,
    TextSpanAnnotatedRegion,
)

_REASONING = ("reasoning_content", "reasoning")
"""Members in which vendors write a model's thoughts as text."""

_MAGIC = {"UklGR": "audio/wav", "T2dnU": "audio/ogg", "ZkxhQ": "audio/flac", "SUQz": "audio/mpeg", "//": "audio/mpeg"}
"""How the audio formats of answers begin, in base64: the answer does not name its format."""


def read(value: object, index: int) -> ChatMessage:
    """The message, without its origin.

    Raises:
        DecodeError: it is none; `index` is how the error calls it.
    """
    if not isinstance(value, dict):
        _refuse(index, "is no object")
    role = value.get("role")
    if not isinstance(role, str) or not role.strip():
        _refuse(index, "has no role")
    _check(value, index)
    try:
        if role in ("tool", "function"):
            return ChatMessage(role="tool", contents=[read_result(value)])
        return _spoken(value, role)
    except (ValidationError, RecursionError):  # what they say shows the content
        _refuse(index, "holds what no message can, such as too many levels")


def _refuse(index: int, reason: str) -> NoReturn:
    raise DecodeError(NAME, f"message {index} {reason}") from None


def _check(value: dict[str, Any], index: int) -> None:
    if not isinstance(value.get("content"), (str, list, type(None))):
        _refuse(index, "has content that is neither text nor a list nor null")
    if not isinstance(value.get("tool_calls"), (list, type(None))):
        _refuse(index, "has tool_calls that are no list")
    if not isinstance(value.get("tool_call_id"), (str, type(None))):
        _refuse(index, "has a tool_call_id that is no text")


def _spoken(value: dict[str, Any], role: str) -> ChatMessage:
    rest = {key: item for key, item in value.items() if key not in ("role", "content", "tool_calls")}
    contents = [
        *_reasoning(rest),
        *_annotated(_content(value, role, rest), rest),
        *_refusal(rest),
        *_audio(rest),
        *(read_call(call) for call in value.get("tool_calls") or ()),
        *_legacy_call(rest),
    ]
    author = rest.get("name")
    if isinstance(author, str) and author.strip():
        del rest["name"]
    else:
        author = None
    # Leftovers without `content` say that the object had none, which some servers ask for and others refuse.
    keep = rest or "content" not in value
    return ChatMessage(
        role=role, contents=contents, author_name=author, additional_properties={NAME: rest} if keep else None
    )


def _content(value: dict[str, Any], role: str, rest: dict[str, Any]) -> list[AIContent]:
    """The contents of the member `content`; what they cannot say, null and a list that could be text, is left over."""
    content = value.get("content")
    if isinstance(content, str):
        return [TextContent(text=content)]
    if content is None:
        if "content" in value:
            rest["content"] = None
        return []
    parts = [read_part(part, role) for part in content]
    if not parts or (len(parts) == 1 and isinstance(parts[0], TextContent) and not leftovers(parts[0])):
        rest["content"] = []
    return parts


def _reasoning(rest: dict[str, Any]) -> list[AIContent]:
    return [
        TextReasoningContent(text=rest.pop(member), additional_properties={NAME: {"member": member}})
        for member in _REASONING
        if isinstance(rest.get(member), str)
    ]


def _refusal(rest: dict[str, Any]) -> list[AIContent]:
    if isinstance(rest.get("refusal"), str):
        return [ErrorContent(message=rest.pop("refusal"), error_code=REFUSAL)]
    return []


def _audio(rest: dict[str, Any]) -> list[AIContent]:
    """The sound of an answer, and what is said in it."""
    audio: Any = rest.get("audio")
    if not isinstance(audio, dict) or not isinstance(audio.get("id"), str) or not isinstance(audio.get("data"), str):
        return []
    del rest["audio"]
    data = audio["data"]
    media_type = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "audio/pcm")
    transcript = audio.get("transcript")
    held = {"data", "transcript"} if isinstance(transcript, str) else {"data"}
    more = {key: item for key, item in audio.items() if key not in held}
    contents: list[AIContent] = [
        DataContent(uri=f"data:{media_type};base64,{data}", additional_properties={NAME: {"audio": more}})
    ]
    if isinstance(transcript, str):
        contents.append(TextContent(text=transcript, additional_properties={NAME: {"audio": {}}}))
    return contents


def _legacy_call(rest: dict[str, Any]) -> list[AIContent]:
    call = read_legacy_call(rest.get("function_call"))
    if call is not None or rest.get("function_call", ...) is None:
        del rest["function_call"]
    return [] if call is None else [call]


def _annotated(contents: list[AIContent], rest: dict[str, Any]) -> list[AIContent]:
    """The contents, the first text of them with the message's annotations."""
    if not rest.get("annotations", ...):
        del rest["annotations"]
    given = rest.get("annotations")
    for number, content in enumerate(contents):
        if isinstance(given, list) and isinstance(content, TextContent):
            del rest["annotations"]
            contents[number] = content.model_copy(update={"annotations": [_annotation(one) for one in given]})
            break
    return contents


def _annotation(value: Any) -> Annotation:
    return _citation(value) or AIAnnotation(additional_properties={NAME: {"annotations": value}})


def _citation(value: Any) -> CitationAnnotation | None:
    match value:
        case {
            "type": "url_citation",
            "url_citation": {"url": str(url), "start_index": int(start), "end_index": int(end)},
        } if not isinstance(start, bool) and not isinstance(end, bool):
            held: dict[str, Any] = {"url": url, "start_index": start, "end_index": end}
        case _:
            return None
    if isinstance(title := value["url_citation"].get("title"), str):
        held["title"] = title
    rest = beyond(value, {"type": "url_citation", "url_citation": held})
    return CitationAnnotation(
        title=held.get("title"),
        url=url,
        annotated_regions=(TextSpanAnnotatedRegion(start_index=start, end_index=end),),
        additional_properties={NAME: rest} if rest else None,
    )
