"""Figures and names as the page writes them."""

import math

from benchmarks.lengths import LAST
from benchmarks.results import About
from benchmarks.rounds import Spread

_DURABILITY = {"FULL": "", "memory": "", "the server's": ""}


def name(about: About) -> str:
    """With its durability, where that is not the usual one, and a star where a read validates nothing."""
    star = "" if about.returns == "message objects" else " \\*"
    durability = _DURABILITY.get(about.durability, f", {about.durability}")
    return f"{about.name}{durability}{star}"


def title(operation: str, length: int) -> str:
    """The operation and what it was done to."""
    words = {
        "turn": f"turn at {length:,}",
        "first turn": f"first turn at {length:,}",
        "append": f"append at {length:,}",
        "load": f"read {length:,}",
        "last": f"last {LAST} of {length:,}",
        "memory": f"memory, read {length:,}",
        "list": f"list {length:,}",
    }
    return words.get(operation, operation)


def between(ratio: Spread) -> str:
    """Where half of the ratios lie."""
    return f"{number(ratio.low)} to {number(ratio.high)}"


def number(value: float) -> str:
    """Three digits, without an exponent."""
    if value >= 100:
        return f"{round(value, 2 - math.floor(math.log10(value))):,.0f}"
    return f"{value:#.3g}" if value >= 0.001 else "< 0.001"


def amount(value: float, unit: str) -> str:
    """Seconds (`us`) or bytes (`MB`) with a fitting unit."""
    if unit == "MB":
        return f"{number(value / 1e6)} MB"
    for size, name in ((1.0, "s"), (1e-3, "ms")):
        if value >= size:
            return f"{number(value / size)} {name}"
    return f"{number(value * 1e6)} µs"
