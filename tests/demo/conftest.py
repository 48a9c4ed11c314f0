"""Runs of `chathistory demo` as a user starts it, in a folder of its own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chathistory_core.cli import main

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def variables() -> dict[str, str]:
    """A user's environment: nothing in it chooses a store or a model, and every warning is an error."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CHATHISTORY_", "OPENAI_"))}
    return kept | {"PYTHONWARNINGS": "error", "PYTHONIOENCODING": "utf-8", "TERM": "dumb", "COLUMNS": "200"}


@pytest.fixture
def process(variables: dict[str, str], tmp_path: Path) -> Run:
    """Runs Python with the given arguments, in the test's folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture
def demo(
    variables: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Runs `chathistory demo` with the given arguments and variables, in the test's folder but in this process."""

    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name in set(os.environ) - set(variables):
                patch.delenv(name)
            for name, value in (variables | more).items():
                patch.setenv(name, value)
            patch.setattr(sys, "argv", ["chathistory", "demo", *arguments])
            capsys.readouterr()
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        status = ended.value.code
        if isinstance(status, str):  # as the interpreter does with it
            return subprocess.CompletedProcess(arguments, 1, printed.out, f"{printed.err}{status}\n")
        return subprocess.CompletedProcess(arguments, int(status or 0), printed.out, printed.err)

    return run
