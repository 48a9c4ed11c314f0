"""What is a conversation in a file, under which key it is stored, and what happens when it is there already."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chathistory_core import ChatMessage, open_history

Run = Callable[..., Any]
Chat = Callable[..., str]

HI = {"role": "user", "content": "Hi"}
YES = {"role": "assistant", "content": "Yes?"}


@pytest.fixture
def put(cli: Run) -> Run:
    def run(*arguments: str, stdin: str = "") -> Any:
        return cli("import", "--format", "openai-chat", "--json", *arguments, stdin=stdin)

    return run


@pytest.fixture
def stored(cli: Run) -> Callable[[], dict[str, list[object]]]:
    """Every conversation of the configured store, by key."""

    def read() -> dict[str, list[object]]:
        lines = cli("export", "--format", "openai-chat", "--all").objects
        return {line["key"]: line["messages"] for line in lines}

    return read


def result(key: str, messages: int, what: str = "stored") -> dict[str, object]:
    return {"key": key, "messages": messages, "result": what}


@pytest.mark.parametrize(
    ("value", "conversations"),
    [
        ([HI, YES], {"chat": [HI, YES]}),
        (HI, {"chat": [HI]}),
        ({"model": "m", "messages": [HI]}, {"chat": [HI]}),
        ([[HI], [YES]], {"chat-1": [HI], "chat-2": [YES]}),
        ([[HI], [], [YES]], {"chat-1": [HI], "chat-3": [YES]}),
        ([{"messages": [HI]}, [YES]], {"chat-1": [HI], "chat-2": [YES]}),
        ([{"key": "ann/1", "messages": [HI]}, {"messages": [YES]}], {"ann/1": [HI], "chat-2": [YES]}),
        ([HI | {"messages": [YES]}], {"chat": [HI | {"messages": [YES]}]}),
    ],
)
def test_a_file_holds_a_conversation_or_several(
    put: Run, stored: Callable[[], object], chat: Chat, value: object, conversations: object
) -> None:
    assert put(chat(value=value)).status == 0
    assert stored() == conversations


def test_json_lines_are_messages_of_one_conversation_or_conversations(
    put: Run, stored: Callable[[], object], tmp_path: Path
) -> None:
    (tmp_path / "one.jsonl").write_text(f"{json.dumps(HI)}\n\n{json.dumps(YES)}\n")
    (tmp_path / "two.jsonl").write_text(f"{json.dumps([HI])}\r\n{json.dumps({'messages': [YES]})}")
    assert put("one.jsonl", "two.jsonl").objects == [result("one", 2), result("two-1", 1), result("two-2", 1)]
    assert stored() == {"one": [HI, YES], "two-1": [HI], "two-2": [YES]}


@pytest.mark.parametrize(
    ("path", "conversations"),
    [
        ("history", {"chat": [HI]}),
        ('["a.b"].c', {"chat": [YES]}),
        ("runs[1].log", {"chat": [YES]}),
        ("runs[*].log", {"chat-1": [HI], "chat-2": [YES]}),
        ("runs[*].log[0]", {"chat": [HI, YES]}),
        ("by_id[*]", {"chat-1": [HI], "chat-2": [YES]}),
        ("[*].log", None),
        ("runs[7]", None),
        ("history.role", None),
    ],
)
def test_a_path_leads_to_the_messages(
    put: Run, stored: Callable[[], object], chat: Chat, path: str, conversations: object
) -> None:
    wrapped = {
        "history": [HI],
        "a.b": {"c": [YES]},
        "runs": [{"log": [HI], "score": 1}, {"score": 2, "log": [YES]}],
        "by_id": {"x": [HI], "y": [YES]},
    }
    run = put("--path", path, chat(value=wrapped))
    if conversations is None:
        assert run.status == 1
        assert "holds no messages where --path leads" in run.err
    else:
        assert stored() == conversations


@pytest.mark.parametrize("path", [".history", "a..b", "[x]", '["a]', "[-1]", "a[", "*"])
def test_what_is_no_path_is_wrong_usage(put: Run, chat: Chat, path: str) -> None:
    run = put("--path", path, chat("Hi"))
    assert run.status == 2
    assert "at character" in json.loads(run.err)["error"]["message"]


def test_messages_stay_as_they_are_written(cli: Run, put: Run, tmp_path: Path) -> None:
    written = r'{"x_cost": 1.10, "role": "user", "content": "caf\u00e9 \/ 😀", "x": 1e2, "x": 12345678901234567890}'
    (tmp_path / "deep.json").write_text(f'{{"a": [\n {{"log": [\n  {written}\n ]}}]}}', "utf-8")
    put("--path", "a[0].log", "deep.json")
    assert cli("export", "--format", "openai-chat", "deep").out == f"[\n{written}\n]\n"


def test_what_was_imported_is_not_stored_again(put: Run, stored: Callable[[], object], chat: Chat) -> None:
    file = chat("Hi", "Hi", "Hi")
    assert put(file).objects == [result("chat", 3)]
    assert put(file).objects == [result("chat", 3, "present")]
    assert stored() == {"chat": [HI, HI, HI]}


def test_what_was_imported_and_continued_since_is_left_as_it_is(
    cli: Run, put: Run, stored: Callable[[], dict[str, list[object]]], chat: Chat
) -> None:
    url = "sqlite:///chathistory.db"
    assert put(chat("Hi")).status == 0
    _append(url, "chat", "More")
    assert put(chat("Hi")).objects == [result("chat", 1, "present")]
    assert len(stored()["chat"]) == 2


def test_a_key_that_holds_something_else_is_refused_and_the_others_are_stored(
    put: Run, stored: Callable[[], object], chat: Chat
) -> None:
    assert put("--key", "b", chat("Old")).status == 0
    files = [chat(name, name=f"{name}.json") for name in ("a", "b", "c")]
    run = put(*files)
    assert run.status == 1
    assert run.objects == [result("a", 1), result("b", 1, "refused"), result("c", 1)]
    assert json.loads(run.err)["error"]["message"].startswith("1 of 3 conversations are refused")
    assert stored() == {
        "a": [{"role": "user", "content": "a"}],
        "b": [{"role": "user", "content": "Old"}],
        "c": [{"role": "user", "content": "c"}],
    }


def test_a_file_that_has_grown_is_refused(put: Run, stored: Callable[[], object], chat: Chat) -> None:
    put(chat("Hi"))
    assert put(chat("Hi", "More")).objects == [result("chat", 2, "refused")]
    assert stored() == {"chat": [HI]}


def test_a_conversation_that_others_began_is_refused(cli: Run, put: Run, chat: Chat) -> None:
    _append("sqlite:///chathistory.db", "chat", "Hi")
    assert put(chat("Hi")).objects == [result("chat", 1, "refused")]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds no messages"),
        (b"[]", "holds no messages"),
        (b"[[], []]", "holds no messages"),
        (b'[{"role": "user", "content": "canary"}', "is no JSON: line 1, column"),
        (b'[{"role": "user", "content": "canary"}] canary', "is no JSON: line 1, column 41"),
        (b'[{"role": "user", "content": "canary"}, 7]', "holds other things beside conversations"),
        (b'[{"role": "user", "content": "canary"}, {"messages": []}]', "holds other things beside conversations"),
        (b'{"canary": []}', "message 0 has no role (where messages stand deeper in the file, --path says where)"),
        (b'[{"role": "user", "content": "Hi"}, {"content": "canary"}]', "message 1 has no role"),
        (b'[{"role": "user", "content": "\xff canary"}]', "is not UTF-8"),
        (b'[{"role": "user", "content": NaN, "x": "canary"}]', "NaN"),
        (b'[{"role": "user", "content": "\\ud800 canary"}]', "surrogate"),
        (b"[" * 100_000, "is nested too deep"),
        (b'{"messages": [{"role": "user", "x": ' + b"9" * 5_000 + b"}]}", "4,300 digits"),
    ],
)
def test_a_file_that_is_not_of_the_format_is_one_line_without_content(
    cli: Run, tmp_path: Path, content: bytes, reason: str
) -> None:
    (tmp_path / "wrong.json").write_bytes(content)
    run = cli("import", "--format", "openai-chat", "wrong.json")
    assert reason in run.error
    assert "'wrong.json'" in run.error
    assert "canary" not in run.err + run.out


def test_nothing_is_written_where_one_of_the_files_is_wrong(put: Run, stored: Callable[[], object], chat: Chat) -> None:
    wrong = chat(value=[[HI], [{"content": "no role"}]], name="wrong.json")
    run = put(chat("Hi"), wrong)
    assert run.status == 1
    assert f"conversation 2 of {wrong!r}" in json.loads(run.err)["error"]["message"]
    assert stored() == {}


def test_a_message_larger_than_the_store_takes_is_refused_before_anything_is_written(
    put: Run, stored: Callable[[], object], chat: Chat
) -> None:
    run = put(chat("Hi"), chat("x" * (17 * 2**20), name="large.json"))
    assert json.loads(run.err)["error"]["type"] == "TooLargeError"
    assert stored() == {}


def test_a_conversation_larger_than_one_write_is_stored_in_several_and_only_once(
    cli: Run, put: Run, chat: Chat, tight: str
) -> None:
    file = chat("0", "1", "2", "3", "4")
    assert put(file, "--url", tight).objects == [result("chat", 5)]
    assert put(file, "--url", tight).objects == [result("chat", 5, "present")]
    shown = cli("show", "chat", "--json", "--url", tight).objects
    assert [one["message"]["contents"][0]["text"] for one in shown] == ["0", "1", "2", "3", "4"]
    assert [turns.index(one["turn_id"]) for turns in [[one["turn_id"] for one in shown]] for one in shown] == [
        0,
        0,
        2,
        2,
        4,
    ]


def test_an_import_that_was_cut_short_goes_on_where_it_stopped(cli: Run, put: Run, chat: Chat, tight: str) -> None:
    put(chat("0", "1"), "--url", tight)
    assert put(chat("0", "1", "2", "3", "4"), "--url", tight).objects == [result("chat", 5)]
    assert put(chat("0", "1", "2", "3", "4"), "--url", tight).objects == [result("chat", 5, "present")]


def test_an_import_that_was_cut_short_and_continued_by_others_is_refused(
    cli: Run, put: Run, chat: Chat, tight: str
) -> None:
    put(chat("0", "1"), "--url", tight)
    _append(tight, "chat", "More")
    assert put(chat("0", "1", "2", "3", "4"), "--url", tight).objects == [result("chat", 5, "refused")]


def test_keys_come_from_the_file_the_option_or_the_prefix(
    put: Run, stored: Callable[[], dict[str, object]], chat: Chat
) -> None:
    put(chat("Hi", name="a.traj.json"))
    put("--key", "ann", chat("Hi"))
    put("--key-prefix", "tenant/", chat(value=[[HI], [YES]]))
    put("-", "--key-prefix", "in/", stdin=json.dumps([HI]))
    assert list(stored()) == ["a.traj", "ann", "in/stdin", "tenant/chat-1", "tenant/chat-2"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--key", "x"], "--key names one conversation, and there are 2"),
        (["--key-prefix", "k" * 510], "more than 512"),
    ],
)
def test_a_key_that_cannot_be_is_refused(cli: Run, chat: Chat, options: list[str], reason: str) -> None:
    run = cli("import", "--format", "openai-chat", *options, chat(value=[[HI], [YES]]))
    assert reason in run.error


def test_two_files_of_one_name_are_refused(cli: Run, chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    run = cli("import", "--format", "openai-chat", chat("Hi"), chat("Hi", name="other/chat.json"))
    assert "two conversations would get the key 'chat'" in run.error


def test_a_file_that_is_not_there_is_one_line(cli: Run) -> None:
    assert "'no.json' cannot be read: No such file" in cli("import", "--format", "openai-chat", "no.json").error


def test_the_other_format_is_taken_too(cli: Run, chat: Chat) -> None:
    messages = [{"role": "user", "contents": [{"$type": "text", "text": "Hi"}]}]
    assert cli("import", "--format", "chat-message", chat(value=messages)).status == 0
    assert json.loads(cli("export", "--format", "chat-message", "chat").out) == messages
    assert json.loads(cli("export", "--format", "openai-chat", "chat").out) == [HI]


def test_people_get_a_table(cli: Run, chat: Chat) -> None:
    assert cli("import", "--format", "openai-chat", chat("Hi")).out == "stored           1  chat\n"


def _append(url: str, key: str, text: str) -> None:
    async def append() -> None:
        async with open_history(url) as history, history.turn(history.session(key), [ChatMessage.user(text)]):
            pass

    asyncio.run(append())
