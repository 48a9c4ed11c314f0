"""The example, run as its reader runs it."""

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from chathistory_core.demo import DemoError, RefusedError, answer, open_endpoint, serve
from chathistory_core.messages import ChatMessage
from chathistory_core.opening import open_history

Run = Callable[..., subprocess.CompletedProcess[str]]

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "article.py"


def load_example() -> ModuleType:
    spec = spec_from_file_location("article", EXAMPLE)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def passed(run: subprocess.CompletedProcess[str]) -> str:
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def failed(run: subprocess.CompletedProcess[str]) -> str:
    assert run.returncode not in (0, None)
    assert run.stderr.count("\n") == 1, run.stderr
    return run.stderr


def listings(output: str) -> list[dict[str, int]]:
    """What each listing of the store shows: message counts by key."""
    found: list[dict[str, int]] = []
    for line in output.splitlines():
        if line.startswith("The store"):
            found.append({})
        elif listed := re.fullmatch(r"  ([0-9a-f]{32})  (\d+) messages", line):
            found[-1][listed[1]] = int(listed[2])
    return found


def states(output: str) -> list[dict[str, object]]:
    return [json.loads(state) for state in re.findall(r"^  Session \d: (\{.*\})$", output, re.MULTILINE)]


def keys(output: str) -> list[str]:
    return [json.dumps(state).split('"')[-2] for state in states(output)]


def told(output: str) -> list[str]:
    return re.findall(r"model: It is (\S+)\.$", output, re.MULTILINE)


def since(output: str) -> str:
    found = re.search(r"model: \d+\.\d{3} seconds have passed since (\S+)\.$", output, re.MULTILINE)
    assert found
    return found[1]


def anonymous(output: str) -> str:
    return re.sub(r"[0-9a-f]{32}|\d{4}-\d\d-\d\dT\S+|\d+\.\d{3}", "…", output)


def test_the_story_of_two_sessions_in_memory(demo: Run) -> None:
    output = passed(demo("--url", "memory://"))
    first, second = keys(output)
    assert listings(output) == [
        {},
        {first: 4},
        {first: 8},
        {first: 10},
        {first: 10, second: 4},
    ]
    assert states(output) == [
        {"stateBag": {"RemoteChatHistoryProvider": {"externalConversationKey": key}}} for key in (first, second)
    ]
    assert since(output) == told(output)[0]


def test_another_process_lists_and_goes_on_with_what_the_example_has_stored(process: Run, demo: Run) -> None:
    before = passed(process(str(EXAMPLE)))
    first, second = keys(before)
    after = passed(process("-m", "chathistory_core.cli", "demo", "--session", first, "--verbose"))
    assert listings(after) == [
        {first: 10, second: 4},
        {first: 14, second: 4},
        {first: 16, second: 4},
    ]
    assert f"Session {first} goes on behind its 10 messages." in after
    assert since(after) == told(before)[0]
    assert keys(after) == [first]

    # --verbose: loads, stores and the state bag
    assert f"load {first!r}: 10 of 10 records" in after
    assert f"append {first!r}: 4 messages, turn " in after
    assert f"state {json.dumps(states(after)[0])}" in after

    unknown = passed(demo("--session", "elsewhere"))
    assert "Session elsewhere is unknown: a new one starts." in unknown
    assert listings(unknown)[0] == {first: 16, second: 4}
    third, fourth = keys(unknown)
    assert listings(unknown)[-1] == {first: 16, second: 4, third: 10, fourth: 4}

    # The example is the command: both tell the same story.
    assert anonymous(before) == anonymous(passed(demo("--url", "memory://")))


def test_on_a_server_the_story_is_the_same_and_another_process_goes_on_with_it(process: Run, server: str) -> None:
    command = ("-m", "chathistory_core.cli", "demo", "--url", server)
    before = passed(process(*command))
    first, second = keys(before)
    assert listings(before) == [{}, {first: 4}, {first: 8}, {first: 10}, {first: 10, second: 4}]
    after = passed(process(*command, "--session", first))
    assert listings(after) == [{first: 10, second: 4}, {first: 14, second: 4}, {first: 16, second: 4}]
    assert since(after) == told(before)[0]


def test_changing_one_line_of_the_configuration_moves_the_demo(demo: Run, tmp_path: Path) -> None:
    configuration = tmp_path / "chathistory.toml"
    configuration.write_text('backend = "sqlite:///one.db"\n')
    first = keys(passed(demo()))[0]
    configuration.write_text('backend = "sqlite:///other.db"\n')
    moved = passed(demo("--session", first))
    assert listings(moved)[0] == {}
    assert f"Session {first} is unknown" in moved
    configuration.write_text('backend = "memory"\n')
    assert listings(passed(demo()))[0] == {}
    assert sorted(path.name for path in tmp_path.glob("*.db")) == ["one.db", "other.db"]


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (lambda messages: messages[-2:], "history is missing"),
        (lambda messages: [*messages[:2], *messages[3:]], "a tool call is not followed by its result"),
    ],
    ids=["no turn with the tool", "a result of the tool"],
)
def test_a_history_that_lost_messages_fails_the_demo(
    demo: Run, tmp_path: Path, kept: Callable[[Sequence[ChatMessage]], Sequence[ChatMessage]], reason: str
) -> None:
    url = "sqlite:///chat.db"
    key = keys(passed(demo("--url", url)))[0]

    async def lose() -> None:
        async with open_history(f"sqlite:///{tmp_path.as_posix()}/chat.db") as history:
            session = history.session(key)
            await history.set_messages(session, kept(await history.messages(session)))

    asyncio.run(lose())
    line = failed(demo("--url", url, "--session", key))
    assert line.startswith("chathistory: the scripted server on this machine answered with status 400: ")
    assert reason in line


def test_a_base_url_is_asked_without_a_key_and_its_first_model(demo: Run) -> None:
    asked: list[object] = []

    def overheard(request: object) -> dict[str, object]:
        assert isinstance(request, dict)
        asked.append(request["model"])
        return dict(answer(request))

    with serve(overheard) as url:
        output = passed(demo("--url", "memory://", OPENAI_BASE_URL=url))
    assert f"Model scripted, on the server at {url}." in output
    assert set(asked) == {"scripted"}
    assert len(asked) == 7
    assert [sorted(listing.values()) for listing in listings(output)] == [[], [4], [8], [10], [4, 10]]


def test_a_real_model_may_use_its_tools_as_it_likes(demo: Run) -> None:
    """Two calls at once, one of an unknown tool, then a third, then an answer: 7 messages."""

    def calls(*names: str) -> dict[str, object]:
        made = [
            {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": ""}} for name in names
        ]
        return {"role": "assistant", "content": "Let me see.", "tool_calls": made, "reasoning_content": "…"}

    def wilful(request: object) -> dict[str, object]:
        assert isinstance(request, dict)
        messages = request["messages"]
        if request["model"] != "wilful" or messages[0]["role"] != "system":
            raise RefusedError("not what the demo was told to ask")
        rounds = [message["role"] for message in messages][::-1].index("user")
        if rounds == 0:
            return calls("get_time", "get_weather")
        if rounds == 3:
            assert messages[-1] == {
                "role": "tool",
                "tool_call_id": "call_get_weather",
                "content": "There is no such tool.",
            }
            assert messages[-3]["reasoning_content"] == "…"
            return calls("get_time")
        return {"role": "assistant", "content": "Late\nagain. 🕌"}

    with serve(wilful) as url:
        output = passed(demo("--url", "memory://", "--model", "wilful", OPENAI_BASE_URL=url))
    assert [sorted(listing.values()) for listing in listings(output)] == [[], [7], [14], [21], [7, 21]]
    assert "Late\nagain. 🕌" in output


def test_a_model_that_never_answers_ends_and_stores_nothing(demo: Run, tmp_path: Path) -> None:
    def tireless(request: object) -> dict[str, object]:
        call = {"id": "call_1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    with serve(tireless) as url:
        reason = failed(demo("--url", "sqlite:///chat.db", OPENAI_BASE_URL=url))
    assert reason == "chathistory: the model still calls tools after 8 rounds\n"
    assert listings(passed(demo("--url", "sqlite:///chat.db")))[0] == {}


def test_another_number_of_stored_messages_than_expected_fails_the_demo() -> None:
    example = load_example()

    async def play() -> None:
        async with endpoint.connect(None) as (client, model), open_history("memory://") as history:
            agent = example.Agent(client, model, history)
            await example.play(agent, "Session 1", history.session(), [("What time is it?", 5)], checked=True)

    with (
        pytest.raises(DemoError, match="Session 1 has 4 messages in the store instead of 5"),
        open_endpoint() as endpoint,
    ):
        asyncio.run(play())


@pytest.fixture
def silent_server() -> Iterator[tuple[str, socket.socket]]:
    """A server that takes a connection and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1", server


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process alone")
def test_ctrl_c_ends_it_without_a_traceback(
    variables: dict[str, str], tmp_path: Path, silent_server: tuple[str, socket.socket]
) -> None:
    url, server = silent_server
    command = [sys.executable, "-m", "chathistory_core.cli", "demo"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=variables | {"OPENAI_BASE_URL": url}, stderr=subprocess.PIPE, encoding="utf-8"
    ) as process:
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors == ""
