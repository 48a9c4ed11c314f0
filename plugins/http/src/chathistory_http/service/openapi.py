"""The OpenAPI document."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI

from chathistory_core.keys import MAX_KEY_BYTES, MAX_TURN_ID_BYTES
from chathistory_http.service.metrics import CONTENT_TYPE as METRICS_TYPE
from chathistory_http.service.schemas import SCHEMAS, Schema, array, ref
from chathistory_http.wire import headers, problems
from chathistory_http.wire.keys import ABOUT, MESSAGES, RECORDS

Part = dict[str, Any]

_JSON: Final = "application/json"
_ALWAYS: Final = (400, 401, 403, 421, 429, 431, 500, 503)
"""What any path may answer; some of it is told before the service is asked, or when its access is limited."""


def document(app: FastAPI, *, secured: bool) -> Part:
    """The document of the service's own paths; `secured` where tokens are asked for."""
    found: Part = {
        "openapi": "3.1.0",
        "info": {"title": app.title, "version": app.version, "description": app.description},
        "paths": _paths(),
        "components": {"schemas": dict(SCHEMAS)},
    }
    if app.root_path:
        found["servers"] = [{"url": app.root_path}]
    if secured:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _paths() -> Part:
    in_path = {"name": "key", "in": "path", "required": True, "schema": _KEY, "description": _KEY_HELP}
    below = {**_conversation(), "parameters": [in_path]}
    return {
        "/": _reading("The service's name", _json(ref("Service")), public=True),
        MESSAGES: {**_conversation(listing=_MESSAGE_LIST), "parameters": [_OPTIONAL_KEY]},
        f"{MESSAGES}/{{key}}": below,
        RECORDS: {**_records(), "parameters": [_OPTIONAL_KEY]},
        ABOUT: _reading("The contract it speaks, and its limits", _json(ref("About"))),
        "/health": _reading("Whether it is alive", _json(ref("Status")), public=True),
        "/ready": _reading("Whether its store answers", _json(ref("Status")), public=True),
        "/metrics": _reading("What it counted, for Prometheus", {METRICS_TYPE: {"schema": {"type": "string"}}}),
    }


def _json(schema: Schema) -> Part:
    return {_JSON: {"schema": schema}}


_KEY: Final[Schema] = {"type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES}
_KEY_HELP: Final = (
    f"1 to {MAX_KEY_BYTES} bytes of UTF-8, percent-encoded; `/` may stand as it is. With a segment `.` or `..`, and "
    "with a last or a doubled `/`, it goes as `?key=`."
)
_MESSAGE_LIST: Final = array({"anyOf": [ref("ArticleSummary"), ref("Message")]})
_RECORD_LIST: Final[Schema] = {"anyOf": [ref("Summaries"), ref("Conversation")]}


def _query(name: str, schema: Schema, description: str) -> Part:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _header(name: str, schema: Schema, description: str, *, required: bool = False) -> Part:
    return {"name": name, "in": "header", "required": required, "schema": schema, "description": description}


_NUMBER: Final[Schema] = {"type": "integer", "minimum": 0, "maximum": 2**53}
_TEXT: Final[Schema] = {"type": "string"}
_ETAGS: Final[Schema] = {"type": "string", "examples": ['"0123456789abcdef"', "*"]}
_ENCODED: Final[Schema] = {"type": "string", "pattern": "^([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2})+$"}

_OPTIONAL_KEY: Final = _query("key", _KEY, "A conversation's key; without it, the conversations are listed.")
_LIMIT: Final = _query("limit", _NUMBER, "How many, at most; everything without it.")
_BEFORE: Final = _query("before", _NUMBER, "Those before this position, the newest `limit` of them.")
_AFTER: Final = _query("after", _NUMBER, "Those behind this position, the first `limit` of them.")
_LISTING: Final = [
    _query("prefix", {"type": "string", "maxLength": MAX_KEY_BYTES}, "What the keys begin with."),
    _query("after", _TEXT, "The last key of the page before."),
    _query("after_updated_at", _TEXT, "The `updatedAt` of the same conversation, with `order=recent`."),
    _query("order", {"enum": ["key", "recent"]}, "By key (the default), or the newest first."),
]
_IF_MATCH: Final = _header("If-Match", _ETAGS, "Only at this revision.")
_IF_NONE_MATCH: Final = _header("If-None-Match", _ETAGS, "When reading, only at another revision; when writing, `*`.")
_TURN: Final[Schema] = {**_ENCODED, "maxLength": 3 * MAX_TURN_ID_BYTES}
_EPOCH: Final = _header(headers.EPOCH, _TEXT, "Only while no records were taken away: the epoch that was read.")

_RESULTS: Final = {
    "ETag": "The revision, percent-encoded, in quotes.",
    headers.EPOCH: "Changes whenever records are taken away.",
}


def _fields(*more: str) -> Part:
    return {name: {"schema": _TEXT, "description": text} for name, text in _RESULTS.items()} | {
        name: {"schema": _TEXT} for name in more
    }


_WRITTEN: Final = (headers.FIRST_POSITION, headers.REPLAYED, headers.TURN_ID)


def _answers(good: Mapping[int, Part], *bad: int) -> Part:
    problem = {problems.MEDIA_TYPE: {"schema": ref("Problem")}}
    told = {status: {"description": HTTPStatus(status).phrase, "content": problem} for status in {*_ALWAYS, *bad}}
    return {str(status): answer for status, answer in sorted({**told, **good}.items())}


def _headless(answers: Part) -> Part:
    """The answers to HEAD, which have no body."""
    return {status: {k: v for k, v in answer.items() if k != "content"} for status, answer in answers.items()}


def _reading(summary: str, content: Part, *, public: bool = False) -> Part:
    answers = _answers({200: {"description": "It", "content": content}})
    operation = {"summary": summary, "responses": answers, **({"security": []} if public else {})}
    return {"get": operation, "head": {**operation, "responses": _headless(answers)}}


def _get(summary: str, content: Part, *parameters: Part) -> Part:
    unchanged = {"description": "The caller has it at this revision.", "headers": _fields(headers.RECORD_COUNT)}
    found = {"description": "It", "headers": _fields(headers.RECORD_COUNT, "Link"), "content": content}
    answers = _answers({200: found, 304: unchanged}, 406, 412, 422)
    operation = {"summary": summary, "parameters": [*parameters, _IF_MATCH, _IF_NONE_MATCH], "responses": answers}
    return {"get": operation, "head": {**operation, "responses": _headless(answers)}}


def _write(summary: str, body: Schema, good: Mapping[int, Part], *parameters: Part) -> Part:
    return {
        "summary": summary,
        "parameters": [*parameters, _IF_MATCH, _IF_NONE_MATCH],
        "requestBody": {"required": True, "content": _json(body)},
        "responses": _answers(good, 408, 409, 412, 413, 415, 422),
    }


def _conversation(listing: Schema | None = None) -> Part:
    """The operations on a conversation's messages; on the list of all where that stands at the same path, too."""
    turn = _header(headers.TURN_ID, _TURN, "Names the turn: of equal ones one writes. Made by the service without it.")
    appended = {"description": "Appended", "headers": _fields("Location", *_WRITTEN)}
    replaced = {"description": "Replaced", "headers": _fields(*_WRITTEN)}
    found = array(ref("Message")) if listing is None else listing
    cursors = [_LIMIT, _BEFORE, *([_AFTER] if listing is None else _LISTING)]
    operations = {
        **_get("The messages of a conversation; none of one that does not exist", _json(found), *cursors),
        "post": _write("Append messages", ref("Messages"), {202: appended}, turn, _EPOCH),
        "put": _write("Put messages in the place of those that are there", ref("Messages"), {204: replaced}, turn),
        "delete": _delete(204, None),
    }
    return operations if listing is None else _with_405(operations)


def _records() -> Part:
    turn = _header(headers.TURN_ID, _TURN, "Names the turn: of equal ones one writes.", required=True)
    done = {200: {"description": "Written", "headers": _fields(*_WRITTEN), "content": _json(ref("Written"))}}
    return _with_405(
        {
            **_get("The records of a conversation, or all heads", _json(_RECORD_LIST), _LIMIT, _BEFORE, *_LISTING),
            "post": _write("Append records", ref("Records"), done, turn, _EPOCH),
            "put": _write("Put records in the place of those that are there", ref("Records"), done, turn),
            "delete": _delete(200, _json(ref("Cleared"))),
        }
    )


def _delete(status: int, content: Part | None) -> Part:
    done: Part = {"description": "There is nothing any more"}
    if content is not None:
        done["content"] = content
    return {
        "summary": "Remove the conversation",
        "parameters": [_IF_MATCH],
        "responses": _answers({status: done}, 412, 422),
    }


def _with_405(operations: Part) -> Part:
    """The operations of a path whose writes need a key in the query."""
    refused = _answers({}, 405)["405"]
    for method in ("post", "put", "delete"):
        operations[method]["responses"]["405"] = refused
    return operations
