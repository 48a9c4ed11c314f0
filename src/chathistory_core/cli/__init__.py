"""The command line, `chathistory`: one module a command."""

from chathistory_core.cli.program import main, run

__all__ = ["main", "run"]
