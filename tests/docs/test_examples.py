"""The examples run as they stand, and print what the pages say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {name: value for name, value in os.environ.items() if not name.startswith("CHATHISTORY_")}


def run(directory: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=directory,
        env={**VARIABLES, "PYTHONUTF8": "1"},
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    return done.stdout


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    ("example", "page"),
    [
        ("resume_and_list", "how-to/resume-and-list.md"),
        ("tenants", "how-to/tenants-and-scopes.md"),
        ("edit_a_conversation", "how-to/edit-a-conversation.md"),
        ("summarise_and_compact", "how-to/summarise-and-compact.md"),
        ("limit_what_the_model_sees", "how-to/limit-what-the-model-sees.md"),
    ],
)
def test_an_example_prints_what_its_page_says(example: str, page: str, tmp_path: Path) -> None:
    assert blocks(page, "text") == [run(tmp_path, str(ROOT / f"examples/{example}.py"))]


def test_a_store_is_named_in_four_ways(tmp_path: Path) -> None:
    page = "how-to/choose-a-backend.md"
    [configuration] = blocks(page, "toml")
    (tmp_path / "chathistory.toml").write_text(configuration, "utf-8")
    assert blocks(page, "text") == [run(tmp_path, str(ROOT / "examples/choose_a_backend.py"))]
    assert [path.name for path in tmp_path.glob("*.db")] == ["notes.db"]


def test_the_tutorial_s_program_remembers_from_one_run_to_the_next(tmp_path: Path) -> None:
    example = str(ROOT / "examples/first.py")
    runs = [run(tmp_path, example), run(tmp_path, example)]
    assert [block for block in blocks("tutorial.md", "text") if block in runs] == runs


def test_the_tests_of_an_agent_pass(tmp_path: Path) -> None:
    tests = str(ROOT / "examples/test_agent.py")
    printed = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), tests)
    assert re.search(r"^6 passed", printed, re.MULTILINE), printed
