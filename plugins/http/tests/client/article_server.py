"""A server with the article's six routes and no other, for tests: `article_server.py PORT`, 0 for a free one.

It answers as the article's own did when it was asked, its failures included. It says on standard output where it
listens, and then, a line each, what it was asked.
"""

import json
import re
import sys
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, TypeAlias

import uvicorn

Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MESSAGE = ("authorName", "createdAt", "role", "contents", "messageId", "additionalProperties")
KINDS: Mapping[str, tuple[str, ...]] = {
    "data": ("uri", "name"),
    "error": ("message", "errorCode", "details"),
    "functionCall": ("name", "arguments", "informationalOnly", "callId"),
    "functionResult": ("result", "callId"),
    "hostedFile": ("fileId", "name", "mediaType", "sizeInBytes", "createdAt", "purpose", "scope"),
    "reasoning": ("text", "protectedData"),
    "text": ("text",),
    "uri": ("uri", "mediaType"),
    "usage": ("details",),
}
"""The members of the contents that the tests use, in .NET's order."""

ROUTES = {"": ("GET",), "chat-history": ("GET",)}
ONE = ("DELETE", "GET", "POST", "PUT")
NAMED = "chat-history/"


class Answer(Exception):  # noqa: N818 - how a handler ends
    def __init__(self, status: int, body: object = None, **headers: str) -> None:
        super().__init__(status)
        self.status = status
        self.body = b"" if body is None else json.dumps(body, ensure_ascii=False, indent=2).encode()
        self.headers = {name.lower(): value for name, value in headers.items()}


class Server:
    def __init__(self) -> None:
        self.kept: dict[str, list[object]] = {}

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        body = b""
        more = True
        while more:
            event = await receive()
            if event["type"] != "http.request":
                return
            body += event.get("body", b"")
            more = event.get("more_body", False)
        print(scope["method"], scope["raw_path"].decode(), flush=True)
        if scope["method"] == "PURGE":  # of the tests alone
            self.kept.clear()
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            answer = self.answer(scope["method"], scope["raw_path"].decode("ascii"), headers, body)
        except Answer as raised:
            answer = raised
        sent = {"content-type": "application/json; charset=utf-8"} if answer.body else {"content-length": "0"}
        sent |= answer.headers
        pairs = [(name.encode(), value.encode("latin-1", "replace")) for name, value in sent.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": pairs})
        await send({"type": "http.response.body", "body": answer.body})

    def answer(self, method: str, raw_path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        path = resolved(raw_path.removesuffix("/")).removeprefix("/")
        route = path.lower() if "/" not in path else path[: len(NAMED)].lower()
        key = path[len(NAMED) :]
        allowed = ROUTES.get(route, ONE if route == NAMED and "/" not in key else ())
        if not allowed:
            return Answer(404)
        if method not in allowed:
            return Answer(405, allow=", ".join(allowed))
        if route == "":
            return Answer(200, {"service": "chat-history-service", "description": "Chat history in memory."})
        if route == "chat-history":
            listed = sorted(self.kept, key=lambda name: (re.sub(r"\W", "", name).lower(), name))
            return Answer(200, [{"conversationKey": name, "messageCount": len(self.kept[name])} for name in listed])
        return self.converse(method, key, headers, body)

    def converse(self, method: str, key: str, headers: Mapping[str, str], body: bytes) -> Answer:
        if method == "GET":
            return Answer(200, self.kept.get(key, []))
        if method == "DELETE":
            self.kept.pop(key, None)
            return Answer(204)
        messages = messages_in(headers.get("content-type", ""), body)
        if method == "PUT":
            self.kept[key] = messages
            return Answer(204)
        if messages:
            self.kept.setdefault(key, []).extend(messages)
        return Answer(202, location=f"/chat-history/{key}") if re.fullmatch("[ -~]*", key) else Answer(500)


def resolved(raw_path: str) -> str:
    """The path as the server routes it: what cannot be unescaped stays, and so does `%2F`."""
    if "%00" in raw_path:
        raise Answer(400, connection="close")

    def unescaped(run: "re.Match[str]") -> str:
        try:
            return bytes.fromhex(run[0].replace("%", "")).decode()
        except UnicodeDecodeError:
            return run[0]

    parts: list[str] = []
    for part in raw_path.split("/"):
        text = re.sub(r"(?:%(?!2[Ff])[0-9A-Fa-f]{2})+", unescaped, part)
        if text == "..":
            parts.pop()
        elif text != ".":
            parts.append(text)
    return "/".join(parts)


def messages_in(content_type: str, body: bytes) -> list[object]:
    kind, _, rest = content_type.partition(";")
    if kind != "application/json" and not re.fullmatch(r"application/.+\+json", kind):
        raise Answer(415)
    try:
        value = json.loads(body.decode("utf-16" if "utf-16" in rest else "utf-8-sig"))
        json.dumps(value, ensure_ascii=False).encode()  # no lone surrogate
    except ValueError:
        raise Answer(400) from None
    if not isinstance(value, dict):
        raise Answer(400)
    messages = member(value, "messages")
    if messages is None:
        raise Answer(500)
    if not isinstance(messages, list):
        raise Answer(400)
    return [read(message) for message in messages]


def member(value: Mapping[str, Any], name: str) -> Any:
    found: Any = None
    for key, each in value.items():
        if key.lower() == name.lower():
            found = each
    return found


def read(message: Any) -> object:
    if message is None:
        return None
    if not isinstance(message, dict):
        raise Answer(400)
    found = {name: member(message, name) for name in MESSAGE}
    if not isinstance(found["role"], str):
        raise Answer(500 if found["role"] is None else 400)
    if not found["role"].strip():
        raise Answer(500)
    found["contents"] = [content(value) for value in found["contents"] or []]
    return found


def content(value: Any) -> object:
    if not isinstance(value, dict):
        raise Answer(400)
    names: Sequence[str] = ()
    found: dict[str, Any] = {}
    if "$type" in value:
        if value["$type"] not in KINDS or next(iter(value)) != "$type":
            raise Answer(400)
        found["$type"], names = value["$type"], KINDS[value["$type"]]
    found |= {name: member(value, name) for name in (*names, "annotations", "additionalProperties")}
    if "callId" in found and found["callId"] is None:
        raise Answer(500)
    return found


if __name__ == "__main__":
    config = uvicorn.Config(Server(), port=int(sys.argv[1]), log_level="critical", lifespan="off", server_header=False)
    listening = config.bind_socket()
    listening.listen()  # from here on a connection waits
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    uvicorn.Server(config).run([listening])
