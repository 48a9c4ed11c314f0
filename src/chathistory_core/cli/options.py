"""The options that commands share, and the store that they name. Commands of plugins use them too."""

from collections.abc import Sequence
from typing import Annotated

from typer import BadParameter, Option

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.opening import open_backend


def _check_options(given: list[str] | None) -> list[str] | None:
    for one in given or ():
        name, separator, _ = one.partition("=")
        if not separator or not name.isidentifier():
            raise BadParameter("write NAME=VALUE")  # without what was given: that may be a password
    return given


Url = Annotated[
    str | None,
    Option(
        metavar="URL", show_default=False, help="The store, such as sqlite:///chat.db; by default the one configured."
    ),
]
Options = Annotated[
    list[str] | None,
    Option(
        "--option",
        metavar="NAME=VALUE",
        show_default=False,
        callback=_check_options,
        help="An option of the store, such as ttl=30d. May be repeated.",
    ),
]
Json = Annotated[bool, Option("--json", show_default=False, help="Print JSON, one line an object, for programs.")]
Prefix = Annotated[
    str | None, Option(metavar="TEXT", show_default=False, help="All conversations whose key begins with this.")
]
All = Annotated[bool, Option("--all", show_default=False, help="All conversations of the store.")]


def store(url: str | None, options: Sequence[str] | None) -> ChatHistoryBackend:
    """The store that `Url` and `Options` name, not yet opened: use it with `async with`."""
    given = [option.partition("=") for option in options or ()]
    names = [name for name, _, _ in given]
    if len(set(names)) < len(names):
        raise BadParameter("one NAME is given twice", param_hint="--option")
    return open_backend(url, options={name: value for name, _, value in given})


def check_selection(keys: Sequence[str], prefix: str | None, *, everything: bool) -> None:
    """Whether exactly one of keys, `Prefix` and `All` is given; wrong usage where not, or where the prefix is empty."""
    if sum([bool(keys), prefix is not None, everything]) != 1:
        raise BadParameter("give one of: keys, --prefix, --all", param_hint="KEY")
    if prefix == "":
        raise BadParameter("an empty one stands for every conversation: say --all", param_hint="--prefix")
