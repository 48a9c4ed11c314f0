"""Plots of what grows with a conversation: SVG, the same bytes for the same figures, for light pages and dark ones."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

_WIDTH, _HEIGHT = 820, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 560, 16, 396
_LINE = 15
"""Pixels between two labels, at least."""

_COLOURS = (
    "#c2571a",
    "#8a63d2",
    "#2f8f6b",
    "#b8475f",
    "#8c7a1f",
    "#4f7f9b",
    "#a04fa0",
    "#5f8a2f",
    "#b07040",
    "#6b74c9",
)
_OURS = "#2b7de0"

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #555 }
.grid { stroke: #8886; stroke-width: 1 }
.line { fill: none; stroke-width: 1.5 }
.ours { stroke-width: 3.5 }
@media (prefers-color-scheme: dark) { text { fill: #bbb } }
"""


class Line(NamedTuple):
    """A contestant's figures: lengths and seconds."""

    name: str
    points: Sequence[tuple[int, float]]
    is_ours: bool


def plot(lines: Sequence[Line]) -> str:
    """Seconds against length, both logarithmic; each line with its name behind it."""
    lengths = [length for line in lines for length, _ in line.points]
    seconds = [second for line in lines for _, second in line.points]
    across = _Scale(min(lengths), max(lengths), _LEFT, _RIGHT)
    up = _Scale(min(seconds), max(seconds), _BOTTOM, _TOP)
    parts = [*_grid(across, up), *_drawn(lines, across, up)]
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])


class _Scale:
    """From whole powers of ten around the values to pixels."""

    def __init__(self, least: float, most: float, start: float, stop: float) -> None:
        self.powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
        self._start, self._stop = start, stop

    def at(self, value: float) -> float:
        share = (math.log10(value) - self.powers[0]) / max(1, self.powers[-1] - self.powers[0])
        return round(self._start + share * (self._stop - self._start), 1)


def _grid(across: _Scale, up: _Scale) -> Iterator[str]:
    for power in up.powers:
        y = up.at(10.0**power)
        yield f'<path class="grid" d="M{_LEFT} {y}H{_RIGHT}"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{_time(power)}</text>'
    for power in across.powers:
        x = across.at(10.0**power)
        yield f'<path class="grid" d="M{x} {_TOP}V{_BOTTOM}"/>'
        yield f'<text x="{x}" y="{_BOTTOM + 18}" text-anchor="middle">{10**power:,}</text>'
    middle = (_LEFT + _RIGHT) // 2
    yield f'<text x="{middle}" y="{_BOTTOM + 38}" text-anchor="middle">messages stored</text>'


def _drawn(lines: Sequence[Line], across: _Scale, up: _Scale) -> Iterator[str]:
    ends = {line.name: up.at(line.points[-1][1]) for line in lines}
    lowest = -math.inf
    for number, line in enumerate(sorted(lines, key=lambda line: (ends[line.name], line.name))):
        colour = _OURS if line.is_ours else _COLOURS[number % len(_COLOURS)]
        points = " ".join(f"{across.at(length)},{up.at(second)}" for length, second in line.points)
        kind = "line ours" if line.is_ours else "line"
        yield f'<polyline class="{kind}" stroke="{colour}" points="{points}"/>'
        lowest = max(ends[line.name], lowest + _LINE)
        x, y = across.at(line.points[-1][0]), ends[line.name]
        yield f'<path class="line" stroke="{colour}" stroke-opacity=".5" d="M{x} {y}L{_RIGHT + 14} {lowest}"/>'
        weight = ' font-weight="bold"' if line.is_ours else ""
        name = escape(line.name)
        yield f'<text x="{_RIGHT + 18}" y="{round(lowest + 4, 1)}" style="fill:{colour}"{weight}>{name}</text>'


def _time(power: int) -> str:
    for unit, shift in (("s", 0), ("ms", -3), ("µs", -6)):
        if power >= shift:
            return f"{10 ** (power - shift)} {unit}"
    return f"{10.0 ** (power + 6):g} µs"
