"""Pages, lists, keys in paths and queries, and the service under a prefix."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from chathistory_core import ChatHistoryBackend, ChatMessage, Order, Record, new_turn_id, open_backend
from chathistory_core.formats import chat_message
from chathistory_http.service import create_app

Serve = Callable[[ASGIApp | ChatHistoryBackend], str]


def message(text: str) -> dict[str, object]:
    return {"role": "user", "contents": [{"$type": "text", "text": text}]}


def append(client: httpx.Client, key: str, *texts: str, path: str = "/chat-history") -> httpx.Response:
    answer = client.post(f"{path}?key={quote(key, safe='')}", json={"messages": [message(text) for text in texts]})
    assert answer.status_code == 202, answer.text
    return answer


def texts_of(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [one["contents"][0]["text"] for one in answer.json()]


def positions_of(answer: httpx.Response) -> list[int]:
    assert answer.status_code == 200, answer.text
    return [one["position"] for one in answer.json()["records"]]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", "abcde"),
        ("limit=2", "de"),
        ("limit=0", ""),
        ("limit=9007199254740992", "abcde"),
        ("before=4", "abc"),
        ("before=4&limit=2", "bc"),
        ("after=2", "cde"),
        ("after=2&limit=2", "cd"),
        ("after=0&limit=1", "a"),
        ("after=5", ""),
        ("before=1", ""),
        ("unknown=1", "abcde"),
    ],
)
def test_a_page_is_read_as_from_a_backend(client: httpx.Client, query: str, expected: str) -> None:
    append(client, "k", *"abcde")
    assert texts_of(client.get(f"/chat-history/k?{query}")) == list(expected)
    assert texts_of(client.get(f"/chat-history?key=k&{query}")) == list(expected)
    stored = client.get(f"/records?key=k&{query}")
    assert positions_of(stored) == ["abcde".index(letter) + 1 for letter in expected]
    assert stored.json()["recordCount"] == 5


@pytest.mark.parametrize(
    "query", ["limit=-1", "limit=x", "limit=", "before=1&after=1", "limit=1&limit=1", "before=1.0"]
)
@pytest.mark.parametrize("path", ["/chat-history/k?", "/chat-history?key=k&", "/records?key=k&"])
def test_a_page_that_is_none_is_refused(client: httpx.Client, path: str, query: str) -> None:
    for method in ("GET", "HEAD"):
        assert client.request(method, path + query).status_code == 400


@pytest.mark.parametrize("path", ["/chat-history/k", "/chat-history?key=k", "/records?key=k"])
def test_a_head_is_that_of_the_answer_to_get(client: httpx.Client, path: str) -> None:
    append(client, "k", "a", "b")
    got, head = client.get(path), client.head(path)
    assert head.status_code == got.status_code
    assert head.content == b""
    for name in ("Content-Type", "ETag", "Chat-History-Epoch", "Chat-History-Record-Count"):
        assert head.headers[name] == got.headers[name]


@pytest.mark.parametrize("path", ["/", "/chat-history", "/records", "/about", "/health", "/ready", "/metrics"])
def test_head_is_answered_wherever_get_is(client: httpx.Client, path: str) -> None:
    got, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["Content-Type"] == got.headers["Content-Type"]


def pages(client: httpx.Client, path: str) -> list[httpx.Response]:
    """The answers of a walk along `Link`."""
    found = []
    following: str | None = path
    while following is not None:
        answer = client.get(following)
        assert answer.status_code == 200, answer.text
        found.append(answer)
        following = answer.links.get("next", {}).get("url")
    return found


def keys_in(answers: Sequence[httpx.Response]) -> list[str]:
    bodies = [answer.json() for answer in answers]
    if isinstance(bodies[0], list):
        return [one["conversationKey"] for body in bodies for one in body]
    return [one["key"] for body in bodies for one in body["summaries"]]


KEYS = ["a", "a/b", "a/b?&=#%", "é", "日本", "😀 x", "Z", "a/", "..", "+"]


@pytest.mark.parametrize("path", ["/chat-history", "/records"])
@pytest.mark.parametrize("limit", [1, 3, 10, 11, None])
def test_the_list_is_walked_in_pages_by_code_point(client: httpx.Client, path: str, limit: int | None) -> None:
    for key in KEYS:
        append(client, key, "x")
    found = pages(client, path if limit is None else f"{path}?limit={limit}")
    assert keys_in(found) == sorted(KEYS)
    assert len(found) == (1 if limit is None else len(KEYS) // limit + 1)


@pytest.mark.parametrize("path", ["/chat-history", "/records"])
def test_the_list_is_walked_newest_first(client: httpx.Client, path: str) -> None:
    for key in KEYS:
        append(client, key, "x")
    append(client, KEYS[3], "y")
    expected = [KEYS[3], *(key for key in reversed(KEYS) if key != KEYS[3])]
    assert keys_in(pages(client, f"{path}?limit=3&order=recent")) == expected
    assert keys_in(pages(client, f"{path}?order=recent")) == expected


@pytest.mark.parametrize("path", ["/chat-history", "/records"])
def test_the_list_of_a_prefix(client: httpx.Client, path: str) -> None:
    for key in KEYS:
        append(client, key, "x")
    assert keys_in(pages(client, f"{path}?prefix=a/&limit=1")) == ["a/", "a/b", "a/b?&=#%"]
    assert keys_in(pages(client, f"{path}?prefix=%E6%97%A5")) == ["日本"]
    assert keys_in(pages(client, f"{path}?prefix=none")) == []


@pytest.mark.parametrize("path", ["/chat-history", "/records"])
def test_a_page_of_nothing_leads_nowhere(client: httpx.Client, path: str) -> None:
    append(client, "k", "x")
    answer = client.get(f"{path}?limit=0")
    assert keys_in([answer]) == []
    assert "Link" not in answer.headers


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("limit=-1", 400),
        ("order=odd", 400),
        ("order=recent&after=a", 400),
        ("after_updated_at=2026-11-30T18:39:22Z", 400),
        ("after=%00", 422),
        ("after=", 422),
        ("prefix=%00", 422),
        ("prefix=" + "a" * 513, 422),
        ("prefix=%ff", 400),
    ],
)
@pytest.mark.parametrize("path", ["/chat-history", "/records"])
def test_a_list_that_cannot_be_is_refused(client: httpx.Client, path: str, query: str, status: int) -> None:
    assert client.get(f"{path}?{query}").status_code == status


@pytest.mark.parametrize(
    "key", [*KEYS, ".", "a/../b", "/", "//", "a//b", " ", "\x01", "\u202e", "a" * 512, "%2F", "\\"]
)
def test_every_key_is_served(client: httpx.Client, key: str) -> None:
    location = append(client, key, "x").headers["Location"]
    for path in (location, f"/chat-history?key={quote(key, safe='')}"):
        assert texts_of(client.get(path)) == ["x"]
    assert client.get(f"/records?key={quote(key, safe='')}").json()["key"] == key
    assert client.put(location, json={"messages": []}).status_code == 204
    assert texts_of(client.get(location)) == []
    assert client.delete(location).status_code == 204
    assert client.get("/chat-history").json() == []


def test_a_key_in_both_places_is_refused(client: httpx.Client) -> None:
    assert client.get("/chat-history/a?key=b").status_code == 400


@pytest.mark.parametrize("key", ["", "%00", "a" * 513])
@pytest.mark.parametrize("path", ["/chat-history?key=", "/records?key="])
def test_a_key_that_no_store_keeps_is_refused(client: httpx.Client, path: str, key: str) -> None:
    for method in ("GET", "HEAD", "DELETE"):
        assert client.request(method, path + key).status_code == 422
    turn = {"Idempotency-Key": "t"}
    for method in ("POST", "PUT"):
        body = {"messages": [message("x")], "records": [{"format": "f", "payload": ""}]}
        assert client.request(method, path + key, json=body, headers=turn).status_code == 422


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
@pytest.mark.parametrize("path", ["/chat-history", "/chat-history/", "/records", "/about"])
def test_a_path_says_which_methods_it_takes(client: httpx.Client, path: str, method: str) -> None:
    answer = client.request(method, path, json={})
    assert answer.status_code == 405
    assert {"GET", "HEAD"} <= set(answer.headers["Allow"].split(", "))
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/nothing", "/chat-historyk", "/Chat-History/k", "/records/k", "/about/"])
def test_where_there_is_nothing_is_told(client: httpx.Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.headers["Content-Type"] == "application/problem+json"


def test_records_come_back_byte_for_byte(client: httpx.Client) -> None:
    payloads = [b"", b"{}", b"\xff\x00", b"\0" * 50, "日😀\u2028".encode(), b' { "a" : 1.50 } ', bytes(range(256))]
    sent = [
        {"format": "my-format+zstd.k1", "payloadBase64": base64.b64encode(payload).decode()} for payload in payloads
    ]
    written = client.post("/records?key=k", json={"records": sent}, headers={"Idempotency-Key": "t/日".encode().hex()})
    assert written.status_code == 200
    assert written.json()["firstPosition"] == 1
    stored = client.get("/records?key=k").json()["records"]
    found = [one["payload"].encode() if "payload" in one else base64.b64decode(one["payloadBase64"]) for one in stored]
    assert found == payloads
    assert {one["format"] for one in stored} == {"my-format+zstd.k1"}
    assert {one["turnId"] for one in stored} == {"t/日".encode().hex()}


def test_an_unknown_conversation_is_one_with_nothing_in_it(client: httpx.Client) -> None:
    assert client.get("/chat-history/none").json() == []
    found = client.get("/records?key=none")
    assert (found.status_code, found.json()["revision"], found.json()["records"]) == (200, "", [])
    assert "ETag" not in found.headers
    assert client.head("/chat-history/none").status_code == 200


@pytest.mark.parametrize("outer", [Starlette, FastAPI])
def test_the_service_is_mounted_in_another_application(memory: str, serve: Serve, outer: type[Starlette]) -> None:
    backend = open_backend(memory)

    @asynccontextmanager
    async def opened(_: Starlette) -> AsyncIterator[None]:
        async with backend:
            yield

    url = serve(outer(routes=[Mount("/über/api", create_app(backend))], lifespan=opened))
    with httpx.Client(base_url=url + "/%C3%BCber/api", trust_env=False) as client:
        check_under_prefix(client, "/%C3%BCber/api")


def test_the_service_stands_behind_a_proxy_that_takes_a_prefix_off(memory: str, serve: Serve) -> None:
    app = create_app(open_backend(memory))

    async def proxied(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["root_path"] = "/über"  # as with `uvicorn --root-path`
            scope["path"] = "/über" + scope["path"]
            scope["raw_path"] = b"/%C3%BCber" + scope["raw_path"]
        await app(scope, receive, send)

    with httpx.Client(base_url=serve(proxied), trust_env=False) as client:
        check_under_prefix(client, "/%C3%BCber", asked="")


def check_under_prefix(client: httpx.Client, prefix: str, asked: str | None = None) -> None:
    """Keys are what stands behind the prefix, and the service's own links have it."""
    for key, path in {"a/b": "/a%2Fb", "日": "/%E6%97%A5", "über/api": "/%C3%BCber/api"}.items():
        answer = client.post(f"/chat-history{path}", json={"messages": [message(key)]})
        assert answer.status_code == 202, answer.text
        location = answer.headers["Location"]
        assert location.startswith(prefix + "/chat-history/")
        assert texts_of(client.get(location.removeprefix(prefix))) == [key]
    assert client.post("/chat-history?key=..", json={"messages": [message("x")]}).headers["Location"] == (
        prefix + "/chat-history?key=.."
    )
    first = client.get("/chat-history?limit=3")
    link = first.links["next"]["url"]
    assert link.startswith(prefix + "/chat-history?")
    assert keys_in([first, client.get(link.removeprefix(prefix))]) == sorted(["..", "a/b", "über/api", "日"])
    assert client.get("/chat-history/..%2F").status_code == 400
    assert client.get("/openapi.json").json()["servers"] == [{"url": "/über" if asked == "" else "/über/api"}]
    assert client.get("/nothing").status_code == 404


@pytest.mark.parametrize("order", ["key", "recent"])
def test_a_page_of_the_list_is_that_of_the_backend(client: httpx.Client, order: Order) -> None:
    for number in range(5):
        append(client, f"k{number}", *"x" * number, "x")
    found = client.get(f"/records?order={order}").json()["summaries"]

    async def main() -> list[tuple[str, str, str, int]]:
        async with open_backend("memory://of-all-tests") as backend:
            return [tuple(one[:4]) for one in await backend.summaries(order=order)]  # type: ignore[misc]  # they are so

    assert [(one["key"], one["revision"], one["epoch"], one["recordCount"]) for one in found] == asyncio.run(main())


def test_a_read_sees_what_another_process_wrote(client: httpx.Client) -> None:
    async def main() -> None:
        async with open_backend("memory://of-all-tests") as backend:
            record = Record(chat_message.encode(ChatMessage.user("from elsewhere")), chat_message.name)
            await backend.append("k", [record], turn_id=new_turn_id())

    asyncio.run(main())
    assert texts_of(client.get("/chat-history/k")) == ["from elsewhere"]
