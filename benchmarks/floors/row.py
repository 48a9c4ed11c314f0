"""A row of the table: what is measured against what, and what the ratio may be."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from benchmarks.floors.bench import Bench
from benchmarks.rounds import Sample


@dataclass(frozen=True)
class Row:
    """Two samples, and their goal."""

    name: str
    against: str
    at_most: float | None
    """Where a ratio above it is a goal not reached; None where there is no goal."""
    sides: Callable[[Bench], Awaitable[tuple[Sample, Sample]]]
    """The sample, and the one that it is measured against."""
    rounds: int = 15
    unit: Literal["us", "MB"] = "us"
