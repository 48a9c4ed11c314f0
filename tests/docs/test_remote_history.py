"""The guide to histories in a service does what it says, against a service."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = {
    name: value for name, value in os.environ.items() if not name.startswith(("CHATHISTORY_", "CHAT_HISTORY_"))
}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The URL of a service as the guide starts it, on a free port."""
    command = [sys.executable, "-m", "chathistory_core.cli", "serve", "--url", "sqlite:///history.db", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=VARIABLES, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.search(r"http://[^,]+", process.stdout.readline())
            assert found is not None
            yield found[0]
        finally:
            process.terminate()


def test_the_example_prints_what_its_page_says_twice(service: str, tmp_path: Path) -> None:
    page = (ROOT / "docs/how-to/remote-history.md").read_text("utf-8")
    printed = [
        subprocess.run(
            [sys.executable, "-W", "error", str(ROOT / "examples/remote_history.py")],
            cwd=tmp_path,
            env=VARIABLES | {"CHAT_HISTORY_SERVICE_URL": service},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for _ in range(2)
    ]
    assert re.findall(r"^```text\n(.*?)^```", page, re.MULTILINE | re.DOTALL) == printed


def test_the_demo_runs_over_the_service_as_over_any_store(service: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "chathistory_core.cli", "demo", "--url", service]
    for found in [], ["10", "4"]:
        done = subprocess.run(command, cwd=tmp_path, env=VARIABLES, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        start, _, rest = done.stdout.partition("A new session starts.")
        assert sorted(re.findall(r"(\d+) messages", start)) == found
        counts = [max(map(int, re.findall(r"(\d+) messages", each))) for each in rest.split("The store, latest")[1:]]
        assert counts[:3] == ([4, 8, 10] if not found else [10, 10, 10])
