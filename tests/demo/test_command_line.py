"""How the command line starts, and how it ends when something is wrong."""

import subprocess
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper

import pytest

from chathistory_core.cli import main

Run = Callable[..., subprocess.CompletedProcess[str]]


def line(run: subprocess.CompletedProcess[str]) -> str:
    """The one line that a failed run ends with."""
    assert run.returncode == 1
    assert run.stderr.count("\n") == 1, run.stderr
    assert run.stderr.startswith("chathistory: ")
    return run.stderr


@pytest.mark.parametrize("missing", ["typer", "rich", "openai"])
def test_a_missing_extra_is_one_line_with_the_command_that_installs_it(missing: str, process: Run) -> None:
    block = f"import sys; sys.modules[{missing!r}] = None; from chathistory_core.cli import main; main()"
    reason = line(process("-c", block, "demo"))
    assert f"{missing} is not installed" in reason
    assert 'pip install "chathistory-core[demo]"' in reason
    assert "add --find-links FOLDER; in a checkout: uv sync --all-packages --all-extras" in reason


def test_another_missing_module_is_a_bug_and_shows_where(process: Run) -> None:
    block = "import sys; sys.modules['http.server'] = None; from chathistory_core.cli import main; main()"
    run = process("-c", block, "demo")
    assert run.returncode == 1
    assert "Traceback" in run.stderr


def test_a_terminal_that_lacks_characters_gets_others_instead(demo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = BytesIO()
    with TextIOWrapper(terminal, "ascii") as out, TextIOWrapper(BytesIO(), "ascii") as err:
        monkeypatch.setattr(sys, "stdout", out)
        monkeypatch.setattr(sys, "stderr", err)
        assert demo("--url", "memory://", "--session", "Zürich 🕌").returncode == 0
        out.flush()
        assert b"Session Z?rich ? is unknown" in terminal.getvalue()


def test_a_key_that_steers_a_terminal_is_shown_escaped(demo: Run) -> None:
    run = demo("--url", "memory://", "--session", "a\x1b[2Jb\n[red]")
    assert r"Session 'a\x1b[2Jb\n[red]' is unknown" in run.stdout
    assert "\x1b" not in run.stdout


@pytest.mark.parametrize(
    ("arguments", "variables", "reason"),
    [
        (["--url", "nosuch://ann:canary@host"], {}, "nosuch"),
        (["--url", "sqlite:///chat.db?tll=1d"], {}, "did you mean 'ttl'?"),
        ([], {"CHATHISTORY_BACKENDS": "memory"}, "environment variable CHATHISTORY_BACKENDS is unknown"),
        ([], {"CHATHISTORY_BACKEND": "nosuch"}, "It is named by environment variable CHATHISTORY_BACKEND."),
        (["--url", "memory://", "--session", ""], {}, "a key has at least one character"),
        (["--url", "memory://", "--model", "gpt"], {}, "there is one model here, 'scripted'"),
        (["--url", "sqlite:///no/such/folder/chat.db"], {}, "folder"),
    ],
)
def test_an_error_is_one_line_without_a_traceback(
    demo: Run, arguments: list[str], variables: dict[str, str], reason: str
) -> None:
    run = demo(*arguments, **variables)
    assert reason in line(run)
    assert "canary" not in run.stdout + run.stderr


def test_wrong_usage_shows_the_usage(demo: Run) -> None:
    run = demo("--colour", "blue")
    assert run.returncode == 2
    assert "chathistory demo" in run.stderr
    assert "Traceback" not in run.stderr


def test_help_names_every_option(demo: Run) -> None:
    run = demo("--help")
    assert (run.returncode, run.stderr) == (0, "")
    for option in ("--session", "--url", "--model", "--verbose"):
        assert option in run.stdout


def test_without_a_command_the_commands_are_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["chathistory"])
    with pytest.raises(SystemExit):
        main()
    assert "demo" in "".join(capsys.readouterr())


def test_the_command_line_loads_no_client_before_a_command_needs_it(process: Run) -> None:
    program = "import sys, chathistory_core.cli; print({'typer', 'rich', 'openai'} & set(sys.modules))"
    assert process("-c", program).stdout == "set()\n"
