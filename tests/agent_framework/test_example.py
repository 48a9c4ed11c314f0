"""The article's run with the framework's own agent, tool and client, as the page shows it."""

import ast
import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chathistory_core.demo import serve

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples/article_agent_framework.py"
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith(("CHATHISTORY_", "OPENAI_"))}


def run(directory: Path, *arguments: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), *arguments],
        cwd=directory,
        env={**VARIABLES, "PYTHONUTF8": "1", **variables},
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def counts(printed: str) -> list[int]:
    return [int(count) for count in re.findall(r"^ +(\d+) messages are stored$", printed, re.MULTILINE)]


def test_the_article_s_run_is_as_the_page_says_and_goes_on_in_another_process(sqlite: str, tmp_path: Path) -> None:
    printed = run(tmp_path, "--url", sqlite)
    page = (ROOT / "docs/how-to/agent-framework.md").read_text("utf-8")
    [shown] = re.findall(r"^```text\n(session 1\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert anonymous(printed) == anonymous(shown)
    assert counts(printed) == [4, 8, 10, 4]
    told = re.findall(r"^model: It is (\S+)\.$", printed, re.MULTILINE)
    assert f"since {told[0]}." in printed
    [key] = re.findall(r"--session (\S+)$", printed, re.MULTILINE)
    again = run(tmp_path, "--url", sqlite, "--session", key)
    assert counts(again) == [14, 16]
    assert f"since {told[0]}." in again


def test_another_server_of_the_api_is_asked_where_one_is_named(tmp_path: Path) -> None:
    with serve() as base_url:
        printed = run(tmp_path, OPENAI_BASE_URL=base_url)
    assert counts(printed) == [4, 8, 10, 4]
    assert (tmp_path / "chathistory.db").exists()


def anonymous(printed: str) -> str:
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[^\s.]+\.\d+[^\s.]*|\d+\.\d{3}", "…", printed)


def test_the_page_s_programs_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Callable[..., Any]) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/how-to/agent-framework.md").read_text("utf-8")
    programs = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(programs) == 4
    for text in programs:
        code = compile(text, "agent-framework.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        asyncio.run(eval(code, {"client": model(["Hello"])}))
