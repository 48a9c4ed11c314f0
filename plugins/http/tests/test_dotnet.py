"""The real agent, client and serializer of .NET against the service; and Python and .NET in one conversation."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from starlette.types import ASGIApp

from chathistory_core import (
    AgentSession,
    ChatHistoryBackend,
    ChatMessage,
    Record,
    new_turn_id,
    open_backend,
    open_history,
)
from chathistory_core.formats import agent_framework, chat_message, openai_chat
from chathistory_core.messages import ATTRIBUTION_KEY, TextContent, UnknownContent
from chathistory_http.service import create_app
from chathistory_http.service.access import Access
from chathistory_http.service.tokens import new_token, token_of_everything

SHARED = Path(__file__).resolve().parents[4] / "shared"
ORACLE = SHARED / "tools/dotnet-oracle/dotnet-oracle"
GOLDEN = Path(__file__).resolve().parents[3] / "tests/golden"
SECONDS = 60

KINDS = ("memory", "sqlite", "valkey")

pytestmark = pytest.mark.skipif(not ORACLE.exists(), reason="the real .NET is not here")

Serve = Callable[[ASGIApp | ChatHistoryBackend], str]


class Dotnet(NamedTuple):
    """.NET as a client of the service over a store."""

    url: str
    token: str | None
    store: str

    def run(self, command: str, *arguments: str, given: str = "") -> list[str]:
        """What it prints, by line; it fails where anything is not as it should be."""
        environment = {name: value for name, value in os.environ.items() if name != "CHAT_HISTORY_TOKEN"}
        if self.token is not None:
            environment["CHAT_HISTORY_TOKEN"] = self.token
        done = subprocess.run(
            [ORACLE, command, self.url + "/", *arguments],
            input=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=SECONDS,
            env=environment,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
        return done.stdout.splitlines()

    def read(self, key: str) -> list[ChatMessage]:
        """The messages of a conversation, as .NET writes them again."""
        return [message for line in self.run("read", key) for message in chat_message.load(line)]


@pytest.fixture(params=["memory", "sqlite secured", "valkey"])
def dotnet(request: pytest.FixtureRequest, serve: Serve) -> Dotnet:
    kind, _, secured = str(request.param).partition(" ")
    store: str = request.getfixturevalue(kind)
    token = new_token() if secured else None
    access = None if token is None else Access([token_of_everything(token, "test", "this test")])
    return Dotnet(serve(create_app(open_backend(store), access=access)), token, store)


@pytest.fixture
def simple(memory: str, serve: Serve) -> Dotnet:
    """Over a store in memory, without a token."""
    return Dotnet(serve(open_backend(memory)), None, memory)


def write(store: str, key: str, records: Sequence[Record]) -> None:
    async def main() -> None:
        async with open_backend(store) as backend:
            await backend.append(key, records, turn_id=new_turn_id())

    asyncio.run(main())


def read(store: str, key: str) -> list[ChatMessage]:
    async def main() -> list[ChatMessage]:
        async with open_history(store) as history:
            return list(await history.messages(history.session(key)))

    return asyncio.run(main())


def take_turn(store: str, session: AgentSession, text: str) -> None:
    """A turn in Python: a request and an answer."""

    async def main() -> None:
        async with open_history(store) as history, history.turn(session, [ChatMessage.user(text)]) as turn:
            turn.add(ChatMessage.assistant(f"An answer to: {text}"))

    asyncio.run(main())


@pytest.mark.parametrize("dotnet", [f"{kind}{more}" for kind in KINDS for more in ("", " secured")], indirect=True)
def test_the_articles_scenario_runs(dotnet: Dotnet) -> None:
    counts = [line.split()[2] for line in dotnet.run("scenario")]
    assert counts == ["4", "8", "10", "4", "14", "20"]


def test_the_articles_scenario_runs_again_beside_what_is_there(simple: Dotnet) -> None:
    first, second = ([line.split()[0] for line in simple.run("scenario")] for _ in range(2))
    assert len({*first, *second}) == 4
    assert len(simple.run("read", first[0])) == len(simple.run("read", second[0])) == 20


def test_every_kind_of_message_comes_back_to_dotnet_as_it_was(dotnet: Dotnet) -> None:
    assert dotnet.run("roundtrip") == ["68 cases, 0 failed"]


def test_a_session_goes_from_dotnet_to_python_and_back(dotnet: Dotnet) -> None:
    (text,) = dotnet.run("session")
    session = AgentSession.from_json(json.loads(text))
    take_turn(dotnet.store, session, "And in Python?")
    counted, text = dotnet.run("resume", given=json.dumps(session.to_json()))
    key, count = counted.split()
    assert count == "8"  # four, two of Python, two
    assert [message.role for message in read(dotnet.store, key)] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
        *("user", "assistant"),
    ]
    assert dotnet.read(key) == read(dotnet.store, key)
    assert AgentSession.from_json(json.loads(text)).state.to_json() == session.state.to_json()


def test_a_session_goes_from_python_to_dotnet_and_back(dotnet: Dotnet) -> None:
    session = AgentSession()
    take_turn(dotnet.store, session, "Begun in Python.")
    counted, text = dotnet.run("resume", given=json.dumps(session.to_json()))
    key, count = counted.split()
    assert count == "4"
    session = AgentSession.from_json(json.loads(text))
    take_turn(dotnet.store, session, "And on.")
    messages = read(dotnet.store, key)
    assert [message.role for message in messages] == ["user", "assistant"] * 3
    assert messages[0].text == "Begun in Python."
    assert messages[4].text == "And on."
    assert dotnet.read(key) == messages


def test_what_dotnet_writes_python_reads(dotnet: Dotnet) -> None:
    rows = map(json.loads, (GOLDEN / "writing.jsonl").read_text("utf-8").splitlines())
    agents = [row["agents"] for row in rows if "agents" in row]
    lines = [text for text in agents if text.startswith("{") and ATTRIBUTION_KEY not in text]  # a mark is not read
    assert dotnet.run("write", "written", given="\n".join(lines)) == [str(len(lines))]
    read_by_python = read(dotnet.store, "written")
    assert len(read_by_python) == len(lines) > 50
    assert dotnet.read("written") == read_by_python


def test_contents_that_dotnet_has_no_type_for_are_read_by_dotnet_and_come_back_to_python(dotnet: Dotnet) -> None:
    odd = ChatMessage(
        role="assistant",
        contents=[
            TextContent(text="seen"),
            UnknownContent(raw={"$type": "hologram", "rays": [1, 2.5, {"deep": None}]}),
            UnknownContent(raw={"type": "computer_call", "action": {"x": 1}}),
        ],
    )
    write(dotnet.store, "odd", [Record(chat_message.encode(odd), chat_message.name)])
    (seen,) = dotnet.read("odd")
    assert seen.text == "seen"
    assert len(seen.contents) == 3
    assert read(dotnet.store, "odd") == [odd]
    (line,) = dotnet.run("read", "odd")  # what .NET has read, it writes again
    dotnet.run("write", "again", given=line)
    assert read(dotnet.store, "again") == [odd]


def test_conversations_in_other_formats_are_read_by_dotnet(dotnet: Dotnet) -> None:
    client = [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "日本語 😀"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{oops"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "12"},
        {"role": "assistant", "content": "Done.", "refusal": None, "odd": {"a": 1, "A": 2}},
    ]
    records = [Record(json.dumps(one).encode(), openai_chat.name) for one in client]
    records.insert(1, Record(b"\xff a note, which is no message", "chathistory-note"))
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{oops"}
    from_python = {"type": "message", "role": "assistant", "contents": [{"type": "text", "text": "From Python."}, call]}
    records.append(Record(json.dumps(from_python).encode(), agent_framework.name))
    records.append(Record(chat_message.encode(ChatMessage.user("And on.")), chat_message.name))
    write(dotnet.store, "mixed", records)
    messages = dotnet.read("mixed")
    roles = ["system", "user", "assistant", "tool", "assistant", "assistant", "user"]
    assert [message.role for message in messages] == roles
    assert [message.text for message in messages][-3:] == ["Done.", "From Python.", "And on."]


def real_conversations() -> list[Path]:
    return sorted(path for path in (SHARED / "data/openai_chat").glob("*.json")) if SHARED.exists() else []


def messages_in(value: object) -> list[list[dict[str, object]]]:
    """The lists of chat messages that are somewhere in it."""
    if isinstance(value, list):
        if value and all(isinstance(one, dict) and isinstance(one.get("role"), str) for one in value):
            return [value]
        return [found for one in value for found in messages_in(one)]
    return [found for one in value.values() for found in messages_in(one)] if isinstance(value, dict) else []


@pytest.mark.parametrize("path", real_conversations(), ids=lambda path: path.stem)
def test_real_conversations_of_other_clients_are_read_by_dotnet(simple: Dotnet, path: Path) -> None:
    conversations = messages_in(json.loads(path.read_text("utf-8")))
    assert conversations
    records = [Record(json.dumps(one).encode(), openai_chat.name) for each in conversations for one in each]
    write(simple.store, "real", records)
    assert len(simple.run("read", "real")) == len(read(simple.store, "real"))


REPAIRED = {
    "$type last",
    "$Type wrong case name",
    "$type twice",
    "$id member",
    "$other member",
    "createdAt space",
    "toolApprovalRequest old names",
    "toolCall is base",
    "offset 15",
}
"""Inputs that .NET refuses and that the service keeps in a form that .NET takes, with nothing hidden from it."""


def test_of_what_is_sent_all_that_is_kept_is_taken_by_dotnet_as_it_would_have_taken_that(simple: Dotnet) -> None:
    rows = [
        row for row in map(json.loads, (GOLDEN / "reading.jsonl").read_text("utf-8").splitlines()) if "input" in row
    ]
    kept = []
    with httpx.Client(base_url=simple.url) as client:
        for row in rows:
            body = f'{{"messages":[{row["input"]}]}}'.encode("utf-8", "surrogatepass")
            answer = client.post("/chat-history/kept", content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code in (202, 400, 422), row["case"]
            if answer.status_code == 202:
                kept.append(row)
    cases = {row["case"] for row in kept}
    takes = {row["case"] for row in rows if "web" in row}
    assert takes - cases == {"message null"}
    assert cases - takes == REPAIRED
    lines = simple.run("read", "kept")
    assert len(lines) == len(kept)
    for row, line in zip(kept, lines, strict=True):
        if "agents" in row and row["case"] != "additionalProperties key case twice":
            assert without_extras(json.loads(line)) == json.loads(row["agents"]), row["case"]


def without_extras(value: object) -> object:
    """Without what stands aside, where .NET does not look."""
    if isinstance(value, list):
        return [without_extras(one) for one in value]
    if not isinstance(value, dict):
        return value
    kept = {key: without_extras(one) for key, one in value.items() if key != "chathistory.extra"}
    return {key: one for key, one in kept.items() if not (key == "additionalProperties" and one == {} != value[key])}
