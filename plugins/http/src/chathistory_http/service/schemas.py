"""The values of the wire contract, as JSON Schema for the OpenAPI document."""

from collections.abc import Mapping
from typing import Any, Final

from chathistory_http.wire.about import CONTRACT, SERVICE
from chathistory_http.wire.problems import PROBLEMS, TYPE

Schema = Mapping[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_POSITION: Final[Schema] = {"type": "integer", "minimum": 1}
_TIME: Final[Schema] = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z$",
    "examples": ["2026-11-30T18:39:22.123456Z"],
}
_BASE64: Final[Schema] = {"type": "string", "contentEncoding": "base64"}


def ref(name: str) -> Schema:
    """A reference to one of `SCHEMAS`."""
    return {"$ref": f"#/components/schemas/{name}"}


def array(items: Schema) -> Schema:
    """An array of these."""
    return {"type": "array", "items": items}


def optional(schema: Schema) -> Schema:
    """The value, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def _object(members: Mapping[str, Schema], *, required: tuple[str, ...] | None = None, description: str = "") -> Schema:
    names = list(members) if required is None else list(required)
    schema = {"type": "object", "required": names, "properties": members}
    return {**schema, "description": description} if description else schema


_CONTENT: Final[Schema] = {
    "type": "object",
    "description": "A content of Microsoft.Extensions.AI: which one, `$type` says.",
    "properties": {
        "$type": _TEXT,
        "annotations": {"type": ["array", "null"]},
        "additionalProperties": {"type": ["object", "null"]},
    },
    "examples": [{"$type": "text", "text": "What time is it?"}],
}

_HEAD: Final[Mapping[str, Schema]] = {
    "key": _TEXT,
    "revision": {**_TEXT, "description": "Made anew by each write."},
    "epoch": {**_TEXT, "description": "Made anew whenever records are taken away."},
    "recordCount": _COUNT,
}

_RECORD: Final[Mapping[str, Schema]] = {
    "format": {
        "type": "string",
        "pattern": r"^[a-z0-9-]+(\+[a-z0-9-]+(\.[A-Za-z0-9_-]+)?)*$",
        "examples": ["chat-message"],
    },
    "payload": {**_TEXT, "description": "The record's bytes, where they are UTF-8."},
    "payloadBase64": {**_BASE64, "description": "The record's bytes, where they are not, or where this is shorter."},
}
_ONE_PAYLOAD: Final[Schema] = {"oneOf": [{"required": ["payload"]}, {"required": ["payloadBase64"]}]}

SCHEMAS: Final[Mapping[str, Schema]] = {
    "Message": _object(
        {
            "role": {"type": "string", "minLength": 1, "examples": ["user"]},
            "contents": array(ref("Content")),
            "authorName": optional(_TEXT),
            "createdAt": optional(_TEXT),
            "messageId": optional(_TEXT),
            "additionalProperties": {"type": ["object", "null"]},
        },
        required=("role",),
        description="A message of Microsoft.Extensions.AI, in its JSON.",
    ),
    "Content": _CONTENT,
    "Messages": _object({"messages": array(ref("Message"))}),
    "ArticleSummary": _object({"conversationKey": _TEXT, "messageCount": _COUNT}),
    "Record": {**_object({**_RECORD, "fingerprint": optional(_BASE64)}, required=("format",)), **_ONE_PAYLOAD},
    "Records": _object({"records": array(ref("Record"))}),
    "StoredRecord": {
        **_object(
            {**_RECORD, "position": _POSITION, "turnId": _TEXT, "storedAt": _TIME},
            required=("format", "position", "turnId", "storedAt"),
        ),
        **_ONE_PAYLOAD,
    },
    "Conversation": _object(
        {
            **_HEAD,
            "createdAt": optional(_TIME),
            "updatedAt": optional(_TIME),
            "records": array(ref("StoredRecord")),
        }
    ),
    "Summaries": _object({"summaries": array(_object({**_HEAD, "createdAt": _TIME, "updatedAt": _TIME}))}),
    "Written": _object(
        {"revision": _TEXT, "epoch": _TEXT, "firstPosition": _POSITION, "replayed": {"type": "boolean"}}
    ),
    "Cleared": _object({"cleared": {"type": "boolean"}}),
    "About": _object(
        {
            "service": {"const": SERVICE},
            "contract": {"const": CONTRACT},
            "version": _TEXT,
            "limits": _object(dict.fromkeys(("maxRecords", "maxBytes", "maxRecordBytes", "turnsKept"), _POSITION)),
        }
    ),
    "Service": _object({"service": {"const": SERVICE}, "description": _TEXT}),
    "Status": _object({"status": {"enum": ["alive", "ready"]}}),
    "Problem": _object(
        {
            "type": {"enum": [TYPE + name for name in PROBLEMS]},
            "title": _TEXT,
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "detail": _TEXT,
            "written": ref("Written"),
            "index": _COUNT,
            "path": {**_TEXT, "description": "The JSON pointer of the place inside the message `index`."},
            "position": _POSITION,
            "format": _TEXT,
        },
        required=("type", "title", "status", "detail"),
        description="What went wrong (RFC 9457). `detail` never holds content of a message.",
    ),
}
"""By name."""
