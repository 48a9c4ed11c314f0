"""What the article's client sent, and what its server answered to that and to odd requests, against ours."""

import http.client
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from chathistory_core import open_backend

GOLDEN = Path(__file__).parent / "golden"
PAGE = Path(__file__).parents[3] / "docs/explanation/article-server.md"


class Different(NamedTuple):
    """An answer that differs on purpose."""

    row: str
    """The first column of its row in the page of documentation."""
    status: int
    theirs: int


ROLE = "a blank role, a call without an id"
KIND = "contents of an unknown kind, a member of another type, half of a surrogate pair"
LETTERS = "a POST to a key with other letters than ASCII"
MESSAGES = "`messages` is missing or null"
ESCAPES = "`%zz` or `%ff` in a path"
DOTS = "a segment `.` or `..` in a path"
ALLOW = "`Allow` behind a 405"
LOCATION = "`Location` of a key with special characters"
LIST = "the list of conversations"
LONG = "a key of more than 512 bytes"
RAW_SLASH = "`/` in a key"
NULL = "`null` in the place of a message"

DIFFERENT = {
    "root": Different("`description` of the service", 200, 200),
    "POST no messages member": Different(MESSAGES, 400, 500),
    "POST messages null": Different(MESSAGES, 400, 500),
    "PUT messages null": Different(MESSAGES, 400, 500),
    "POST lone surrogate": Different(KIND, 422, 400),
    "POST null message": Different(NULL, 422, 202),
    "GET null message": Different(NULL, 200, 200),
    "POST unknown $type": Different(KIND, 422, 400),
    "POST good then bad message stores nothing": Different(KIND, 422, 400),
    "POST role empty": Different(ROLE, 422, 500),
    "POST callId missing": Different(ROLE, 422, 500),
    "GET unknown fields": Different("members that .NET does not know", 200, 200),
    "key space POST": Different(LOCATION, 202, 202),
    "key unicode POST": Different(LETTERS, 202, 500),
    "key slash encoded POST": Different("`%2F` in a path", 202, 202),
    "key slash raw POST": Different(RAW_SLASH, 202, 404),
    "key slash raw GET": Different(RAW_SLASH, 200, 404),
    "key percent POST": Different(LOCATION, 202, 202),
    "key question encoded POST": Different(LOCATION, 202, 202),
    "key hash encoded POST": Different(LOCATION, 202, 202),
    "key backslash POST": Different(LOCATION, 202, 202),
    "key braces POST": Different(LOCATION, 202, 202),
    "key leading space POST": Different(LOCATION, 202, 202),
    "key dot dot encoded POST": Different(DOTS, 400, 405),
    "key dot dot encoded GET": Different(DOTS, 400, 200),
    "key NUL POST": Different("NUL in a key", 422, 400),
    "key NUL GET": Different("NUL in a key", 422, 400),
    "key bad escape POST": Different(ESCAPES, 400, 202),
    "key bad escape GET": Different(ESCAPES, 400, 200),
    "key invalid utf8 escape POST": Different(ESCAPES, 400, 202),
    "key invalid utf8 escape GET": Different(ESCAPES, 400, 200),
    "key 4096 bytes POST": Different(LONG, 422, 202),
    "key 4096 bytes GET": Different(LONG, 422, 200),
    "list trailing slash": Different(LIST, 200, 200),
    "upper case path": Different("a path in upper case", 404, 200),
    "query ignored": Different("`?limit=`", 200, 200),
    "HEAD": Different("HEAD", 200, 405),
    "OPTIONS": Different(ALLOW, 405, 405),
    "PATCH": Different(ALLOW, 405, 405),
    "POST on list": Different(ALLOW, 405, 405),
    "order é": Different(LETTERS, 202, 500),
    "order 日": Different(LETTERS, 202, 500),
    "order 😀": Different(LETTERS, 202, 500),
    "list order": Different(LIST, 200, 200),
}

NOT_KEPT = {"p-nullmsg", "a%zzb", "a%ff", "a%2Fb", "k" * 4096}
"""Keys that the article's server listed and ours does not have."""


class Sent(NamedTuple):
    name: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    status: int
    response_headers: Mapping[str, str]
    response_body: str


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


def recorded(name: str) -> Iterator[Sent]:
    for line in (GOLDEN / name).read_text("utf-8").splitlines():
        row = json.loads(line)
        if "method" not in row:
            continue
        body = row["request_body"].encode()
        if "Content-Length" in row["request_headers"]:
            body = re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes([int(found[1], 16)]), body)
            assert len(body) == int(row["request_headers"]["Content-Length"])
        yield Sent(
            row.get("name", ""),
            row["method"],
            row["path"],
            row["request_headers"],
            body,
            row["status"],
            row["response_headers"],
            row["response_body"],
        )


def send(connection: http.client.HTTPConnection, sent: Sent) -> Answered:
    """The answer to the request, sent byte for byte."""
    connection.putrequest(sent.method, sent.path, skip_accept_encoding=True)
    for name, value in sent.headers.items():
        connection.putheader(name, value)
    is_chunked = "Transfer-Encoding" in sent.headers
    body: Iterable[bytes] | bytes = iter([sent.body]) if is_chunked else sent.body
    connection.endheaders(body, encode_chunked=is_chunked)
    response = connection.getresponse()
    return Answered(response.status, dict(response.headers), response.read())


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(member) for key, member in value.items() if member is not None}
    return [without_nulls(member) for member in value] if isinstance(value, list) else value


def differs(sent: Sent, answered: Answered) -> bool:
    if sent.status != answered.status:
        return True
    if answered.status < 400:
        theirs = without_nulls(json.loads(sent.response_body)) if sent.response_body else None
        ours = json.loads(answered.body) if answered.body else None
        if theirs != ours:
            return True
    their_headers = {name.lower(): value for name, value in sent.response_headers.items()}
    return any(their_headers.get(name) != answered.headers.get(name) for name in ("location", "allow"))


def replay(connection: http.client.HTTPConnection, name: str) -> Iterator[tuple[Sent, Answered]]:
    for sent in recorded(name):
        yield sent, send(connection, sent)


@pytest.fixture
def connection(store: str, serve: Any) -> Iterator[http.client.HTTPConnection]:
    address = urlsplit(serve(open_backend(store))).netloc
    connection = http.client.HTTPConnection(address, timeout=20)
    yield connection
    connection.close()


def test_every_answer_is_the_article_servers_but_those_that_differ_on_purpose(
    connection: http.client.HTTPConnection,
) -> None:
    exchange = list(replay(connection, "exchange.jsonl"))
    assert [sent for sent, answered in exchange if differs(sent, answered)] == []
    probes = list(replay(connection, "probes.jsonl"))
    different = {sent.name: (answered.status, sent.status) for sent, answered in probes if differs(sent, answered)}
    assert different == {name: (one.status, one.theirs) for name, one in DIFFERENT.items()}
    (sent, answered) = next(pair for pair in probes if pair[0].name == "list order")
    theirs = {one["conversationKey"]: one["messageCount"] for one in json.loads(sent.response_body)}
    ours = json.loads(answered.body)
    keys = [one["conversationKey"] for one in ours]
    assert keys == sorted(keys)
    assert set(theirs) - set(keys) == NOT_KEPT
    assert set(keys) - set(theirs) == {"a/b"}
    counts = {one["conversationKey"]: one["messageCount"] for one in ours}
    assert counts == {**{key: count for key, count in theirs.items() if key not in NOT_KEPT}, "a/b": 2}


def test_what_differs_is_told_in_the_documentation() -> None:
    rows = {}
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("| ") and not line.startswith("| Request"):
            request, theirs, ours, _ = (cell.strip() for cell in line.strip("|").split("|"))
            rows[request] = theirs, ours
    assert set(rows) == {one.row for one in DIFFERENT.values()}
    for one in DIFFERENT.values():
        theirs, ours = rows[one.row]
        if one.status != one.theirs:
            assert theirs[:3] == str(one.theirs) or not theirs[:3].isdigit(), one
            assert ours[:3] == str(one.status) or not ours[:3].isdigit(), one


def test_problems_say_which_message_and_where_in_it(connection: http.client.HTTPConnection) -> None:
    told = {
        sent.name: json.loads(answered.body)
        for sent, answered in replay(connection, "probes.jsonl")
        if answered.status == 422
    }
    where = {name: (one["index"], one["path"]) for name, one in told.items() if "index" in one}
    assert where == {
        "POST lone surrogate": (0, "/contents/0/text"),
        "POST null message": (0, ""),
        "POST unknown $type": (0, "/contents/0"),
        "POST good then bad message stores nothing": (1, ""),
        "POST role empty": (0, ""),
        "POST callId missing": (0, "/contents/0"),
    }
