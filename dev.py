"""What a checkout can do: `python3 dev.py demo`, `test`, `check`, `docs`, `dist`, `benchmark`.

Needs Python 3.11 or newer with `venv` and pip, nothing else: it puts uv into `.bootstrap/` and the project's
environment, exactly as locked, into `.venv/`. Words behind the command go to what it runs:
`python3 dev.py test -k turn`.
"""

import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
BOOTSTRAP = ROOT / ".bootstrap"
UV_VERSION = "0.13.9"
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
SUFFIX = ".exe" if os.name == "nt" else ""

COMMANDS = {
    "demo": "run the main job: an agent whose conversation is stored on SQLite, and still there in the next run",
    "test": "run every test",
    "check": "run the linter, the formatter, the type checker and the import rules",
    "docs": "build the documentation into docs/_build/; a warning is an error",
    "dist": "build wheels and source distributions into dist/",
    "benchmark": "measure everything beside floors and other libraries, for the page in docs/explanation/",
    "sync": "set up the environment and do nothing more",
}


def program(folder: Path, name: str) -> str:
    return str(folder / SCRIPTS / f"{name}{SUFFIX}")


def run(*command: str) -> None:
    """Run it and go on, or end with its exit code."""
    code = subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode
    if code:
        sys.exit(code)


def environment() -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    return {**variables, "UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}


def installed_uv() -> str:
    uv = program(BOOTSTRAP, "uv")
    if not Path(uv).exists():
        print("dev.py: installing uv into .bootstrap/", file=sys.stderr)
        try:
            venv.create(BOOTSTRAP, with_pip=True, clear=True)
        except subprocess.CalledProcessError:
            sys.exit("dev.py: this Python makes no venv with pip; on Debian and Ubuntu: apt install python3-venv")
        run(program(BOOTSTRAP, "python"), "-m", "pip", "install", "--quiet", f"uv=={UV_VERSION}")
    return uv


def sync() -> None:
    """Bring the environment to what the lock file says; a second call takes a fraction of a second."""
    run(installed_uv(), "sync", "--quiet", "--locked", "--all-packages", "--all-extras", "--group", "dev")


def main() -> None:
    command, *rest = sys.argv[1:] or ["help"]
    if command not in COMMANDS:
        print("usage: python3 dev.py COMMAND [ARGUMENT…]\n", file=sys.stderr)
        for name, what in COMMANDS.items():
            print(f"  {name:<9} {what}", file=sys.stderr)
        sys.exit(0 if command in {"help", "-h", "--help"} else 2)
    if sys.version_info < (3, 11):
        sys.exit(f"dev.py: Python 3.11 or newer is needed, this is {sys.version.split()[0]}")
    if command == "dist":
        run(installed_uv(), "build", "--quiet", "--all-packages", "--clear", "--out-dir", "dist", *rest)
        return
    sync()
    python = program(ROOT / ".venv", "python")
    if command == "demo":
        run(python, "-m", "chathistory_core.cli", "demo", *rest)
    elif command == "test":
        run(python, "-m", "pytest", *rest)
    elif command == "check":
        run(python, "-m", "ruff", "check", ".")
        run(python, "-m", "ruff", "format", "--check", ".")
        for version in ("3.11", "3.14"):
            run(python, "-m", "mypy", "--python-version", version)
        run(
            program(ROOT / ".venv", "basedpyright"), "--project", "pyproject.toml", "--pythonpath", python, "--warnings"
        )
        run(program(ROOT / ".venv", "lint-imports"), "--no-cache")
    elif command == "docs":
        strict = ("--fail-on-warning", "--nitpicky", "--fresh-env", "--quiet")
        run(python, "-m", "sphinx", *strict, "-d", "docs/_build/doctrees", "docs", "docs/_build/html", *rest)
    elif command == "benchmark":
        run(python, "-m", "benchmarks", *rest)


if __name__ == "__main__":
    main()
