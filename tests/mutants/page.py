"""The table of the mutants in the documentation."""

from collections.abc import Sequence
from pathlib import Path

from chathistory_core.testing.obligations import OBLIGATIONS

from . import memory, redis, sqlite
from .mutant import Mutant

MUTANTS: Sequence[Mutant] = (*memory.MUTANTS, *sqlite.MUTANTS, *redis.MUTANTS)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "testing.md"
BEGIN, END = "<!-- mutants -->\n", "<!-- end of mutants -->\n"


def table() -> str:
    """The mutants by the obligation that they break."""
    lines = ["| it breaks | backend | what is wrong | found by |", "| :-- | :-- | :-- | :-- |"]
    for mutant in sorted(MUTANTS, key=lambda mutant: mutant.obligation):
        name = f"{mutant.obligation} {OBLIGATIONS[mutant.obligation - 1]}"
        lines.append(f"| {name} | {mutant.backend} | {mutant.what} | `{mutant.test}` |")
    return "\n".join(lines) + "\n"


def written() -> str:
    """What stands in the page."""
    return _parts()[1].strip("\n") + "\n"


def write() -> None:
    """Put the table into the page."""
    before, _, after = _parts()
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", "utf-8")


def _parts() -> tuple[str, str, str]:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    inside, _, after = rest.partition(END)
    return before, inside, after
