"""A new backend where nothing is installed but the wheel of the core, with its extra `testing`, and the new project."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from .conftest import Environment

pytestmark = pytest.mark.skipif("WHEELS" not in os.environ, reason="WHEELS names no folder of wheels to be tested")

NEEDED = {"chathistory-core", "chathistory-shelf", "hypothesis", "pluggy", "pydantic", "pytest"}
NOT_NEEDED = {"anyio", "httpx", "pytest-asyncio", "redis", "rich", "sqlalchemy", "typer"}


@pytest.mark.parametrize("variant", ["", "--from-scratch"])
def test_its_tests_run_there_and_fail_only_where_something_is_to_be_written(
    variant: str, environment: Environment, wheels: Path
) -> None:
    command = [sys.executable, "-m", "chathistory_core.cli", "new-backend", "shelf", *filter(None, [variant])]
    subprocess.run(command, cwd=environment.directory, check=True, capture_output=True)
    environment.pip("--find-links", str(wheels), "chathistory-core[testing]", "--editable", "chathistory-shelf")
    assert environment.distributions() >= NEEDED
    assert environment.distributions() & NOT_NEEDED == set()

    folder = environment.directory / "chathistory-shelf"
    done = environment.run(
        "python", "-m", "pytest", "-q", "--tb=no", "--rootdir", str(folder), "--junitxml=report.xml", str(folder)
    )
    assert done.returncode == 1, done.stdout + done.stderr
    messages = [failure.attrib["message"] for failure in ET.parse(environment.directory / "report.xml").iter("failure")]
    assert len(messages) > 100
    assert [message for message in messages if "NotImplementedError" not in message] == []
    assert " passed" in done.stdout.splitlines()[-1]
