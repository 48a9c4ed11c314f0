"""Looking into a store: list, show, export, clear."""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from chathistory_core import (
    ChatMessage,
    Record,
    new_turn_id,
    open_backend,
    open_history,
)
from chathistory_core.messages import (
    AIContent,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    TextContent,
    TextReasoningContent,
    UnknownContent,
    UriContent,
    UsageContent,
    UsageDetails,
)

Run = Callable[..., Any]

URL = "sqlite:///chathistory.db"


def store(messages: dict[str, Sequence[ChatMessage]], url: str = URL) -> None:
    """Each conversation with its messages, in this order."""

    async def write() -> None:
        async with open_history(url) as history:
            for key, said in messages.items():
                async with history.turn(history.session(key), said):
                    pass

    asyncio.run(write())


HI = [ChatMessage.user("Hi")]


def test_list_has_every_conversation_by_key(cli: Run) -> None:
    store({"b": HI, "a": [*HI, *HI]})
    header, *rows = cli("list").out.splitlines()
    assert header.split() == ["UPDATED", "MESSAGES", "KEY"]
    assert [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d +", "", row) for row in rows] == ["2  a", "1  b"]


def test_list_of_an_empty_store_is_empty(cli: Run) -> None:
    assert cli("list") == (0, "", "")


def test_list_for_programs_has_the_heads(cli: Run) -> None:
    store({"a": [*HI, *HI]})
    [line] = cli("list", "--json").objects
    assert list(line) == ["key", "revision", "epoch", "record_count", "created_at", "updated_at"]
    assert (line["key"], line["record_count"]) == ("a", 2)
    assert line["created_at"].endswith("+00:00")


@pytest.mark.parametrize(
    ("options", "keys"),
    [
        ([], ["a/1", "a/2", "b"]),
        (["--prefix", "a/"], ["a/1", "a/2"]),
        (["--prefix", "c"], []),
        (["--limit", "1"], ["a/1"]),
        (["--limit", "0"], []),
        (["--recent"], ["a/1", "b", "a/2"]),
        (["--recent", "--limit", "2", "--prefix", "a"], ["a/1", "a/2"]),
    ],
)
def test_list_can_be_narrowed(cli: Run, options: list[str], keys: list[str]) -> None:
    for key in ("a/2", "b", "a/1"):
        store({key: HI})
    assert [line["key"] for line in cli("list", "--json", *options).objects] == keys


def test_list_has_all_pages(cli: Run) -> None:
    async def write() -> None:
        async with open_backend("memory://many") as backend:
            for number in range(2_500):
                record = Record(b'{"role":"user","content":"Hi"}', "openai-chat")
                await backend.append(f"{number:05}", [record], turn_id=new_turn_id())

    asyncio.run(write())
    for options, count in ([], 2_500), (["--limit", "2100"], 2_100), (["--limit", "1000"], 1_000):
        lines = cli("list", "--url", "memory://many", "--json", *options).objects
        assert [line["key"] for line in lines] == [f"{number:05}" for number in range(count)]


def test_show_tells_who_said_what(cli: Run) -> None:
    said = [
        ChatMessage(role="user", author_name="Ann", contents=[TextContent(text="What time\n\tis it?\r\nNow.")]),
        ChatMessage(
            role="assistant",
            contents=[
                TextReasoningContent(text="The clock."),
                FunctionCallContent(call_id="c1", name="get_time", arguments={"zone": "Zürich"}),
                FunctionCallContent(call_id="c2", name="get_date", arguments_text="{broken"),
            ],
        ),
        ChatMessage.tool("c1", {"time": "12:00"}),
        ChatMessage.tool("c2", "today"),
        ChatMessage(
            role="assistant",
            contents=[
                ErrorContent(message="No.", error_code="Refusal"),
                DataContent(uri="data:image/png;base64,aGVsbG8=", name="dot.png"),
                UriContent(uri="https://example.com/x.gif", media_type="image/gif"),
                HostedFileContent(file_id="f1"),
                UsageContent(details=UsageDetails(input_token_count=1)),
                AIContent(),
                UnknownContent(raw={"$type": "new"}),
            ],
        ),
    ]
    store({"k": said})
    shown = re.sub(r", \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "", cli("show", "k").out)
    assert shown == (
        "1 user (Ann)\n    What time\n    \tis it?\n    Now.\n\n"
        "2 assistant\n"
        "    [thinking] The clock.\n"
        '    [call c1] get_time {"zone": "Zürich"}\n'
        "    [call c2] get_date {broken\n\n"
        '3 tool\n    [result c1] {"time": "12:00"}\n\n'
        "4 tool\n    [result c2] today\n\n"
        "5 assistant\n"
        "    [error Refusal] No.\n"
        "    [data image/png, 5 bytes dot.png]\n"
        "    [image/gif] https://example.com/x.gif\n"
        "    [file f1]\n"
        "    [usage]\n"
        "    [content of no kind]\n"
        "    [unknown content]\n\n"
    )


def test_show_can_show_the_newest_records_alone(cli: Run) -> None:
    store({"k": [ChatMessage.user(text) for text in "abc"]})
    shown = cli("show", "k", "--json", "--limit", "2").objects
    assert [(one["position"], one["message"]["contents"][0]["text"]) for one in shown] == [(2, "b"), (3, "c")]


def test_show_for_programs_has_the_canonical_form(cli: Run) -> None:
    store({"k": HI})
    [line] = cli("show", "k", "--json").objects
    assert list(line) == ["position", "turn_id", "stored_at", "format", "message"]
    assert line["format"] == "chat-message"
    assert line["message"] == {"role": "user", "contents": [{"$type": "text", "text": "Hi"}]}


STEERING = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\u202e\x00[red]:smile:"


def test_nothing_in_a_message_or_key_steers_the_terminal(cli: Run) -> None:
    key = STEERING.replace("\x00", "") + "\n1 system"
    said = ChatMessage(
        role=f"user{STEERING}",
        author_name=STEERING,
        contents=[
            TextContent(text=f"{STEERING}\n1 system, 2026-01-01 00:00:00"),
            FunctionCallContent(call_id=STEERING, name=STEERING, arguments_text=STEERING),
            FunctionResultContent(call_id=STEERING, result={STEERING: STEERING}),
            DataContent(uri="data:text/plain;base64,", name=STEERING),
        ],
    )
    store({key: [said]})
    for arguments in ["list"], ["show", key], ["list", "--json"], ["show", key, "--json"], ["clear", key, "--yes"]:
        run = cli(*arguments)
        assert run.status == 0
        assert not set(re.findall(r"[^\n -~]", run.out)), arguments
    assert r"\x1b[2J" in cli("show", "nobody\x1b[2J").error


def test_no_line_of_content_looks_like_a_heading(cli: Run) -> None:
    store({"k": [ChatMessage.user("Hi\n2 system, 2026-01-01 00:00:00\n    Obey.")]})
    assert len([line for line in cli("show", "k").out.splitlines() if line and not line.startswith("    ")]) == 1


@pytest.mark.parametrize("command", [["show", "nobody"], ["export", "nobody", "--format", "openai-chat"]])
def test_an_unknown_key_is_an_error(cli: Run, command: list[str]) -> None:
    store({"k": HI})
    run = cli(*command)
    assert "there is no conversation 'nobody'" in run.error
    assert run.out == ""


def test_a_record_that_cannot_be_read_is_one_line(cli: Run) -> None:
    async def write() -> None:
        async with open_backend() as backend:
            await backend.append("k", [Record(b"canary", "openai-chat")], turn_id="1")
            await backend.append("sealed", [Record(b"canary", "openai-chat+aesgcm.k1")], turn_id="1")

    asyncio.run(write())
    assert "position 1 of conversation 'k' cannot be read" in cli("show", "k").error
    assert "no format 'openai-chat+aesgcm.k1'" in cli("export", "--format", "openai-chat", "sealed").error


def test_export_of_one_key_is_what_a_client_takes(cli: Run) -> None:
    store({"k": [ChatMessage.user("Hi"), ChatMessage.assistant("Yes?")]})
    run = cli("export", "--format", "openai-chat", "k")
    assert json.loads(run.out) == [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]
    assert run.err == ""


def test_export_of_several_is_a_line_each(cli: Run) -> None:
    store({"a": HI, "b": [], "c": HI})
    store({"a/1": HI})
    hi = [{"role": "user", "content": "Hi"}]
    both = [{"key": "c", "messages": hi}, {"key": "a", "messages": hi}]
    assert cli("export", "--format", "openai-chat", "c", "a").objects == both
    assert cli("export", "--format", "openai-chat", "--json", "c").objects == both[:1]
    by_prefix = [{"key": key, "messages": hi} for key in ("a", "a/1")]
    assert cli("export", "--format", "openai-chat", "--prefix", "a").objects == by_prefix
    assert [line["key"] for line in cli("export", "--format", "openai-chat", "--all").objects] == ["a", "a/1", "c"]


def test_what_export_writes_import_takes(cli: Run) -> None:
    store({"a/1": [*HI, ChatMessage.tool("c", {"x": 1})], "b": HI})
    for form in "openai-chat", "chat-message":
        exported = cli("export", "--format", form, "--all").out
        assert cli("import", "--format", form, "--url", f"sqlite:///{form}.db", "-", stdin=exported).status == 0
        assert cli("export", "--format", form, "--all", "--url", f"sqlite:///{form}.db").out == exported


def test_export_of_a_long_conversation_is_whole(cli: Run) -> None:
    store({"k": [ChatMessage.user(str(number)) for number in range(1_500)]})
    exported = json.loads(cli("export", "--format", "openai-chat", "k").out)
    assert [message["content"] for message in exported] == [str(number) for number in range(1_500)]


@pytest.mark.parametrize("command", [["export", "--format", "openai-chat"], ["clear", "--yes"]])
@pytest.mark.parametrize("selection", [[], ["k", "--prefix", "k"], ["k", "--all"], ["--prefix", ""]])
def test_what_to_take_is_said_in_one_way(cli: Run, command: list[str], selection: list[str]) -> None:
    store({"k": HI})
    run = cli(*command, *selection)
    assert run.status == 2
    assert "--all" in run.err
    assert run.out == ""
    assert len(cli("list", "--json").objects) == 1


@pytest.mark.parametrize(
    ("selection", "count", "left"),
    [
        (["a/1"], 1, ["a/2", "b"]),
        (["a/1", "b", "a/1"], 2, ["a/2"]),
        (["--prefix", "a/"], 2, ["b"]),
        (["--prefix", "c"], 0, ["a/1", "a/2", "b"]),
        (["--all"], 3, []),
    ],
)
def test_clear_removes_what_is_named(cli: Run, selection: list[str], count: int, left: list[str]) -> None:
    store({"a/1": HI, "a/2": HI, "b": HI})
    assert cli("clear", "--yes", "--json", *selection).objects == [{"cleared": count}]
    assert [line["key"] for line in cli("list", "--json").objects] == left


def test_clear_of_an_unknown_key_clears_nothing(cli: Run) -> None:
    store({"a": HI})
    assert "there is no conversation 'b'" in cli("clear", "--yes", "a", "b").error
    assert len(cli("list", "--json").objects) == 1


def test_clear_without_a_terminal_needs_a_yes(cli: Run) -> None:
    store({"a": [*HI, *HI], "b": HI})
    refusal = cli("clear", "--prefix", "a", stdin="y\n").error
    assert "1 conversation with 2 messages whose keys begin with 'a' would be cleared" in refusal
    assert "--yes" in refusal
    assert len(cli("list", "--json").objects) == 2


@pytest.mark.parametrize(("answer", "status", "left"), [(b"y\n", 0, 0), (b"n\n", 1, 2), (None, 130, 2)])
def test_clear_asks_at_a_terminal(
    cli: Run, at_a_terminal: Callable[..., Any], answer: bytes | None, status: int, left: int
) -> None:
    store({"a": [*HI, *HI], "b": HI})
    with at_a_terminal("clear", "--all") as session:
        assert b"Clear 2 conversations with 3 messages?" in session.read_until(b"[y/N]: ")
        session.interrupt() if answer is None else session.write(answer)
        assert b"Traceback" not in session.read_all()
    assert session.status == status
    assert len(cli("list", "--json").objects) == left


def test_long_work_shows_how_far_it_is_at_a_terminal_alone(
    cli: Run, at_a_terminal: Callable[..., Any], chat: Callable[..., str]
) -> None:
    file = chat(value=[[{"role": "user", "content": str(number)}] for number in range(50)])
    with at_a_terminal("import", "--format", "openai-chat", file) as session:
        shown = session.read_all()
    assert session.status == 0
    assert b"Importing" in shown
    assert b"50/50" in shown
    assert cli("import", "--format", "openai-chat", file).err == ""


def test_options_of_the_store_stand_beside_its_url(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    store({"k": HI}, "sqlite:///other.db")
    assert cli("list", "--json", "--url", "sqlite:///other.db", "--option", "ttl=1d").status == 0
    assert "option 'tll'" in cli("list", "--url", "sqlite:///other.db", "--option", "tll=1d").error
    monkeypatch.setenv("CHATHISTORY_BACKEND", "sqlite")
    assert len(cli("list", "--json", "--option", "url=sqlite:///other.db").objects) == 1
    for options in ["ttl"], ["=1d"], ["ttl=1d", "--option", "ttl=2d"]:
        assert cli("list", "--option", *options).status == 2


def test_the_configured_store_is_the_one_that_is_used(
    cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store({"k": HI}, "sqlite:///other.db")
    (tmp_path / "chathistory.toml").write_text('backend = "sqlite:///other.db"')
    assert len(cli("list", "--json").objects) == 1
    monkeypatch.setenv("CHATHISTORY_BACKEND", "sqlite:///third.db")
    assert cli("list", "--json").objects == []


def test_every_command_works_on_the_other_store_too(cli: Run, url: str) -> None:
    store({"a/1": HI, "a/2": HI}, url)
    assert len(cli("list", "--json", "--url", url).objects) == 2
    assert len(cli("show", "a/1", "--json", "--url", url).objects) == 1
    assert len(cli("export", "--format", "openai-chat", "--prefix", "a/", "--url", url).objects) == 2
    assert cli("clear", "a/1", "--yes", "--json", "--url", url).objects == [{"cleared": 1}]
    assert cli("clear", "--prefix", "a/", "--yes", "--json", "--url", url).objects == [{"cleared": 1}]
    assert cli("list", "--json", "--url", url).objects == []
