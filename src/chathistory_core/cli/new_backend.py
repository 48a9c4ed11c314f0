"""`chathistory new-backend`: a project for a backend of one's own."""

import re
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from typer import Argument, BadParameter, Option

from chathistory_core.cli.error import CommandError
from chathistory_core.cli.options import Json
from chathistory_core.cli.text import json_line, printable, put_line
from chathistory_core.discovery import installed_backends

_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)*"
_LONGEST = 30
"""Characters of a name, so that the lines it stands in are short enough."""
_OURS = frozenset(
    [
        *("memory", "sqlite", "redis", "rediss", "valkey", "valkeys", "unix"),
        *("http", "https", "postgres", "postgresql"),
        *("agent-framework", "all", "cli", "core", "demo", "server", "service", "testing", "tiktoken"),
    ]
)
"""Names that the backends and distributions of this project bear, or will."""

_ENDING = ".in"
"""What the templates end with, so that no tool takes them for what they become."""
_PACKAGE = "package"
"""What stands in their paths for the name of the package."""
_TODO = {
    "conditional": "What is to be written is in `src/@package@/store.py`.",
    "scratch": "What is to be written is in `src/@package@/backend.py`.",
}


def _check_name(name: str) -> str:
    if len(name) > _LONGEST or not re.fullmatch(_NAME, name):
        raise BadParameter(f"up to {_LONGEST} of a-z, 0-9 and, between them, -; the first is a letter")
    if name in _OURS:
        raise BadParameter(f"{name} is a name of chathistory's own: choose another")
    return name


def new_backend(
    name: Annotated[
        str,
        Argument(
            metavar="NAME",
            show_default=False,
            callback=_check_name,
            help="The name of the backend, and the scheme of its URLs.",
        ),
    ],
    *,
    from_scratch: Annotated[
        bool,
        Option("--from-scratch", show_default=False, help="For a store with transactions: write all five operations."),
    ] = False,
    into: Annotated[
        Path,
        Option(
            metavar="FOLDER", exists=True, file_okay=False, show_default=False, help="Where the project's folder goes."
        ),
    ] = Path(),
    json: Json = False,
) -> None:
    """Begin a backend of your own: a project with its tests, which fail only where there is something to write.

    For a store that has a conditional put and no transactions, five small calls are to be written.
    """
    for backend in installed_backends():
        if backend.name == name and backend.distribution != f"chathistory-{name}":
            raise CommandError(f"{backend.distribution} has a backend {name!r} already: choose another name")
    project = into / f"chathistory-{name}"
    if project.exists() or project.is_symlink():
        raise CommandError(f"{project} exists: choose another name, or another folder with --into")
    _write(project, name, "scratch" if from_scratch else "conditional")
    if json:
        json_line({"name": name, "folder": str(project)})
    else:
        put_line(f"{printable(str(project))} is written: its README.md says how to install and test it.")


def _write(project: Path, name: str, variant: str) -> None:
    """The whole project, or nothing: it gets its name when it is complete."""
    package = f"chathistory_{name.replace('-', '_')}"
    words = {
        "@todo@": _TODO[variant],
        "@package@": package,
        "@Class@": "".join(part.capitalize() for part in name.split("-")),
        "@name@": name,
    }
    templates = files("chathistory_core.cli") / "template"
    with TemporaryDirectory(prefix=f".{project.name}-", dir=project.parent) as folder:
        unfinished = Path(folder, project.name)
        for part in ("common", variant):
            for path, source in _files(templates / part, Path()):
                file = unfinished / str(path).replace(_PACKAGE, package).removesuffix(_ENDING)
                file.parent.mkdir(parents=True, exist_ok=True)
                text = source.read_text("utf-8")
                for marker, word in words.items():
                    text = text.replace(marker, word)
                file.write_text(text, "utf-8", newline="\n")
        unfinished.rename(project)


def _files(folder: Traversable, path: Path) -> Iterator[tuple[Path, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _files(entry, path / entry.name)
        elif entry.name.endswith(_ENDING):
            yield path / entry.name, entry
