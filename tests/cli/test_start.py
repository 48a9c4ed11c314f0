"""How the command line starts, and how it ends."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Chat = Callable[..., str]
Start = Callable[..., "subprocess.Popen[bytes]"]

COMMANDS = ("backends", "list", "show", "import", "export", "clear", "check", "new-backend", "demo")


def test_without_a_command_there_is_help(cli: Run) -> None:
    run = cli()
    assert (run.status, run.err) == (0, "")
    assert all(command in run.out for command in COMMANDS)


def test_the_version_is_that_of_the_distribution(cli: Run) -> None:
    assert cli("--version") == (0, f"chathistory-core {version('chathistory-core')}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(cli: Run, command: str) -> None:
    run = cli(command, "--help")
    assert (run.status, run.err) == (0, "")
    assert "Usage:" in run.out


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["lst"], "No such command 'lst'. Did you mean 'list'?: chathistory --help"),
        (["list", "--recnt"], "--recnt"),
        (["list", "--limit", "-1"], "chathistory list --help shows what there is"),
        (["show"], "KEY"),
        (["export", "k"], "--format"),
        (["export", "k", "--format", "xml"], "openai-chat"),
    ],
)
def test_wrong_usage_is_one_line_that_leads_to_help(cli: Run, arguments: list[str], reason: str) -> None:
    run = cli(*arguments)
    assert (run.status, run.out) == (2, "")
    assert reason in run.err
    assert run.err.count("\n") == 1
    assert "shows what there is" in run.err


SECRET = "redis://ann:canary@@localhost/0"


@pytest.mark.parametrize(
    "arguments",
    [
        ["list", SECRET],
        [SECRET],
        ["list", "--url", f"x{SECRET}"],
        ["list", "--url", f"{SECRET}?tll=1"],
        ["list", "--url", f"{SECRET}#"],
        ["list", "--limit", SECRET],
        ["list", "--option", "canary"],
        ["list", "--url", "redis", "--option", "passwrd=canary"],
        ["list", "--url", "sqlite", "--option", f"url={SECRET}"],
        ["list", "--url", "redis", "--option", "db=canary"],
        ["list", "--url", "redis://ann:canary@localhost:1"],
        ["export", "--format", SECRET, "k"],
        ["import", "--format", "openai-chat", SECRET],
    ],
)
def test_no_password_is_shown(cli: Run, arguments: list[str]) -> None:
    run = cli(*arguments)
    assert run.status in {1, 2}
    assert run.err.count("\n") == 1
    assert "canary" not in run.out + run.err
    again = cli(*arguments, "--json")
    assert "canary" not in again.out + again.err


def test_errors_for_programs_are_json(cli: Run) -> None:
    run = cli("show", "nobody", "--json")
    assert run.status == 1
    assert json.loads(run.err) == {
        "error": {
            "type": "CommandError",
            "message": "there is no conversation 'nobody': `chathistory list` shows those there are",
            "retryable": False,
        }
    }
    run = cli("show", "--json")
    assert run.status == 2
    assert json.loads(run.err)["error"]["type"] == "UsageError"


def test_a_store_that_cannot_be_reached_is_one_line(cli: Run, tmp_path: Path) -> None:
    assert "chathistory: " in cli("list", "--url", "sqlite:///no/such/folder/chat.db").error
    run = cli("list", "--json", "--url", f"unix://{tmp_path}/nothing")
    assert json.loads(run.err)["error"] | {"message": ""} == {
        "type": "BackendUnavailableError",
        "message": "",
        "retryable": True,
    }


def test_an_uninstalled_store_is_one_line_with_what_to_do(cli: Run) -> None:
    assert "backend 'nosuch' is not installed" in cli("list", "--url", "nosuch://x").error


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_a_stream_that_lacks_characters_gets_others_instead_and_json_loses_none(
    cli: Run, chat: Chat, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    text = "Zürich 🕌 日本 \x9b"
    cli("import", "--format", "openai-chat", chat(text))

    def printed(*arguments: str) -> str:
        stream = BytesIO()
        with TextIOWrapper(stream, encoding) as out, monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            assert cli(*arguments).status == 0
            out.flush()
            return stream.getvalue().decode(encoding)

    assert "rich" in printed("show", "chat")
    [message] = json.loads(printed("export", "--format", "openai-chat", "chat"))
    assert message["content"] == text
    shown = json.loads(printed("show", "--json", "chat").encode().decode("utf-8"))
    assert shown["message"]["contents"][0]["text"] == text


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's pipes")
def test_a_reader_that_has_enough_ends_it_quietly(cli: Run, chat: Chat, process: Start) -> None:
    cli("import", "--format", "openai-chat", chat(*("x" * 1_000 for _ in range(500))))
    for command, enough in (["export", "--format", "openai-chat", "chat"], 10), (["list"], 0):
        with process(*command) as run:
            assert run.stdout is not None
            assert run.stderr is not None
            run.stdout.read(enough)
            run.stdout.close()
            assert run.stderr.read() == b""
            assert run.wait() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a signal of another kind")
def test_an_interrupt_ends_it_quietly(process: Start, interrupt: Callable[..., None], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "endless.json")
    start = process("import", "--format", "openai-chat", "endless.json")
    with start as run, (tmp_path / "endless.json").open("wb") as file:
        file.write(b" " * 2**20)  # more than fits in between: it has begun to read
        interrupt(run)
        out, err = run.communicate()
    assert (run.returncode, out, err) == (130, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell's redirections")
def test_a_process_without_streams_works_all_the_same(cli: Run, chat: Chat) -> None:
    shell = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, "-W", "error", "-m", "chathistory_core.cli"]
    command = [*shell, "import", "--format", "openai-chat"]
    assert subprocess.run([*command, chat("hello")], check=False).returncode == 0
    assert [one["key"] for one in cli("list", "--json").objects] == ["chat"]
    assert subprocess.run([*shell, "show", "elsewhere"], check=False).returncode == 1

    command[2] = 'exec "$0" "$@" <&-'
    run = subprocess.run([*command, "-"], capture_output=True, encoding="utf-8", check=False)
    assert (run.returncode, run.stderr) == (1, "chathistory: stdin holds no messages\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_disk_is_one_line() -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "chathistory_core.cli", "--version"]
        run = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (run.returncode, run.stderr) == (1, b"chathistory: No space left on device\n")


def test_a_missing_extra_is_one_line_with_the_command_that_installs_it() -> None:
    block = "import sys; sys.modules['typer'] = None; from chathistory_core.cli import main; main()"
    run = subprocess.run([sys.executable, "-c", block, "list"], capture_output=True, encoding="utf-8", check=False)
    assert run.returncode == 1
    assert run.stderr.startswith('chathistory: typer is not installed. Run: pip install "chathistory-core[cli]" (')
    assert run.stderr.count("\n") == 1


def test_no_driver_is_loaded_to_list_backends(process: Start) -> None:
    block = """
import sys
sys.argv = ["chathistory", "backends", "--json"]
from chathistory_core.cli import main
try:
    main()
except SystemExit:
    print(sorted({"redis", "sqlalchemy", "aiosqlite", "openai"} & set(sys.modules)))
"""
    run = subprocess.run([sys.executable, "-c", block], capture_output=True, encoding="utf-8", check=True)
    assert run.stdout.endswith("}\n[]\n"), run.stdout


def test_backends_names_distribution_version_and_state(cli: Run) -> None:
    lines = {line["name"]: line for line in cli("backends", "--json").objects}
    assert lines["sqlite"] == {
        "name": "sqlite",
        "distribution": "chathistory-sqlite",
        "version": version("chathistory-sqlite"),
        "state": "ok",
        "configured": True,
        "problem": None,
        "install": None,
    }
    assert not lines["memory"]["configured"]
    table = cli("backends").out
    assert re.search(
        rf"^memory +chathistory-memory {re.escape(version('chathistory-memory'))} +ok$", table, re.MULTILINE
    )
    assert table.endswith("\nConfigured: sqlite, by the default.\n")


def test_backends_shows_what_is_configured_and_where(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKEND", "memory://")
    assert cli("backends").out.endswith("Configured: memory, by environment variable CHATHISTORY_BACKEND.\n")
    monkeypatch.setenv("CHATHISTORY_BACKEND", "nosuch://ann:canary@host")
    run = cli("backends")
    assert run.out.endswith("by environment variable CHATHISTORY_BACKEND, which is not installed.\n")
    assert "canary" not in run.out


def test_backends_are_listed_where_the_configuration_is_wrong(cli: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHATHISTORY_BACKENDS", "memory")
    run = cli("backends")
    assert "CHATHISTORY_BACKENDS is unknown" in run.error
    assert "chathistory-sqlite" in run.out


def test_a_broken_backend_is_shown_and_hurts_nobody(cli: Run, install: Callable[..., None]) -> None:
    install("broken", "raise OSError('no\\nlibrary')", group="chathistory.backends", names={"broken": ""})
    install("double-a", "", group="chathistory.backends", names={"double": ""})
    install("double-b", "", group="chathistory.backends", names={"double": ""})
    lines = cli("backends", "--json").objects
    assert [(line["state"], line["distribution"]) for line in lines if line["name"] == "double"] == [
        ("ambiguous", "double-a"),
        ("ambiguous", "double-b"),
    ]
    [broken] = [line for line in lines if line["name"] == "broken"]
    assert broken["state"] == "broken"
    assert "OSError: no library" in broken["problem"]
    assert "ok" in {line["state"] for line in lines}
    assert re.search(r"^broken +broken 1.0 +broken: .*OSError: no library$", cli("backends").out, re.MULTILINE)


def test_a_backend_of_an_extra_that_is_not_installed_has_the_command_for_it(
    cli: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    core = tmp_path / "site" / "chathistory_core-9.dist-info"
    core.mkdir(parents=True)
    (core / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: chathistory-core\nVersion: 9\nProvides-Extra: shelf\nProvides-Extra: cli\n"
        "Requires-Dist: chathistory-shelf>=1; extra == 'shelf'\nRequires-Dist: typer; extra == 'cli'\n"
    )
    monkeypatch.syspath_prepend(core.parent)
    [missing] = [line for line in cli("backends", "--json").objects if line["state"] == "missing"]
    assert (missing["name"], missing["distribution"]) == ("shelf", "chathistory-shelf")
    assert missing["install"].startswith(
        'pip install "chathistory-core[shelf]" (from a folder of wheels: add --find-links'
    )
    assert f"missing: {missing['install']}" in cli("backends").out
