"""The benchmarks run, count what is wrong, and their page is what their figures make."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.contestants import ROOT
from benchmarks.correctness import Faults, faults
from benchmarks.page import made
from benchmarks.results import Results

PAGES = ROOT / "docs" / "explanation"


def run(*arguments: str | Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--quick", "--rounds", "1", *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert not done.returncode, done.stderr


def test_the_page_and_its_plots_are_what_the_figures_make() -> None:
    results = Results.model_validate_json((PAGES / "performance.json").read_bytes())
    written = made(results)
    assert {name for name, text in written.items() if (PAGES / name).read_text("utf-8") != text} == set()
    assert {path.name for path in PAGES.glob("performance*")} == {*written, "performance.json"}


def test_a_row_is_measured_and_kept_beside_what_was_known(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run("floors", "--only", "SQLite NORMAL: append, one task", "--json", path)
    run("correctness", "--only", "nobody else", "--json", path)
    results = Results.model_validate_json(path.read_bytes())
    assert [row.name for row in results.floors] == ["SQLite NORMAL: append, one task"]
    assert results.floors[0].ratio.median > 0
    assert results.correctness


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("benchmarks") / "results.json"
    run("peers", "correctness", "--only", "nobody else", "--json", path)
    results: dict[str, Any] = json.loads(path.read_bytes())
    return results


def test_ours_lose_double_split_and_reorder_nothing(found: dict[str, Any]) -> None:
    assert {one["contestant"].split(",")[0] for one in found["correctness"]} == {
        "chathistory SQLite",
        "chathistory Redis",
        "chathistory memory",
    }
    for one in found["correctness"]:
        assert not any(one[each] for each in ("lost", "doubled", "split", "reordered", "errors", "remark"))
        assert (one["retried"], one["equal"]) == (1, 2)


def test_ours_take_part_in_all_that_is_measured(found: dict[str, Any]) -> None:
    assert {one["remark"] for one in found["measured"]} == {""}
    assert {one["operation"] for one in found["measured"] if one["contestant"] == "chathistory SQLite"} == {
        "first turn",
        "turn",
        "append",
        "load",
        "last",
        "memory",
        "writers, a conversation each",
        "writers, one conversation",
        "list",
    }


def test_an_agent_takes_turns_with_our_provider_and_with_the_frameworks(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    run("agents", "--json", path)
    found = Results.model_validate_json(path.read_bytes()).agents
    assert [row.name for row in found if "File" in row.against] == [
        f"SQLite NORMAL: a turn at {length} stored messages" for length in ("10", "100")
    ]
    assert all(row.ratio.median > 0 for row in found)


@pytest.mark.parametrize(
    ("marks", "wrong"),
    [
        ("a-0#1 a-0#2 a-0#3 a-0#4 a-1#1 a-1#2 a-1#3 a-1#4", Faults(0, 0, 0, 0)),
        ("a-0#1 a-0#2 a-0#3 a-1#1 a-1#2 a-1#3 a-1#4", Faults(1, 0, 0, 0)),
        ("a-0#1 a-0#2 a-0#3 a-0#4 a-1#1 a-1#2 a-1#3 a-1#4 a-0#1", Faults(0, 1, 0, 0)),
        ("a-0#1 a-1#1 a-0#2 a-0#3 a-0#4 a-1#2 a-1#3 a-1#4", Faults(0, 0, 2, 0)),
        ("a-1#1 a-1#2 a-1#3 a-1#4 a-0#1 a-0#2 a-0#3 a-0#4", Faults(0, 0, 0, 1)),
        ("a-0#2 a-0#1 a-0#3 a-0#4 a-1#1 a-1#2 a-1#3 a-1#4", Faults(0, 0, 0, 1)),
    ],
    ids=["right", "lost", "doubled", "split", "turns reordered", "messages reordered"],
)
def test_what_is_wrong_with_stored_turns_is_counted(marks: str, wrong: Faults) -> None:
    assert faults(marks.split(), ["a-0", "a-1"]) == wrong
