"""Empty environments, into which pip installs wheels of this project from the folder that `WHEELS` names."""

import os
import subprocess
import sys
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

SCRIPTS = "Scripts" if os.name == "nt" else "bin"
PASSED_ON = {
    name: value for name, value in os.environ.items() if not name.startswith(("CHATHISTORY_", "OPENAI_", "PYTHON"))
}


class Environment(NamedTuple):
    """A virtual environment without pip, and an empty working directory."""

    python: Path
    pip: Callable[..., None]
    directory: Path

    def run(self, *command: str, variables: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment's own."""
        program, *arguments = command
        return subprocess.run(
            [str(self.python.with_name(program)), *arguments],
            cwd=self.directory,
            env={**PASSED_ON, **(variables or {})},
            check=False,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )

    def answer(self, script: str) -> str:
        """What the Python script prints; warnings are errors."""
        done = self.run("python", "-W", "error", "-c", script)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def distributions(self) -> set[str]:
        """The names of all that is installed."""
        script = "from importlib.metadata import distributions; print(*{d.name.lower() for d in distributions()})"
        return set(self.answer(script).split())


@pytest.fixture(scope="session")
def wheels() -> Path:
    """The folder of wheels."""
    folder = Path(os.environ["WHEELS"]).absolute()
    assert list(folder.glob("chathistory_core-*.whl")), f"no wheels in {folder}: run `python3 dev.py dist`"
    return folder


@pytest.fixture(scope="session")
def pip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has pip, as a new virtual environment gets it."""
    folder = tmp_path_factory.mktemp("pip")
    venv.create(folder, with_pip=True)
    return folder / SCRIPTS / "python"


@pytest.fixture
def environment(tmp_path: Path, pip: Path) -> Environment:
    """An environment in which nothing is installed."""
    folder, directory = tmp_path / "environment", tmp_path / "directory"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    directory.mkdir()

    def install(*arguments: str) -> None:
        command = [str(pip), "-m", "pip", "--python", str(folder), "install", "--quiet", "--no-compile", *arguments]
        done = subprocess.run(command, cwd=directory, env=PASSED_ON, check=False, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    return Environment(folder / SCRIPTS / "python", install, directory)
