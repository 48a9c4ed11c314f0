"""A new backend: the project that is written fails where there is something to write, and nowhere else."""

import ast
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import indent
from typing import Any
from xml.etree import ElementTree as ET

import pytest

Run = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[2]
VARIANTS = {"conditional": (), "scratch": ("--from-scratch",)}
UNWRITTEN = {
    "conditional": {"load", "commit", "scan", "drop", "heads"},
    "scratch": {"get", "append", "replace", "clear", "summaries"},
}

STORE = """
from collections import defaultdict

HEADS = defaultdict(dict)
BLOCKS = defaultdict(dict)
"""
CONDITIONAL = {
    "load": "return HEADS[self._place].get(key)",
    "commit": """
heads = HEADS[self._place]
if heads.get(key) != seen:
    return False
for block in blocks:
    BLOCKS[self._place, block.log][block.name] = block
heads.pop(key, None)
if new is not None:
    heads[key] = new
return True
""",
    "scan": "return [block for name, block in sorted(BLOCKS[self._place, log].items()) if start <= name < stop]",
    "drop": """
for name in list(BLOCKS[self._place, log]) if names is None else names:
    BLOCKS[self._place, log].pop(name, None)
""",
    "heads": """
heads = sorted(HEADS[self._place].items())
return [head for key, head in heads if key.startswith(prefix) and (after is None or key > after)][:limit]
""",
}

MEMORY = """
from collections import defaultdict

from chathistory_memory import MemoryBackend, MemoryStore

STORES = defaultdict(MemoryStore)
"""
SCRATCH = {
    name: f"async with MemoryBackend(STORES[self._place]) as memory:\n    return await memory.{call}"
    for name, call in {
        "get": "get(key, limit=limit, before=before, after=after)",
        "clear": "clear(key, expected_revision=expected_revision)",
        "summaries": "summaries(prefix=prefix, after=after, limit=limit, order=order)",
    }.items()
}
SCRATCH["_write"] = """
async with MemoryBackend(STORES[self._place]) as memory:
    if operation == "replace":
        return await memory.replace(key, batch, turn_id=turn_id, expected_revision=expected_revision)
    return await memory.append(
        key, batch, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
    )
"""


def new(cli: Run, folder: Path, variant: str = "conditional", name: str = "tall-shelf") -> Path:
    run = cli("new-backend", name, *VARIANTS[variant], "--into", str(folder))
    assert (run.status, run.err) == (0, "")
    project = folder / f"chathistory-{name}"
    assert str(project) in run.out
    return project


def install(project: Path) -> None:
    """What an installer writes down about the project, beside its package."""
    about = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    information = project / "src" / f"{about['name'].replace('-', '_')}-{about['version']}.dist-info"
    information.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {about['name']}\nVersion: {about['version']}\n"
    (information / "METADATA").write_text(metadata, "utf-8")
    lines: list[str] = []
    for group, names in about["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (information / "entry_points.txt").write_text("\n".join(lines) + "\n", "utf-8")


def outcomes(project: Path, selection: str) -> Mapping[str, str]:
    """The selected tests of the project by name, each with the message it failed with, or "" where it passed.

    LONG in the environment selects them all.
    """
    install(project)
    arguments = () if "LONG" in os.environ else ("-k", selection)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        "--junitxml=report.xml",
        *arguments,
    ]
    environment = os.environ | {"PYTHONPATH": "src"}
    environment.pop("PYTEST_ADDOPTS", None)
    run = subprocess.run(command, cwd=project, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert run.returncode in (0, 1), run.stdout + run.stderr
    found: dict[str, str] = {}
    for case in ET.parse(project / "report.xml").iter("testcase"):
        assert case.find("skipped") is None
        assert case.find("error") is None
        failure = case.find("failure")
        found[case.attrib["name"]] = "" if failure is None else failure.attrib["message"]
    return found


def fill(module: Path, preamble: str, bodies: Mapping[str, str]) -> None:
    """Write what is unwritten: each body in the place of the statement that says what to write."""
    text = module.read_text("utf-8")
    lines = text.splitlines()
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.AsyncFunctionDef)]
    unwritten = {node.name: node.body[-1] for node in functions if isinstance(node.body[-1], ast.Raise)}
    assert set(unwritten) == set(bodies)
    for name, statement in sorted(unwritten.items(), key=lambda item: -item[1].lineno):
        assert statement.end_lineno is not None
        lines[statement.lineno - 1 : statement.end_lineno] = [indent(bodies[name].strip(), " " * 8)]
    module.write_text("\n".join(lines) + preamble, "utf-8")


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_tests_of_a_new_project_fail_only_where_something_is_to_be_written(
    cli: Run, tmp_path: Path, variant: str
) -> None:
    found = outcomes(new(cli, tmp_path, variant), "not whatever_is_called")  # which imports hypothesis
    failures = {name: message for name, message in found.items() if message}
    others = {name: message for name, message in failures.items() if not is_unwritten(message, variant)}
    assert others == {}
    assert len(failures) > 100
    assert {
        "test_a_backend_that_was_not_opened_refuses_every_call",
        "test_a_negative_limit_is_refused",
        "test_an_error_inside_the_block_goes_through_and_closes",
        "test_an_unknown_order_is_refused",
        "test_both_cursors_at_once_are_refused",
        "test_invalid_prefixes_are_refused",
        "test_the_entry_point_names_the_plugin_page",
        "test_it_is_opened_closed_and_opened_again",
        "test_a_wrong_url_or_option_is_refused[tall-shelf://]",
        "test_a_wrong_url_or_option_is_refused[tall-shelf:///?unknown=1]",
    } <= set(found) - set(failures)


def is_unwritten(message: str, variant: str) -> bool:
    """Whether the message is that of a method without a body, and tells where it is explained."""
    _, kind, told = message.partition("NotImplementedError")
    call = told.lstrip("(\"': ").partition(":")[0]
    return bool(kind) and call in UNWRITTEN[variant] and "the guide 'Write a backend'" in told.replace("\\", "")


@pytest.mark.parametrize(
    ("variant", "module", "preamble", "bodies"),
    [("conditional", "store.py", STORE, CONDITIONAL), ("scratch", "backend.py", MEMORY, SCRATCH)],
    ids=VARIANTS,
)
def test_with_its_methods_written_a_new_project_passes_its_tests(
    cli: Run, tmp_path: Path, variant: str, module: str, preamble: str, bodies: Mapping[str, str]
) -> None:
    project = new(cli, tmp_path, variant)
    fill(project / "src" / "chathistory_tall_shelf" / module, preamble, bodies)
    found = outcomes(project, "turn and not newest or replac or summar or url")
    assert len(found) > 30
    assert {name: message for name, message in found.items() if message} == {}


@pytest.mark.parametrize("name", ["a", "tall-shelf", "abcdefghijklmnopqrstuvwxyz-123"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_new_project_is_well_formatted_and_passes_its_own_linter(
    cli: Run, tmp_path: Path, variant: str, name: str
) -> None:
    project = new(cli, tmp_path, variant, name)
    for command in (["check", "--no-cache"], ["format", "--check", "--diff", "--no-cache"]):
        run = subprocess.run([sys.executable, "-m", "ruff", *command], cwd=project, capture_output=True, check=False)
        assert run.returncode == 0, run.stdout.decode()


@pytest.mark.skipif("LONG" not in os.environ, reason="takes 20 seconds; LONG in the environment asks for it")
def test_new_projects_pass_their_own_type_checker(cli: Run, tmp_path: Path) -> None:
    one, other = new(cli, tmp_path, "conditional"), new(cli, tmp_path, "scratch", "attic")
    assert settings(one) == settings(other)
    command = [sys.executable, "-m", "mypy", f"--cache-dir={ROOT / '.mypy_cache' / 'new_backend'}"]
    run = subprocess.run(
        [*command, *(f"{project / folder}" for project in (one, other) for folder in ("src", "tests"))],
        cwd=one,
        env=os.environ | {"MYPYPATH": str(other / "src")},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr


def settings(project: Path) -> object:
    return tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["tool"]["mypy"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_new_project_has_all_that_a_distribution_needs(cli: Run, tmp_path: Path, variant: str) -> None:
    project = new(cli, tmp_path, variant)
    files = {str(path.relative_to(project).as_posix()) for path in project.rglob("*") if path.is_file()}
    assert files == {
        ".github/workflows/test.yml",
        ".gitignore",
        "README.md",
        "pyproject.toml",
        "src/chathistory_tall_shelf/__init__.py",
        "src/chathistory_tall_shelf/plugin.py",
        "src/chathistory_tall_shelf/py.typed",
        f"src/chathistory_tall_shelf/{'store' if variant == 'conditional' else 'backend'}.py",
        "tests/test_chathistory_tall_shelf.py",
    }
    for file in files:
        text = (project / file).read_text("utf-8")
        assert not any(f"@{marker}@" in text for marker in ("name", "package", "Class", "todo")), file
    about = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))["project"]
    assert about["name"] == "chathistory-tall-shelf"
    assert about["entry-points"] == {"chathistory.backends": {"tall-shelf": "chathistory_tall_shelf.plugin"}}


def test_for_programs_the_project_is_json(cli: Run, tmp_path: Path) -> None:
    [told] = cli("new-backend", "shelf", "--json").objects
    assert told == {"name": "shelf", "folder": "chathistory-shelf"}
    assert (tmp_path / "chathistory-shelf" / "README.md").exists()


@pytest.mark.parametrize(
    "name", ["Shelf", "1shelf", "shelf-", "-shelf", "a--b", "a_b", "a.b", "../a", "é", "a" * 31, ""]
)
def test_a_name_that_is_no_scheme_and_package_is_refused(cli: Run, tmp_path: Path, name: str) -> None:
    run = cli("new-backend", "--", name)
    assert run.status == 2
    assert "NAME" in run.err
    assert list(tmp_path.iterdir()) == []


def own_names() -> set[str]:
    """What the backends and the extras of this project are called."""
    projects = [tomllib.loads(path.read_text("utf-8"))["project"] for path in ROOT.glob("plugins/*/pyproject.toml")]
    core = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    distributions = {each["name"].removeprefix("chathistory-") for each in (core, *projects)}
    backends = {name for each in projects for name in each["entry-points"].get("chathistory.backends", {})}
    return distributions | backends | set(core["optional-dependencies"])


@pytest.mark.parametrize("name", sorted(own_names()))
def test_a_name_of_this_project_s_own_is_refused(cli: Run, tmp_path: Path, name: str) -> None:
    run = cli("new-backend", name)
    assert run.status == 2
    assert "choose another" in run.err
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_another_distribution_offers_is_refused_and_its_own_is_not(
    cli: Run, install: Callable[..., None], tmp_path: Path
) -> None:
    install("somebody", "", group="chathistory.backends", names={"shelf": ""})
    assert "somebody has a backend 'shelf' already" in cli("new-backend", "shelf").error
    install("chathistory-attic", "", group="chathistory.backends", names={"attic": ""})
    new(cli, tmp_path, name="attic")


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_exists_is_left_as_it_is(cli: Run, tmp_path: Path, kind: str) -> None:
    place = tmp_path / "chathistory-shelf"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine", "utf-8")
    else:
        place.symlink_to("nowhere")
    assert "chathistory-shelf exists" in cli("new-backend", "shelf").error
    assert [path.name for path in tmp_path.iterdir()] == ["chathistory-shelf"]
    assert kind != "file" or place.read_text("utf-8") == "mine"
    assert kind != "folder" or list(place.iterdir()) == []


def test_a_folder_that_does_not_exist_is_wrong_usage(cli: Run) -> None:
    run = cli("new-backend", "shelf", "--into", "nowhere", "--json")
    assert run.status == 2
    assert "nowhere" in json.loads(run.err)["error"]["message"]


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="sets a limit that other systems do not have")
def test_what_cannot_be_written_whole_is_not_written_at_all(tmp_path: Path) -> None:
    start = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, 1_000));"
        "from chathistory_core.cli import main; main()"
    )
    command = [sys.executable, "-B", "-c", start, "new-backend", "shelf"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert (run.returncode, run.stdout, run.stderr) == (1, "", "chathistory: File too large\n")
    assert list(tmp_path.iterdir()) == []
