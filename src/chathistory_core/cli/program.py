"""What every command has in common: how it starts, and how it ends when something is wrong.

Exit codes: 0 done, 1 an error, 2 wrong usage, 130 interrupted. An error is one line on stderr; with `--json` it is
`{"error": {"type": …, "message": …, "retryable": …}}`.
"""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn, TypeAlias

from chathistory_core.cli.text import printable
from chathistory_core.errors import ChatHistoryError

if TYPE_CHECKING:
    import typer

Command: TypeAlias = Callable[..., None]
"""A function whose parameters are annotated as typer's arguments and options."""

_NAME = "chathistory"
_OF_EXTRAS = {"hypothesis": "testing", "openai": "demo", "pytest": "testing", "rich": "cli", "typer": "cli"}


def main() -> None:
    """Run `chathistory`."""
    arguments = sys.argv[1:]
    command = next((argument for argument in arguments if not argument.startswith("-")), None)
    with _errors_as_lines(arguments, "demo" if command == "demo" else "cli"):
        from chathistory_core.cli.commands import application

        app = application(command)
        known = {one.name for one in app.registered_commands} | {one.name for one in app.registered_groups}
        _call(app, arguments, f"{_NAME} {command}" if command in known else _NAME)


def run(command: Command, arguments: Sequence[str] | None = None, *, name: str | None = None) -> None:
    """Run a script that is one command, on the arguments of the process unless others are given."""
    arguments = sys.argv[1:] if arguments is None else arguments
    with _errors_as_lines(arguments, "demo"):
        import typer

        app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)  # pretty ones print local variables
        app.command()(command)
        _call(app, arguments, name or sys.argv[0], name)


def _call(app: "typer.Typer", arguments: Sequence[str], called: str, name: str | None = _NAME) -> NoReturn:
    """Run the app and leave with its exit code; `called` is how wrong usage calls the command."""
    import typer

    try:
        status = app(list(arguments), prog_name=name, standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        message = f"{error.format_message().rstrip('.')}: {called} --help shows what there is"
        _end(arguments, "UsageError", message, status=error.exit_code)
    except typer.Abort:  # a question that was left without an answer
        status = 130
    sys.exit(status if isinstance(status, int) else 0)


@contextmanager
def _errors_as_lines(arguments: Sequence[str], extra: str) -> Iterator[None]:
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # messages hold characters that some terminals do not know
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _OF_EXTRAS:
            raise
        extra = "demo" if extra == "demo" else _OF_EXTRAS[missing]
        command = (
            f'pip install "chathistory-core[{extra}]" '
            "(from a folder of wheels: add --find-links FOLDER; in a checkout: uv sync --all-packages --all-extras)"
        )
        _end(arguments, type(error).__name__, f"{missing} is not installed. Run: {command}")
    except ChatHistoryError as error:
        message = " ".join([str(error), *getattr(error, "__notes__", [])])
        _end(arguments, type(error).__name__, message, retryable=error.retryable)
    except BrokenPipeError:  # who reads has enough
        _leave_stdout()
        sys.exit(1)
    except OSError as error:
        _leave_stdout()
        _end(arguments, type(error).__name__, error.strerror or str(error))
    except KeyboardInterrupt:
        sys.exit(130)


def _open_streams() -> None:
    """Give the process the streams that it was started without, else the next file it opens would be one of them."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8", closefd=False))


def _leave_stdout() -> None:
    """Let what was not written go: Python would try to write it once more when it ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _end(arguments: Sequence[str], kind: str, message: str, *, retryable: bool = False, status: int = 1) -> NoReturn:
    message = " ".join(re.sub(r"(?s)://.*@", "://***@", message).split())  # a URL that was taken for something else
    if "--json" in arguments:
        line = json.dumps({"error": {"type": kind, "message": message, "retryable": retryable}})
    else:
        line = f"{_NAME}: {printable(message)}"
    sys.stderr.write(f"{line}\n")
    sys.exit(status)
