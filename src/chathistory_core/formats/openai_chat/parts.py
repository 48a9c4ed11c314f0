"""The parts of a message's content, both ways."""

import re
from collections.abc import Mapping
from typing import Any

from chathistory_core.formats.openai_chat.leftovers import NAME, beyond, filled, leftovers, thawed
from chathistory_core.messages import (
    AIContent,
    Content,
    DataContent,
    ErrorContent,
    HostedFileContent,
    TextContent,
    UnknownContent,
    UriContent,
)

REFUSAL = "Refusal"
"""The error code of a refusal; that of Microsoft.Extensions.AI."""

_TEXT_ONLY = frozenset({"assistant", "developer", "system"})
"""The roles from which the API takes no media."""

_DATA = re.compile(r"data:([^;,]*)[^,]*;base64,(.*)", re.DOTALL | re.IGNORECASE)
_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_FORMAT = re.compile(r"[a-z0-9]+")


def read_part(part: Any, role: str) -> AIContent:
    """The content that a part is; where writing would not restore it, one of no kind with the part in its leftovers."""
    if isinstance(part, dict):
        content = _read(part, part.get("type"), role)
        if content is not None and write_part(content, role) == [part]:
            return content
    return AIContent(additional_properties={NAME: {"content": part}})


def write_part(content: Content, role: str) -> list[Any]:
    """The part that a content is; nothing where the API takes none such from this role."""
    if isinstance(content, UnknownContent):
        return []
    rest = leftovers(content)
    if type(content) is AIContent:
        return [thawed(rest["content"])] if "content" in rest else []
    kind = rest.get("type") or _kind(content, role)
    built = _build(content, kind)
    if built is None:
        return []
    if kind == "file" and isinstance(content, DataContent) and content.name is None and not rest:
        built["file"]["filename"] = f"file.{_media_type(content.uri).rpartition('/')[2]}"  # the API wants one
    return [filled(built, rest)]


def is_refusal(content: Content) -> bool:
    """Whether the content says that the model refused, spelled by whichever client."""
    return isinstance(content, ErrorContent) and (content.error_code or "").lower() == REFUSAL.lower()


def is_part(value: object) -> bool:
    """Whether a JSON value is a part that the API knows."""
    if not isinstance(value, dict):
        return False
    match value.get("type"):
        case "text" | "refusal" as kind:
            return isinstance(value.get(kind), str)
        case "image_url" | "input_audio" | "file" as kind:
            return isinstance(value.get(kind), dict)
    return False


def _read(part: Mapping[str, Any], kind: object, role: str) -> AIContent | None:
    match part:
        case {"type": "text", "text": str(text)}:
            bare: AIContent = TextContent(text=text)
        case {"type": "refusal", "refusal": str(text)}:
            bare = ErrorContent(message=text, error_code=REFUSAL)
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            is_data = url[:5].lower() == "data:"
            bare = DataContent(uri=url) if is_data else UriContent(uri=url, media_type="image/*")
        case {"type": "input_audio", "input_audio": {"data": str(data), "format": str(form)}} if _FORMAT.fullmatch(
            form
        ):
            bare = DataContent(uri=f"data:audio/{'mpeg' if form == 'mp3' else form};base64,{data}")
        case {"type": "file", "file": {"file_id": str(file_id), **more}} if "file_data" not in more:
            bare = HostedFileContent(file_id=file_id, name=_text(more.get("filename")))
        case {"type": "file", "file": {"file_data": str(data), **more}} if data[:5].lower() == "data:":
            bare = DataContent(uri=data, name=_text(more.get("filename")))
        case _:
            return None
    rest = beyond(part, _build(bare, kind) or {})
    nameless = kind == "file" and isinstance(bare, DataContent) and bare.name is None
    if _kind(bare, role) != kind or nameless:
        rest = {"type": kind, **rest}
    return bare.model_copy(update={"additional_properties": {NAME: rest}}) if rest else bare


def _build(content: Content, kind: object) -> dict[str, Any] | None:
    match kind, content:
        case "text", TextContent():
            return {"type": "text", "text": content.text}
        case "refusal", ErrorContent():
            return {"type": "refusal", "refusal": content.message}
        case "image_url", UriContent() | DataContent():
            return {"type": "image_url", "image_url": {"url": content.uri}}
        case "input_audio", DataContent() if found := _DATA.fullmatch(content.uri):
            form = found[1].lower().rpartition("/")[2]
            return {"type": "input_audio", "input_audio": {"data": found[2], "format": _FORMATS.get(form, form)}}
        case "file", DataContent():
            return {"type": "file", "file": {**_filename(content.name), "file_data": content.uri}}
        case "file", HostedFileContent():
            return {"type": "file", "file": {"file_id": content.file_id, **_filename(content.name)}}
    return None


def _kind(content: Content, role: str) -> str | None:
    """The type of the part that a content is by itself."""
    if isinstance(content, TextContent):
        return "text"
    if role.lower() in _TEXT_ONLY:
        return None
    if isinstance(content, UriContent):
        return "image_url" if content.media_type.lower().startswith("image/") else None
    if isinstance(content, DataContent):
        top = _media_type(content.uri).partition("/")[0]
        return {"image": "image_url", "audio": "input_audio"}.get(top, "file")
    return "file" if isinstance(content, HostedFileContent) else None


def _media_type(uri: str) -> str:
    return re.split("[;,]", uri[5:], maxsplit=1)[0].lower()


def _filename(name: str | None) -> dict[str, str]:
    return {} if name is None else {"filename": name}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
