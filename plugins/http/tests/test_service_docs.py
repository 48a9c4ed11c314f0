"""What the pages say of the service is so."""

import re
import subprocess
import sys
from pathlib import Path

import httpx

from chathistory_http.wire import headers
from chathistory_http.wire.problems import PROBLEMS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs/reference/http-service.md"


def test_the_page_names_every_problem_with_its_status() -> None:
    rows = re.findall(r"^\| ([0-9, ]+) \| ((?:`[a-z-]+`(?:, )?)+) \|", PAGE.read_text("utf-8"), re.MULTILINE)
    told: dict[str, set[int]] = {}
    for statuses, names in rows:
        for name in re.findall("[a-z-]+", names):
            told[name] = {int(status) for status in statuses.split(", ")}
    assert set(told) == set(PROBLEMS)
    assert all(PROBLEMS[name][0] in statuses for name, statuses in told.items())


def test_the_page_names_every_header_and_every_path(client: httpx.Client) -> None:
    page = PAGE.read_text("utf-8")
    for name in (headers.TURN_ID, headers.EPOCH, headers.RECORD_COUNT, headers.FIRST_POSITION, headers.REPLAYED):
        assert f"`{name}`" in page
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        for method in {"get", "post", "put", "delete"} & set(operations):
            if "405" not in operations[method]["responses"]:
                assert f"{method.upper()} {path.replace('{key}', 'KEY')}" in page


def test_the_example_of_a_mounted_service_runs(tmp_path: Path) -> None:
    program = ROOT / "examples/mounted_service.py"
    done = subprocess.run(
        [sys.executable, "-W", "error", program], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "202 /history/chat-history/ann",
        "[{'role': 'user', 'contents': [{'$type': 'text', 'text': 'Hello.'}]}]",
    ]
