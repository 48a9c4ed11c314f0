"""Conversations in one SQLite file."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chathistory_sqlite.backend import SQLiteBackend
    from chathistory_sqlite.plugin import SQLiteOptions
    from chathistory_sqlite.schema import metadata

__all__ = ["SQLiteBackend", "SQLiteOptions", "metadata"]

_MODULES = {"SQLiteBackend": "backend", "SQLiteOptions": "plugin", "metadata": "schema"}


def __getattr__(name: str) -> object:
    """The public name; imported when it is asked for, so that listing backends and their options loads no driver."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
