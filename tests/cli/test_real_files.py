"""Files that others wrote: what is imported comes out again, value for value and key for key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

Run = Callable[..., Any]

FOLDER = Path(__file__).resolve().parents[2] / "../shared/data/openai_chat"

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the real files are not part of the project")


class Part(NamedTuple):
    """The conversations of a file that one import takes."""

    file: str
    path: str
    conversations: Callable[[Any], list[list[Any]]]
    """The same ones, found without the command line."""


def _bodies(file: Any) -> list[Any]:
    return [item for item in file["items"].values() if isinstance(item, dict)]


def _interactions(file: Any) -> list[Any]:
    return [one for item in file["items"].values() for one in item["interactions"]]


PARTS = [
    Part("miniswe_github_issue.traj.json", "", lambda file: [file]),
    Part("sweagent_ctf_ansi_escapes.traj.json", "history", lambda file: [file["history"]]),
    Part("sweagent_function_calling_simple.traj.json", "history", lambda file: [file["history"]]),
    Part("tau_airline_gpt4o_slice.json", "[*].traj", lambda file: [one["traj"] for one in file]),
    # Requests and responses side by side. The one item that is a stream's text is of no JSON format.
    Part(
        "agentframework_chatcompletions_traces.json",
        "items[*].messages",
        lambda file: [body["messages"] for body in _bodies(file) if "messages" in body],
    ),
    Part(
        "agentframework_chatcompletions_traces.json",
        "items[*].choices[*].message",
        lambda file: [[choice["message"] for body in _bodies(file) for choice in body.get("choices", [])]],
    ),
    Part(
        "pydanticai_multimodal_tool_returns_openai_chat.json",
        "items[*].interactions[*].request",
        lambda file: [one["request"]["messages"] for one in _interactions(file)],
    ),
    Part(
        "pydanticai_multimodal_tool_returns_openai_chat.json",
        "items[*].interactions[*].response.choices[*].message",
        lambda file: [[choice["message"] for one in _interactions(file) for choice in one["response"]["choices"]]],
    ),
]


def test_no_file_is_left_out() -> None:
    assert {part.file for part in PARTS} == {path.name for path in FOLDER.iterdir()}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"{part.file} {part.path}")
def test_what_is_exported_is_what_was_imported(part: Part, cli: Run, url: str) -> None:
    wanted = part.conversations(json.loads((FOLDER / part.file).read_text("utf-8")))
    options = ["--url", url, "--format", "openai-chat"]
    given = ["--path", part.path, "--key-prefix", f"{part.path}/"] if part.path else ["--key-prefix", "/"]
    run = cli("import", *options, *given, "--json", str(FOLDER / part.file))
    assert run.status == 0, run.err
    assert [one["messages"] for one in run.objects] == [len(messages) for messages in wanted]
    for one, messages in zip(run.objects, wanted, strict=True):
        alone = cli("export", *options, str(one["key"]))
        assert json.dumps(json.loads(alone.out)) == json.dumps(messages)  # which compares the order of keys too
    lines = cli("export", *options, "--prefix", f"{part.path}/").objects
    exported = {line["key"]: line["messages"] for line in lines}
    assert json.dumps([exported[one["key"]] for one in run.objects]) == json.dumps(wanted)


def test_a_file_of_another_form_says_that_a_path_is_needed(cli: Run) -> None:
    for file in {part.file for part in PARTS if part.path}:
        run = cli("import", "--format", "openai-chat", str(FOLDER / file))
        assert "--path says where" in run.error or "--path leads to" in run.error
    assert cli("list", "--json").objects == []


def test_escapes_of_a_real_terminal_session_do_not_reach_the_terminal(cli: Run) -> None:
    file = FOLDER / "sweagent_ctf_ansi_escapes.traj.json"
    assert "\\u001b" in file.read_text("utf-8")
    cli("import", "--format", "openai-chat", "--path", "history", "--key", "ctf", str(file))
    shown = cli("show", "ctf").out
    assert "\x1b" not in shown
    assert "\\x1b[" in shown
