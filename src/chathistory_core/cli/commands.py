"""The commands: those of this package, and those that other distributions add.

A distribution adds one by an entry point of the group `chathistory.commands`: its name is the command's, and it names a
function that typer takes as a command, or a `typer.Typer` with commands of its own. It is imported when it is called
for, or when the help lists it. One that is broken is a line of warning; one that bears the name of a command of this
package is never called.
"""

import sys
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points, version
from typing import Annotated

import typer

from chathistory_core.cli.backends import backends
from chathistory_core.cli.check import check
from chathistory_core.cli.clear import clear
from chathistory_core.cli.demo import demo
from chathistory_core.cli.error import CommandError
from chathistory_core.cli.export import export
from chathistory_core.cli.import_ import import_
from chathistory_core.cli.list import list_
from chathistory_core.cli.new_backend import new_backend
from chathistory_core.cli.program import Command
from chathistory_core.cli.show import show
from chathistory_core.cli.text import printable, put_line

GROUP = "chathistory.commands"
"""The entry-point group of commands that distributions add."""

_OWN: Mapping[str, Command] = {
    "backends": backends,
    "list": list_,
    "show": show,
    "import": import_,
    "export": export,
    "clear": clear,
    "check": check,
    "new-backend": new_backend,
}
_DEMO = "demo"


def application(command: str | None) -> typer.Typer:
    """The command line for a call of this command: of the added ones it holds this one, or all where it is unknown.

    Raises:
        CommandError: the command that was called is broken.
    """
    app = _new()
    app.callback(invoke_without_command=True)(_chathistory)
    for name, own in _OWN.items():
        app.command(name)(own)
    app.command(_DEMO, add_help_option=False, context_settings={"ignore_unknown_options": True})(demo)
    if command is None or command not in {*_OWN, _DEMO}:
        _add(app, command)
    return app


def _new() -> typer.Typer:
    return typer.Typer(add_completion=False, pretty_exceptions_enable=False)  # pretty ones print local variables


def _chathistory(
    context: typer.Context,
    version_asked: Annotated[bool, typer.Option("--version", show_default=False, help="Print the version.")] = False,
) -> None:
    """The history of a conversation with an agent, in any store."""
    if version_asked:
        put_line(f"chathistory-core {version('chathistory-core')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help())


def _add(app: typer.Typer, command: str | None) -> None:
    offers: dict[str, list[EntryPoint]] = {}
    for entry_point in sorted(entry_points(group=GROUP)):
        offers.setdefault(entry_point.name, []).append(entry_point)
    called = {} if command is None else {command: offers[command]} if command in offers else {}
    for name, offered in (called or offers).items():
        try:
            _add_one(app, name, offered)
        except CommandError as error:
            if called:
                raise
            sys.stderr.write(f"chathistory: left out: {printable(' '.join(str(error).split()))}\n")


def _add_one(app: typer.Typer, name: str, offered: list[EntryPoint]) -> None:
    claims = " and ".join(_distribution(entry_point) for entry_point in offered)
    if name in {*_OWN, _DEMO}:
        raise CommandError(f"command {name!r} of {claims}: there is one of this name already")
    if len(offered) > 1:
        raise CommandError(f"command {name!r} is offered by {claims}: uninstall all but one")
    try:
        loaded: object = offered[0].load()
        alone = _new()
        _register(alone, name, loaded)
        typer.main.get_command(alone)  # what typer refuses here it would refuse at the call of any command
        _register(app, name, loaded)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a module of others does when it is imported
        raise CommandError(f"command {name!r} of {claims} is broken: {type(error).__name__}: {error}") from None


def _register(app: typer.Typer, name: str, loaded: object) -> None:
    if isinstance(loaded, typer.Typer):
        app.add_typer(loaded, name=name)
    elif callable(loaded):
        app.command(name)(loaded)
    else:
        raise TypeError(f"{type(loaded).__name__} is neither a function nor a typer.Typer")


def _distribution(entry_point: EntryPoint) -> str:
    found = entry_point.dist
    return "an unknown distribution" if found is None else f"{found.name} {found.version}"
