"""What a mutant is: a backend of ours with one promise broken in its code."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

from .changed import Change

Backend: TypeAlias = Literal["memory", "SQLite", "Redis"]


class Mutant(NamedTuple):
    """A backend with one promise broken in its code."""

    backend: Backend
    what: str
    """What is wrong with it, in a few words."""
    obligation: int
    """The number of the one that it breaks."""
    test: str
    """The test of the kit that has to find it."""
    changes: Sequence[Change]
