"""Figures as lines of text, for whoever waits for them."""

import os
from collections.abc import Iterable, Iterator

from benchmarks.results import Correctness, Measured, Ratio
from benchmarks.rounds import spread


def ratio(one: Ratio) -> None:
    """A row of the floors, whether its goal is reached, and the load of the machine."""
    found, size = one.ratio, 1e6 if one.unit == "us" else 1e-6
    mark = "  " if one.at_most is None or found.median <= one.at_most else "! "
    goal = "" if one.at_most is None else f"at most {one.at_most:.2f}"
    load = f"load {os.getloadavg()[0]:.1f}"
    print(
        f"{mark}{found.median:7.3f} ({found.low:.3f} to {found.high:.3f}) {goal:<13}"
        f"{one.ours * size:11.1f} / {one.floor * size:11.1f} {one.unit}  {one.name}  [{load}]",
        flush=True,
    )


def ratios(found: Iterable[Ratio]) -> Iterator[Ratio]:
    """Rows of the floors, as they come."""
    for one in found:
        ratio(one)
        yield one


def measured(found: Iterable[Measured]) -> Iterator[Measured]:
    """What one contestant took for one operation, as it comes."""
    for one in found:
        if one.taken:
            took = spread(one.taken).median
            amount = f"{took / 1e6:12.1f} MB" if one.operation == "memory" else f"{took * 1e6:12.1f} us"
        else:
            amount = f"{one.remark:>15}"
        place = f"{one.operation} {one.length:,}" if one.length else one.operation
        print(f"{place:<30}{amount}  {one.contestant}, {one.asked} ({len(one.taken)} rounds)", flush=True)
        yield one


def correctness(found: Iterable[Correctness]) -> Iterator[Correctness]:
    """What became of one contestant's turns."""
    for one in found:
        print(one, flush=True)
        yield one
