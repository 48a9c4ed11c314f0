"""Contestants in the field: each with a process and a place of its own, measured in rounds in which all take turns."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.contestants import PATIENCE, Contestant, NotOfferedError, Worker, WorkerError
from benchmarks.results import About, Measured
from benchmarks.servers import started

_ENOUGH = 10.0
"""Seconds that one operation of one contestant may take in all its rounds; of a slower one there are fewer rounds."""

_START = 600.0
"""Seconds that a process may take to start: its environment is installed first, where it is not there."""

_AT_ONCE = 2
"""Contestants that prepare themselves at the same time."""


class Entrant:
    """A contestant with a durability."""

    def __init__(self, contestant: Contestant, durability: str, folder: Path, stack: ExitStack) -> None:
        folder.mkdir(parents=True)
        url = stack.enter_context(started(folder / "server")) if contestant.family == "redis" else ""
        self.contestant = contestant
        self.durability = durability
        self.is_main = durability == contestant.durabilities[0]
        self.out = ""
        """Why it takes no further part; empty while it does."""
        self._folder, self._url = str(folder), url
        self.worker = stack.enter_context(Worker(contestant))
        """Its process; the others that it has had opened have their own."""
        self.about = self._open(self.worker)

    def another(self, stack: ExitStack) -> Worker:
        """One more process that has opened the same place."""
        worker = stack.enter_context(Worker(self.contestant))
        self._open(worker)
        return worker

    def _open(self, worker: Worker) -> About:
        told = worker.ask("open", patience=_START, folder=self._folder, url=self._url, durability=self.durability)
        one = self.contestant
        return About(name=one.name, family=one.family, asked=self.durability, **told)

    def ask(self, do: str, *, patience: float = PATIENCE, **request: object) -> dict[str, Any]:
        """The answer of its process."""
        return self.worker.ask(do, patience=patience, **request)

    def seconds(self, do: str, **request: object) -> float:
        """The median time of one of the calls that are asked for."""
        return float(median(self.ask(do, patience=PATIENCE, **request)["ns"])) / 1e9


def enter(contestants: Iterable[Contestant], folder: Path, stack: ExitStack) -> Sequence[Entrant]:
    """Each contestant in each of its durabilities; one that cannot be started is told of, and left out."""

    def entered(number: int, contestant: Contestant, durability: str) -> Entrant | None:
        try:
            return Entrant(contestant, durability, folder / str(number), stack)
        except WorkerError as error:
            say(f"left out: {error}")
            return None

    pairs = [(contestant, durability) for contestant in contestants for durability in contestant.durabilities]
    found = [entered(number, *pair) for number, pair in enumerate(pairs)]
    return [entrant for entrant in found if entrant is not None]


def prepare(field: Sequence[Entrant], what: str, do: Callable[[Entrant], None]) -> None:
    """Let each that is not out do what is not measured, some at the same time; whom that fails is out."""

    def done(entrant: Entrant) -> None:
        if not entrant.out:
            try:
                do(entrant)
            except WorkerError as error:
                entrant.out = brief(error)
                say(f"{what}: {entrant.contestant.name} is out: {entrant.out}")

    say(what)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(done, field))


def take_turns(
    field: Sequence[Entrant], operation: str, length: int, rounds: int, sample: Callable[[Entrant, int], float]
) -> Iterator[Measured]:
    """What the sample is for each of the field, round by round, in the other order every second time.

    The sample is given the number of the round.
    """
    taken: dict[Entrant, list[float]] = {entrant: [] for entrant in field}
    spent = dict.fromkeys(field, 0.0)
    remarks = {entrant: entrant.out for entrant in field}
    for number in range(rounds):
        for entrant in field if number % 2 else reversed(field):
            if remarks[entrant] or spent[entrant] > _ENOUGH:
                continue
            begun = time.monotonic()
            try:
                taken[entrant].append(sample(entrant, number))
            except NotOfferedError:
                remarks[entrant] = "not offered"
            except WorkerError as error:
                remarks[entrant] = brief(error)
            spent[entrant] += time.monotonic() - begun
    for entrant in field:
        about = entrant.about
        yield Measured(
            contestant=about.name,
            asked=about.asked,
            operation=operation,
            length=length,
            taken=taken[entrant],
            remark=remarks[entrant],
        )


def brief(error: Exception) -> str:
    """The error in a table's cell: without the values that some libraries tell."""
    return str(error).partition("\n")[0][:100]


def say(text: str) -> None:
    """Tell whoever waits for the figures."""
    print(text, file=sys.stderr, flush=True)
