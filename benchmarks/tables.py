"""The tables of the page."""

from collections.abc import Iterable, Sequence

from benchmarks import words
from benchmarks.comparison import Comparison, is_ours
from benchmarks.results import About, Correctness, Ratio
from benchmarks.rounds import spread

FAMILIES = {"file": "SQLite and other files", "redis": "Redis and Valkey", "memory": "In memory"}

BY_LENGTH = {"turn": "a turn", "first turn": "the first turn", "append": "an append"}
"""The operations with a table of their own."""

SLOWER = 1.5
GOAL_AT = 1_000
"""The goal: every other library takes as many times as long as ours for a turn at this many messages."""

_NORMAL_UP_TO = 1_000

Columns = Sequence[tuple[str, int]]
"""Operations and the lengths they were done at."""


def floors(ratios: Sequence[Ratio]) -> str:
    """What was measured against the least, and whether the goal is reached."""

    def row(one: Ratio) -> Sequence[str]:
        ratio, goal = one.ratio, one.at_most
        number = _marked(words.number(ratio.median), missed=goal is not None and ratio.median > goal)
        amounts = [words.amount(value, one.unit) for value in (one.ours, one.floor)]
        return [one.name, one.against, "-" if goal is None else f"{goal:.2f}", number, words.between(ratio), *amounts]

    return _table(["what", "against", "at most", "ratio", "half between", "ours", "the other"], map(row, ratios))


def by_length(comparison: Comparison, operation: str, family: str) -> str:
    """One operation on conversations of growing length; empty where it was not measured."""
    field = comparison.field(family)
    columns = [column for column in comparison.columns(field) if column[0] == operation]
    heads = ["messages stored", *(f"{length:,}" for _, length in columns)]
    return _compared(comparison, field, f"{FAMILIES[family]}: {BY_LENGTH[operation]}", heads, columns)


def operations(comparison: Comparison, family: str) -> str:
    """The operations that have no table of their own."""
    field = comparison.field(family)
    columns = [column for column in comparison.columns(field) if column[0] not in BY_LENGTH]
    return _compared(comparison, field, FAMILIES[family], ["", *(words.title(*column) for column in columns)], columns)


def other_durability(comparison: Comparison) -> str:
    """Turns and appends of those that can be told that commits wait for no disk."""
    field = comparison.field("file", main=False)
    columns = [
        (operation, length)
        for operation, length in comparison.columns(field)
        if operation in {"turn", "append"} and length <= _NORMAL_UP_TO
    ]
    heads = ["", *(words.title(*column) for column in columns)]
    return _compared(comparison, field, "Files with `synchronous=NORMAL`", heads, columns)


def not_ahead(comparison: Comparison) -> str:
    """A list of what others did in less time or memory than ours."""
    found: dict[str, list[str]] = {}
    for about, one, ratio in comparison.ahead_of_ours():
        where = f"{words.title(one.operation, one.length)} ({words.number(ratio.median)})"
        found.setdefault(words.name(about), []).append(where)
    return "".join(f"- {name}: {', '.join(where)}\n" for name, where in found.items()) or "Nowhere in this run.\n"


def correctness(found: Sequence[Correctness]) -> str:
    """What became of everyone's turns."""

    def row(one: Correctness) -> Sequence[str]:
        if one.remark:
            return [one.contestant, one.remark, *[""] * 8]
        errors = ", ".join(f"{count} {name}" for name, count in sorted(one.errors.items())) or "0"
        counts = (one.processes, one.turns, one.lost, one.doubled, one.split, one.reordered)
        return [one.contestant, *map(str, counts), errors, str(one.retried), str(one.equal)]

    heads = ["", "processes", "turns", "lost", "doubled", "split", "reordered", "errors", "retried", "two equal"]
    return _table(heads, map(row, found))


def _compared(
    comparison: Comparison, field: Sequence[About], title: str, heads: Sequence[str], columns: Columns
) -> str:
    if not columns:
        return ""
    rows = ([words.name(one), *(_cell(comparison, one, *column) for column in columns)] for one in field)
    remarks = "".join(f"- {name}: {remark}\n" for name, remark in comparison.remarks(field, columns))
    return f"\n### {title}\n\n{_table(heads, rows)}" + (f"\n{remarks}" if remarks else "")


def _cell(comparison: Comparison, about: About, operation: str, length: int) -> str:
    measured, ratio = comparison.of(about, operation, length), comparison.ratio(about, operation, length)
    if measured is None or ratio is None:
        return "-"
    if is_ours(about):
        return words.amount(spread(measured.taken).median, "MB" if operation == "memory" else "us")
    missed = (operation, length) == ("turn", GOAL_AT) and ratio.median < SLOWER
    return f"{_marked(words.number(ratio.median), missed=missed)} ({words.between(ratio)})"


def _marked(number: str, *, missed: bool) -> str:
    return f"**{number}**" if missed else number


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heads, [":--", *["--:"] * (len(heads) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
