"""Measures ours against the least that could do it, and against other libraries, side by side.

Without arguments everything, and then docs/explanation/performance.json, the page beside it and its plots are written.
With arguments a part, which is printed, and with `--json` put in the place of the same sections of that file.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path

from benchmarks import agents, correctness, crowds, lengths, printed
from benchmarks.contestants import ROOT
from benchmarks.entrants import enter
from benchmarks.floors import ROWS
from benchmarks.floors.bench import QUICK, Bench, Sizes
from benchmarks.machine import machine, versions
from benchmarks.ours import OURS
from benchmarks.page import write
from benchmarks.peers import PEERS
from benchmarks.results import Ratio, Results
from benchmarks.rounds import take_turns

PAGES = ROOT / "docs" / "explanation"
JSON = PAGES / "performance.json"
SECTIONS = ("floors", "peers", "correctness", "agents")


class Run:
    """What the command line asks for."""

    def __init__(self, *, sections: Sequence[str], only: Sequence[str], quick: bool, rounds: int | None) -> None:
        self._sections = sections
        self._only = only
        self._quick = quick
        self._rounds = rounds

    def results(self, before: Results | None = None) -> Results:
        """What was measured; of sections that were not, what was known before."""
        found = before or Results(machine={}, versions={})
        found = found.model_copy(update={"machine": machine(), "versions": versions()})
        with tempfile.TemporaryDirectory(prefix="chb", ignore_cleanup_errors=True) as name:
            if "floors" in self._sections:
                floors = asyncio.run(self._floors(Path(name)))
                found = found.model_copy(update={"floors": floors})
            if {"peers", "correctness"} & set(self._sections):
                with ExitStack() as stack:
                    found = self._side_by_side(found, Path(name), stack)
            if "agents" in self._sections:
                ratios = [*printed.ratios(agents.measure(quick=self._quick))]
                found = found.model_copy(update={"agents": ratios})
        return found

    async def _floors(self, folder: Path) -> Sequence[Ratio]:
        found: list[Ratio] = []
        async with AsyncExitStack() as stack:
            bench = Bench(folder, QUICK if self._quick else Sizes(), stack)
            for row in ROWS:
                if self._wanted(row.name):
                    ours, floor = await row.sides(bench)
                    taken = await take_turns(ours, floor, self._rounds or row.rounds)
                    found.append(
                        Ratio(name=row.name, against=row.against, at_most=row.at_most, unit=row.unit, taken=taken)
                    )
                    printed.ratio(found[-1])
        return found

    def _side_by_side(self, found: Results, folder: Path, stack: ExitStack) -> Results:
        everyone = [*OURS, *(one for one in PEERS if self._wanted(one.name))]
        field = enter(everyone, folder, stack)
        found = found.model_copy(update={"field": [one.about for one in field]})
        if "peers" in self._sections:
            rounds = self._rounds or 5
            at = lengths.QUICK if self._quick else lengths.Lengths()
            measured = [
                *printed.measured(lengths.measure(field, at, rounds)),
                *printed.measured(crowds.measure(field, 20 if self._quick else 10_000, rounds)),
            ]
            found = found.model_copy(update={"measured": measured})
        if "correctness" in self._sections:
            turns = 2 if self._quick else correctness.TURNS
            checked = [*printed.correctness(correctness.check(field, turns=turns))]
            found = found.model_copy(update={"correctness": checked})
        return found

    def _wanted(self, name: str) -> bool:
        return not self._only or any(text in name for text in self._only)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="benchmarks", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all by default")
    parser.add_argument(
        "--only", action="append", default=[], metavar="TEXT", help="rows and contestants with it in their name"
    )
    parser.add_argument(
        "--quick", action="store_true", help="little data: shows that it runs, its figures mean nothing"
    )
    parser.add_argument("--rounds", type=int, metavar="N", help="rounds of each measurement")
    parser.add_argument("--json", type=Path, metavar="PATH", help="put what was measured into this file")
    parser.add_argument(
        "--page-from", type=Path, metavar="JSON", help="measure nothing, write page and plots of this file"
    )
    given = parser.parse_args()
    unknown = [one for one in given.sections if one not in SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}: there are {', '.join(SECTIONS)}")
    if given.page_from:
        write(Results.model_validate_json(given.page_from.read_bytes()), PAGES)
        return
    whole = not (given.sections or given.only or given.quick or given.json)
    path = JSON if whole else given.json
    before = Results.model_validate_json(path.read_bytes()) if path and path.exists() and not whole else None
    run = Run(sections=given.sections or SECTIONS, only=given.only, quick=given.quick, rounds=given.rounds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no server and no worker is left
    results = run.results(before)
    if path:
        path.write_text(results.model_dump_json(indent=1) + "\n", "utf-8")
    if whole:
        write(results, PAGES)


if __name__ == "__main__":
    main()
