"""Requests that nobody sends who means well, and the answer each must get: nothing leaks, breaks or changes."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from http.client import BadStatusLine, HTTPResponse
from typing import Any, NamedTuple

import httpx
import pytest

from chathistory_http.service.token_file import add_token
from chathistory_http.service.tokens import RIGHTS, new_token, token_of

SECONDS = 60.0
MEGABYTE = 1024 * 1024

ANN, READER, ADMIN = new_token(), new_token(), new_token()
SECRET = "what nobody else may see"
TEXT = '{"role":"user","contents":[{"$type":"text","text":"%s"}]}'
OWN, FOREIGN, ABSENT = "acme/ann/own", "acme/bob/secret", "acme/bob/absent"


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes


class Case(NamedTuple):
    """What is sent, in parts, and the statuses that may answer it; 0 stands for a connection that is closed."""

    name: str
    parts: Iterable[bytes]
    statuses: tuple[int, ...]
    method: str = "GET"


def request(
    method: str,
    target: str | bytes,
    *,
    token: str | None = ANN,
    headers: Iterable[tuple[str | bytes, str | bytes]] = (),
    body: bytes | None = None,
    host: bool = True,
) -> bytes:
    """A request as it is on the wire; its length is told where there is a body."""
    lines = [b"%b %b HTTP/1.1" % (method.encode(), _bytes(target))]
    if host:
        lines.append(b"Host: history.example")
    if token is not None:
        lines.append(b"Authorization: Bearer " + token.encode())
    lines += [b"%b: %b" % (_bytes(name), _bytes(value)) for name, value in headers]
    if body is not None:
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join([*lines, b"", body or b""])


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("latin-1")


def case(name: str, status: int | tuple[int, ...], method: str, target: str | bytes, **more: Any) -> Case:
    return Case(name, [request(method, target, **more)], _tuple(status), method)


def raw(name: str, status: int | tuple[int, ...], *parts: bytes) -> Case:
    return Case(name, parts, _tuple(status))


def post(
    name: str,
    status: int | tuple[int, ...],
    body: bytes | str,
    *,
    target: str = f"/chat-history/{OWN}",
    method: str = "POST",
    kind: str = "application/json",
    headers: tuple[tuple[str, str], ...] = (),
) -> Case:
    content = body if isinstance(body, bytes) else body.encode()
    return case(name, status, method, target, headers=[("Content-Type", kind), *headers], body=content)


def records(name: str, status: int, record: object, **more: Any) -> Case:
    body = json.dumps({"records": [record]})
    return post(name, status, body, target=f"/records?key={OWN}", headers=(("Idempotency-Key", "t1"),), **more)


def _tuple(status: int | tuple[int, ...]) -> tuple[int, ...]:
    return status if isinstance(status, tuple) else (status,)


JSON = ("Content-Type", "application/json")
ONE = b'{"messages":[' + (TEXT % "x").encode() + b"]}"
NONE = b'{"messages":[]}'
GET = request("GET", f"/chat-history/{OWN}")


def of_tokens() -> Iterator[Case]:
    own = f"/chat-history/{OWN}"
    yield case("no token", 401, "GET", own, token=None)
    yield case("no token, a write", 401, "POST", own, token=None, headers=[JSON], body=ONE)
    yield case("no token, the list", 401, "GET", "/chat-history", token=None)
    yield case("no token, the metrics", 401, "GET", "/metrics", token=None)
    yield case("no token, the limits", 401, "GET", "/about", token=None)
    yield case("a token nobody has", 401, "GET", own, token=new_token())
    yield case("an empty token", 401, "GET", own, token="")
    yield case("a token in capitals", 401, "GET", own, token=ANN.upper())
    yield case("most of a token", 401, "GET", own, token=ANN[:-1])
    yield case("more than a token", 401, "GET", own, token=f"{ANN}A")
    yield case("two tokens in one header", 401, "GET", own, token=f"{ANN}, Bearer {ANN}")
    yield case(
        "a wrong and a right header", 401, "GET", own, token=new_token(), headers=[("Authorization", f"Bearer {ANN}")]
    )
    yield case("a right and a wrong header", 401, "GET", own, headers=[("Authorization", "Bearer x")])
    yield case("another scheme", 401, "GET", own, token=None, headers=[("Authorization", f"Basic {ANN}")])
    yield case("a token in the query", 401, "GET", f"{own}?access_token={ANN}", token=None)
    yield case("a token in a cookie", 401, "GET", own, token=None, headers=[("Cookie", f"token={ANN}")])
    yield case("a token of 8 KB", 401, "GET", own, token="x" * 8_192)
    yield case("a token that is no ASCII", 401, "GET", own, token=None, headers=[("Authorization", b"Bearer \xff\xfe")])
    yield case("a token with NUL", 400, "GET", own, token=None, headers=[("Authorization", f"Bearer {ANN}\0")])


def of_rights() -> Iterator[Case]:
    for key in (FOREIGN, ABSENT, "acme/ann", "acme/anna/x", "ACME/ann/own", "x"):
        for method in ("GET", "HEAD", "DELETE"):
            yield case(f"{method} of another's key {key}", 403, method, f"/chat-history/{key}")
        for method in ("POST", "PUT"):
            yield post(f"{method} to another's key {key}", 403, ONE, target=f"/chat-history/{key}", method=method)
            yield post(
                f"an empty {method} to another's key {key}", 403, NONE, target=f"/chat-history/{key}", method=method
            )
        yield case(f"records of another's key {key}", 403, "GET", f"/records?key={key}")
        yield case(f"the head of another's key {key}", 403, "GET", f"/records?key={key}&limit=0")
        yield case(f"?key= of another's {key}", 403, "GET", f"/chat-history?key={key}")
        yield case(f"ETag of another's key {key}", 403, "GET", f"/chat-history/{key}", headers=[("If-None-Match", "*")])
    yield case("GET without the right", 200, "GET", f"/chat-history/{OWN}", token=READER)
    yield case("DELETE without the right", 403, "DELETE", f"/chat-history/{OWN}", token=READER)
    yield case("POST without the right", 403, "POST", f"/chat-history/{OWN}", token=READER, headers=[JSON], body=ONE)
    yield case("list without the right", 403, "GET", "/chat-history", token=READER)
    yield case("metrics without the right", 403, "GET", "/metrics")
    yield case(
        "a method of another name", 200, "GET", f"/chat-history/{OWN}", headers=[("X-HTTP-Method-Override", "DELETE")]
    )


def of_paths() -> Iterator[Case]:
    below = "/chat-history/acme/ann/"
    yield case("a step up", 400, "GET", f"{below}../bob/secret")
    yield case("a step up, escaped", 400, "GET", f"{below}%2E%2E/bob/secret")
    yield case("a step up, all escaped", 400, "GET", f"{below}..%2Fbob%2Fsecret")
    yield case("a step that stays", 400, "GET", f"{below}./own")
    yield case("a step up, escaped twice, is a key of one's own", 200, "GET", f"{below}%252E%252E/bob/secret")
    yield case("a step up as ?key= is a key of one's own", 200, "GET", "/chat-history?key=acme/ann/../bob/secret")
    yield case("a step up with a backslash is a key of one's own", 200, "GET", f"{below}..%5Cbob%5Csecret")
    yield case("a step up out of the service", (400, 404), "GET", "/chat-history/../metrics")
    yield case("escaped slashes", 403, "GET", "/chat-history/acme%2Fbob%2Fsecret")
    yield case("many slashes", 403, "GET", "/chat-history//acme/ann/own")
    yield case("overlong UTF-8", 400, "GET", f"{below}%C0%AE%C0%AE/x")
    yield case("no UTF-8", 400, "GET", f"{below}%FF")
    yield case("a surrogate", 400, "GET", f"{below}%ED%A0%80")
    yield case("a broken escape", 400, "GET", f"{below}%zz")
    yield case("half an escape", 400, "GET", f"{below}%4")
    yield case("bytes that are no ASCII", 400, "GET", b"/chat-history/acme/ann/\xff\xfe")
    yield case("NUL", 422, "GET", f"{below}%00")
    yield case("NUL as ?key=", 422, "GET", "/chat-history?key=acme/ann/%00")
    yield case("a key of 600 bytes", 422, "GET", below + "x" * 600)
    yield case("a key of 100 KB", 431, "GET", below + "x" * 100_000)
    yield case("a path in capitals", 404, "GET", f"/CHAT-HISTORY/{OWN}")
    yield case("a path of others", 404, "GET", "/.env")
    yield case("a file", (400, 404), "GET", "/docs/../../../etc/passwd")
    yield case("another host in the target", 403, "GET", f"http://evil.example/chat-history/{FOREIGN}")
    yield case("a blank in the target", 400, "GET", "/chat-history/a b")


def of_queries() -> Iterator[Case]:
    own = f"/chat-history/{OWN}"
    for query in ("limit=-1", "limit=1e9", "limit=99999999999999999999", "limit=", "limit=%D9%A1", "limit=1&limit=2"):
        yield case(query, 400, "GET", f"{own}?{query}")
    yield case("two cursors", 400, "GET", f"{own}?before=1&after=1")
    yield case("a key in path and query", 400, "GET", f"{own}?key={OWN}")
    yield case("two keys", 400, "GET", f"/chat-history?key={OWN}&key={FOREIGN}")
    yield case("an order that is none", 400, "GET", "/chat-history?order=%27%3B--")
    yield case("a time that is none", 400, "GET", "/chat-history?order=recent&after=a&after_updated_at=x")
    yield case("a query that is no UTF-8", 400, "GET", "/chat-history?prefix=%FF")
    yield case("a prefix of 600 bytes", 422, "GET", "/chat-history?prefix=" + "x" * 600)
    yield case("a tag that is none", 400, "GET", own, headers=[("If-Match", '"')])
    yield case("a range", 200, "GET", own, headers=[("Range", "bytes=0-1")])


def of_bodies() -> Iterator[Case]:
    yield post("nothing", 400, "")
    yield post("no JSON", 400, "{")
    yield post("another value", 400, "[]")
    yield post("no messages", 400, "{}")
    yield post("messages of null", 400, '{"messages":null}')
    yield post("messages as an object", 400, '{"messages":{}}')
    yield post("messages twice", 400, '{"messages":[],"messages":[]}')
    yield post("more behind the JSON", 400, '{"messages":[]}{}')
    yield post("a comma too many", 400, '{"messages":[],}')
    yield post("a message of null", 422, '{"messages":[null]}')
    yield post("a message that is a list", 422, '{"messages":[[]]}')
    yield post("a role that is a number", 422, '{"messages":[{"role":1,"contents":[]}]}')
    yield post("contents that are text", 422, '{"messages":[{"role":"user","contents":"x"}]}')
    yield post("a type that is unknown", 422, '{"messages":[{"role":"user","contents":[{"$type":"evil"}]}]}')
    yield post("NaN", 400, '{"messages":[{"role":"user","contents":[],"additionalProperties":{"x":NaN}}]}')
    yield post("a number without end", (400, 422), '{"messages":[' + TEXT % "x" + ",%s]}" % ("9" * 10_000))
    yield post("a lone surrogate", 422, '{"messages":[' + TEXT % "\\ud800" + "]}")
    yield post("a body that is no UTF-8", 400, b'{"messages":[\xff]}')
    yield post("another charset than it says", 400, NONE, kind="application/json; charset=utf-16")
    yield post("100,000 levels", 400, "[" * 100_000)
    yield post("100,000 levels of objects", 400, '{"messages":' + '{"a":' * 100_000)
    deep = '{"role":"user","contents":[{"$type":"functionCall","name":"f","callId":"1","arguments":{"x":%s}}]}'
    yield post("500 levels in an argument", (400, 422), '{"messages":[' + deep % ("[" * 500 + "]" * 500) + "]}")
    yield post("100,001 messages", 413, '{"messages":[' + ",".join([TEXT % "x"] * 100_001) + "]}")
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/jsonp"):
        yield post(f"a body of {kind!r}", 415, NONE, kind=kind)
    yield post("UTF-7", 415, NONE, kind="application/json; charset=utf-7")
    yield post("compressed", 415, NONE, headers=(("Content-Encoding", "gzip"),))
    yield post("two types", 400, NONE, headers=(("Content-Type", "text/plain"),))
    yield post("a turn id that breaks the line", 400, ONE, headers=(("Idempotency-Key", "%zz%0d%0aSet-Cookie: x=1"),))
    yield post("a turn id of 10 KB", 422, ONE, headers=(("Idempotency-Key", "x" * 10_000),))
    yield post("two turn ids", 400, ONE, headers=(("Idempotency-Key", "1"), ("Idempotency-Key", "2")))
    yield post("a stale revision", 412, ONE, headers=(("If-Match", '"0"'),))
    yield post("a key that breaks the line", 202, NONE, target="/chat-history/acme/ann/%0d%0aSet-Cookie:%20x=1")
    yield post("records without a turn", 400, '{"records":[]}', target=f"/records?key={OWN}")
    yield records("a record without a format", 422, {"payload": "x"})
    yield records("a record of an evil format", 422, {"format": "../evil", "payload": "x"})
    yield records("a record without a payload", 422, {"format": "text"})
    yield records("a record with two payloads", 422, {"format": "text", "payload": "x", "payloadBase64": "eA=="})
    yield records("a payload that is no text", 422, {"format": "text", "payload": {"a": 1}})
    yield records("no base64", 422, {"format": "text", "payloadBase64": "!!!!"})
    yield records("a message that is none", 422, {"format": "chat-message", "payload": "[]"})
    yield records(
        "a message that .NET refuses", 422, {"format": "chat-message", "payload": '{"role":"","contents":[]}'}
    )


def of_sizes_and_slowness() -> Iterator[Case]:
    head = request("POST", f"/chat-history/{OWN}", headers=[JSON])[:-2]
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"

    chunk = b"%x\r\n" % MEGABYTE + b" " * MEGABYTE + b"\r\n"
    yield Case("100 MB", [head, b"Content-Length: %d\r\n\r\n" % (100 * MEGABYTE), *[b" " * MEGABYTE] * 100], (413,))
    yield Case("100 MB, without a length", [chunked, *[chunk] * 100, b"0\r\n\r\n"], (413,))
    yield raw(
        "100 MB that are asked for first", 413, head + b"Expect: 100-continue\r\nContent-Length: 104857600\r\n\r\n"
    )
    yield raw("a length beyond every number", 400, head + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n")
    yield raw("a body that does not come", 408, head + b"Content-Length: 10\r\n\r\n", b"{")
    yield raw("a chunk that does not come", 408, chunked + b"5\r\n{")
    yield raw("a head that does not come", 408, GET[:-2])
    yield raw("a first line that does not come", 408, b"GET /chat-hist")
    yield raw("nothing at all", 0, b"")
    yield raw("a header of 1 MB", (431, 0), GET[:-2] + b"X: ", b"x" * MEGABYTE)
    yield raw("10,000 headers", (431, 0), GET[:-2] + b"X: y\r\n" * 10_000 + b"\r\n")


def of_http() -> Iterator[Case]:
    own = f"/chat-history/{OWN}"
    head = request("POST", own, headers=[JSON])[:-2]
    chunked = head + b"Transfer-Encoding: chunked\r\n"
    smuggled = request("DELETE", own)
    yield raw("a length and chunks", 400, chunked + b"Content-Length: 5\r\n\r\n0\r\n\r\n" + smuggled)
    yield raw(
        "chunks and a length",
        400,
        head + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
    )
    yield raw("two lengths", 400, head + b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + smuggled)
    yield raw("two lengths in one", 400, head + b"Content-Length: 0, 5\r\n\r\n" + smuggled)
    yield raw("a length with a sign", 400, head + b"Content-Length: +5\r\n\r\nabcde")
    yield raw("a length below nothing", 400, head + b"Content-Length: -5\r\n\r\n")
    yield raw("a length in hexadecimal", 400, head + b"Content-Length: 0x5\r\n\r\nabcde")
    yield raw("an encoding that is unknown", 400, head + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + smuggled)
    yield raw(
        "an encoding behind chunks", 400, head + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + smuggled
    )
    yield raw("an encoding before a tab", 400, head + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + smuggled)
    yield raw("a header with a blank before its colon", 400, head + b"Content-Length : 0\r\n\r\n" + smuggled)
    yield raw("a chunk without a size", 400, chunked + b"\r\nzz\r\nabc\r\n0\r\n\r\n")
    yield raw("a chunk of a size below nothing", 400, chunked + b"\r\n-1\r\nabc\r\n0\r\n\r\n")
    yield raw("a chunk of a size without end", 400, chunked + b"\r\n" + b"f" * 40 + b"\r\nabc")
    yield raw("a chunk longer than it says", 400, chunked + b"\r\n2\r\nabcdef\r\n0\r\n\r\n")
    yield raw("a line that ends with LF alone", 400, GET[:-2].replace(b"\r\n", b"\n") + b"\n")
    yield raw("a CR in a header", 400, GET[:-2] + b"X: a\rSet-Cookie: x=1\r\n\r\n")
    yield raw("a NUL in a header", 400, GET[:-2] + b"X: a\0b\r\n\r\n")
    yield raw("a header of no name", 400, GET[:-2] + b": x\r\n\r\n")
    yield raw("a header over two lines", (400, 200), GET[:-2] + b"X: a\r\n b\r\n\r\n")
    yield case("no host", 400, "GET", own, host=False)
    yield case("two hosts", 400, "GET", own, headers=[("Host", "other.example")])
    yield case("a method that is unknown", (400, 405), "EVIL", own)
    yield case("a method in small letters", (400, 405), "get", own)
    yield case("TRACE", 405, "TRACE", own)
    yield case("PATCH", 405, "PATCH", own)
    yield case("CONNECT", (400, 405), "CONNECT", "evil.example:80")
    yield case("OPTIONS *", (400, 404), "OPTIONS", "*")
    yield case("DELETE of the list", 405, "DELETE", "/chat-history")
    yield raw("HTTP/0.9", 400, b"GET /\r\n\r\n")
    yield raw("HTTP/9.9", 400, GET.replace(b"HTTP/1.1", b"HTTP/9.9"))
    yield raw("HTTP/2", 400, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    yield raw("TLS", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 500)
    yield raw("noise", 400, bytes(range(256)))
    yield raw(
        "a web socket",
        200,
        GET[:-2] + b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n\r\n",
    )
    yield raw(
        "HTTP/2 on the same connection", 200, GET[:-2] + b"Upgrade: h2c\r\nConnection: Upgrade\r\n\r\n" + smuggled
    )


CASES = [
    *of_tokens(),
    *of_rights(),
    *of_paths(),
    *of_queries(),
    *of_bodies(),
    *of_sizes_and_slowness(),
    *of_http(),
]


def ask(address: tuple[str, int], hostile: Case) -> Answer:
    with socket.create_connection(address, timeout=SECONDS) as connection:
        try:
            for part in hostile.parts:
                connection.sendall(part)
        except ConnectionError:  # it was answered, and closed, before all was sent
            pass
        answer = HTTPResponse(connection, method=hostile.method)
        try:
            answer.begin()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        except (ConnectionError, BadStatusLine):
            return Answer(0, {}, b"")
        finally:
            answer.close()


def problem_with(hostile: Case, answer: Answer) -> str | None:
    """What is wrong with the answer."""
    if answer.status not in hostile.statuses:
        return f"answered {answer.status} {answer.body[:200]!r}"
    whole = repr(answer)
    if SECRET in whole or "set-cookie" in answer.headers or any(token in whole for token in (ANN, READER, ADMIN)):
        return f"shows what it must not: {whole[:300]}"
    if answer.status >= 400 and hostile.method != "HEAD":
        if answer.headers.get("content-type") != "application/problem+json":
            return f"is no problem but {answer.headers.get('content-type')}"
        told = json.loads(answer.body)
        if told["status"] != answer.status or not told["type"].startswith("urn:chathistory:problem:"):
            return f"tells another problem: {told}"
    return None


@pytest.fixture(scope="module")
def address(
    start_for_module: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, int]]:
    """Of a service over SQLite whose three tokens are those above, with some conversations in it."""
    folder = tmp_path_factory.mktemp("hostile")
    tokens, rights = folder / "tokens.toml", tuple(right for right in RIGHTS if right != "metrics")
    add_token(tokens, token_of(ANN, "ann", rights, "acme/ann/"))
    add_token(tokens, token_of(READER, "reader", ["read"], "acme/ann/"))
    add_token(tokens, token_of(ADMIN, "admin", RIGHTS, ""))
    url = f"sqlite:///{folder / 'history.db'}"
    service = start_for_module("--url", url, "--tokens", str(tokens), "--request-timeout", "0.5")
    with admin(service.url) as client:
        for key, text in ((OWN, "mine"), (FOREIGN, SECRET)):
            body = '{"messages":[' + TEXT % text + "]}"
            client.post("/chat-history", params={"key": key}, content=body, headers=dict([JSON]))
        at = httpx.URL(service.url)
        assert at.port is not None
        before = whole_store(client)
        yield at.host, at.port
        assert whole_store(client) == before
    assert service.stop() in (0, -15)
    assert not [line for line in service.log if "Traceback" in line or "ERROR" in line]
    log = "".join(service.log)
    assert SECRET not in log
    assert not [token for token in (ANN, READER, ADMIN) if token in log]


def admin(url: str) -> httpx.Client:
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=SECONDS)


def whole_store(client: httpx.Client) -> object:
    listed = client.get("/records").raise_for_status().json()
    keys = [summary["key"] for summary in listed["summaries"]]
    assert {OWN, FOREIGN} <= set(keys)
    return listed, [client.get("/chat-history", params={"key": key}).raise_for_status().json() for key in keys]


def test_each_gets_its_answer_and_leaves_the_store_as_it_was(address: tuple[str, int]) -> None:
    assert len(CASES) >= 40
    names = [hostile.name for hostile in CASES]
    assert [name for name in names if names.count(name) > 1] == []
    wrong = []
    for hostile in CASES:
        if (problem := problem_with(hostile, ask(address, hostile))) is not None:
            wrong.append(f"{hostile.name}: {problem}")
    assert not wrong, "\n".join(wrong)


def test_a_foreign_conversation_is_refused_alike_whether_it_is_there_or_not(address: tuple[str, int]) -> None:
    def told(key: str) -> list[Answer]:
        found = []
        for method in ("GET", "HEAD", "POST", "PUT", "DELETE"):
            for target in (f"/chat-history/{key}", f"/chat-history?key={key}", f"/records?key={key}"):
                for more in ((), (JSON,), (("If-Match", "*"),), (("If-None-Match", "*"),)):
                    body = ONE if method in ("POST", "PUT") else None
                    answer = ask(address, case("", 403, method, target, headers=more, body=body))
                    answer.headers.pop("date")
                    found.append(answer)
        return found

    there, absent = told(FOREIGN), told(ABSENT)
    assert {answer.status for answer in there} == {403}
    assert there == absent


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?prefix=acme/",
        "?prefix=acme/ann/",
        "?limit=1",
        "?order=recent",
        "?after=acme/a",
        "?prefix=a&order=recent&after=acme/bob/secret&after_updated_at=9999-01-01T00:00:00Z",
    ],
)
def test_a_listing_shows_no_conversation_of_others(query: str, address: tuple[str, int]) -> None:
    for path in ("/chat-history", "/records"):
        answer = ask(address, case("", 200, "GET", path + query))
        assert answer.status == 200
        assert OWN.encode() in answer.body
        assert b"bob" not in answer.body + answer.headers.get("link", "").encode()
        assert "next" not in answer.headers.get("link", "") or "limit=1" in query


@pytest.mark.parametrize("prefix", ["acme/bob/", "acme/bob/secret", "acme/anna", "x"])
def test_a_listing_of_a_foreign_prefix_is_empty(prefix: str, address: tuple[str, int]) -> None:
    answers = [ask(address, case("", 200, "GET", f"{path}?prefix={prefix}")) for path in ("/chat-history", "/records")]
    assert [answer.status for answer in answers] == [200, 200]
    assert [json.loads(answer.body) for answer in answers] == [[], {"summaries": []}]


def test_a_smuggled_request_is_one_of_its_own_and_asked_for_its_token(address: tuple[str, int]) -> None:
    inner = request("DELETE", f"/chat-history/{OWN}", token=None, headers=[("Connection", "close")])
    with socket.create_connection(address, timeout=SECONDS) as connection:
        connection.sendall(request("POST", f"/chat-history/{OWN}", headers=[JSON, ("Content-Length", "0")]) + inner)
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
    assert re.findall(rb"HTTP/1\.1 (\d+)", received) == [b"400", b"401"]


def test_who_guesses_tokens_is_slowed_down_and_others_are_not(address: tuple[str, int]) -> None:
    with httpx.Client(base_url="http://{}:{}".format(*address), timeout=SECONDS) as client:
        own = f"/chat-history/{OWN}"
        end = time.monotonic() + SECONDS
        while (answer := client.get(own, headers={"Authorization": "Bearer guess"})).status_code == 401:
            assert time.monotonic() < end
        assert answer.status_code == 429
        assert int(answer.headers["Retry-After"]) >= 1
        assert client.get(own, headers={"Authorization": f"Bearer {ANN}"}).status_code == 200
