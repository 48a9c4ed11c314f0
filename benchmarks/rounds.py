"""Samples that take turns, and the ratios of those that were taken side by side."""

import gc
from collections.abc import Awaitable, Callable, Sequence
from statistics import median, quantiles
from typing import NamedTuple

Sample = Callable[[], Awaitable[float]]
"""Does something some times, and returns the seconds that each time took."""


class Spread(NamedTuple):
    """Of several measurements the median, and between what half of them lie."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    if len(values) < 2:
        return Spread(values[0], values[0], values[0])
    low, _, high = quantiles(values, n=4, method="inclusive")
    return Spread(median(values), low, high)


async def take_turns(ours: Sample, floor: Sample, rounds: int) -> list[tuple[float, float]]:
    """What both took, round by round, in the other order every second time; one round before is left out."""
    taken: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        seconds = {}
        for sample in (ours, floor) if number % 2 else (floor, ours):
            gc.collect()
            seconds[sample] = await sample()
        taken.append((seconds[ours], seconds[floor]))
    return taken[1:]
