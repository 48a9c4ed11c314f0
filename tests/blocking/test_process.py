"""The thread, from the first call to the end of the process."""

import signal
import subprocess
import sys
import threading
from collections import Counter
from contextvars import ContextVar
from pathlib import Path

import pytest

from chathistory_core import AgentSession, BackendStateError, blocking
from chathistory_core.messages import ChatMessage

NO_WINDOWS = pytest.mark.skipif(sys.platform == "win32", reason="Windows has neither fork nor these signals")

OPENED = """
import os, sys, threading, warnings
from contextlib import ExitStack
from chathistory_core import BackendStateError, ChatMessage, Record, blocking

def ask(history, key):
    with history.turn(history.session(key), [ChatMessage.user("q")]) as turn:
        turn.add(ChatMessage.assistant("a"))

url = sys.argv[1]
"""
LEFT_OPEN = {
    "a history with a turn": """
history = blocking.open_history(url).__enter__()
ask(history, "k")
history.turn(history.session("k"), [ChatMessage.user("half")]).__enter__()
""",
    "a stack that closes at exit": """
import atexit
stack = ExitStack()
ask(stack.enter_context(blocking.open_history(url)), "k")
atexit.register(stack.close)
""",
    "a backend": "b = blocking.open_backend(url).__enter__(); b.append('k', [Record(b'x', 'f')] * 2, turn_id='1')",
    "a history in a thread that goes on": """
history = blocking.open_history(url).__enter__()
ask(history, "k")
started = threading.Event()
def go_on():
    try:
        while True:
            history.count("k")
            started.set()
    except BackendStateError:
        pass
threading.Thread(target=go_on, daemon=True).start()
started.wait()
""",
}
FORKED = """
def check(found):
    if not found:
        os._exit(1)

def in_a_child(function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking while threads run
        child = os.fork()
    if child == 0:
        function()
        sys.exit(0)
    check(os.waitpid(child, 0)[1] == 0)

def child():
    for call in (lambda: history.count("k"), lambda: ask(history, "k")):
        try:
            call()
        except BackendStateError as error:
            check("parent process" in str(error))
        else:
            check(False)
    check(threading.active_count() == 2)  # for the error came from a loop of its own
    with blocking.open_history(sys.argv[1]) as own:
        ask(own, "child")

stack = ExitStack()
history = stack.enter_context(blocking.open_history(url))
ask(history, "k")
in_a_child(child)
ask(history, "k")
in_a_child(lambda: None)
check((history.count("k"), history.count("child")) == (4, 2 if url.startswith("sqlite") else 0))
stack.close()
in_a_child(lambda: blocking.open_backend(url).__enter__().get("k"))
"""
APPENDING = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored by who started this
with blocking.open_backend(url) as backend:
    backend.clear("k")
    turn = 0
    while True:
        try:
            while True:
                turn += 1
                backend.append("k", [Record(b"x" * 100, "f")] * 200, turn_id=str(turn))
                print(turn, flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            if sys.stdin.readline() == "leave\\n":
                raise
"""


def run(script: str, *arguments: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stdout, done.stderr


def test_importing_starts_no_thread() -> None:
    script = """
import sys, threading, chathistory_core
assert 'chathistory_core.blocking' not in sys.modules
from chathistory_core import blocking
blocking.open_backend('memory://'), blocking.open_history('memory://')
assert threading.active_count() == 1
"""
    assert run(script) == (0, "", "")


@pytest.mark.parametrize("what", LEFT_OPEN)
def test_what_is_left_open_is_closed_with_the_process(tmp_path: Path, what: str) -> None:
    path = tmp_path / "chat.db"
    assert run(OPENED + LEFT_OPEN[what], f"sqlite:///{path}") == (0, "", "")
    assert list(tmp_path.iterdir()) == [path]  # the last connection took the log files away
    with blocking.open_backend(f"sqlite:///{path}") as backend:
        assert backend.get("k", limit=0).record_count == 2


@NO_WINDOWS
def test_a_forked_child_starts_anew_and_is_refused_what_its_parent_opened(url: str) -> None:
    assert run(OPENED + FORKED, url) == (0, "", "")


@NO_WINDOWS
def test_an_append_that_is_interrupted_is_whole_or_absent(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'chat.db'}"
    acknowledged: set[str] = set()
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", OPENED + APPENDING, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        for times in range(20):
            for _ in range(times % 3 + 1):
                acknowledged.add(process.stdout.readline().strip())
            process.send_signal(signal.SIGINT)
            while (line := process.stdout.readline()) != "interrupted\n":
                acknowledged.add(line.strip())
            process.stdin.write("go on\n" if times < 19 else "leave\n")
            process.stdin.flush()
        errors = process.stderr.read()
    assert process.returncode == -signal.SIGINT
    assert errors.count("Traceback") == 1, errors
    assert errors.rstrip().endswith("KeyboardInterrupt")
    with blocking.open_backend(url) as backend:
        stored = Counter(record.turn_id for record in backend.get("k").records)
    assert set(stored.values()) == {200}
    assert acknowledged <= set(stored)


def test_a_call_from_the_thread_of_the_loop_is_refused() -> None:
    calls: list[BaseException] = []

    def key(session: AgentSession) -> str:
        try:
            history.count("k")
        except BackendStateError as error:
            calls.append(error)
        return "k"

    with blocking.open_history("memory://", new_key=key) as history:
        with history.turn(history.session(), [ChatMessage.user("q")]):
            pass
        assert ["would wait for itself" in str(error) for error in calls] == [True]
        assert history.count("k") == 1


def test_what_a_history_calls_sees_the_context_of_the_caller() -> None:
    tenant = ContextVar("tenant", default="nobody")

    def key(session: AgentSession) -> str:
        return tenant.get()

    with blocking.open_history("memory://", new_key=key) as history:

        def ask(name: str) -> None:
            tenant.set(name)
            with history.turn(history.session(), [ChatMessage.user("q")]):
                pass

        for name in ("ann", "bob"):
            thread = threading.Thread(target=ask, args=[name])
            thread.start()
            thread.join()
        assert [summary.key for summary in history.summaries()] == ["ann", "bob"]
