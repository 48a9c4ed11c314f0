"""Every mutation of a backend's code against the kit, and what is said of those that no test finds.

A process is forked for each, so that what hangs or breaks the interpreter is one that was found.
"""

import os
import pickle
import signal
import time
import tomllib
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TypeVar

import pytest

from chathistory_core.testing import BackendFactory

from .changed import Change, changed
from .kit import names, run, suite_of
from .operators import Mutation, mutations
from .stores import Fixtures, of_memory

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
EXPLAINED = Path(__file__).with_name("explained.toml")
SECONDS = 120
"""Of processor time, for all tests of one mutation."""
TROUBLED = {
    "AtomicityTests",
    "CancellationTests",
    "ClearTests",
    "EpochTests",
    "HistoryTests",
    "ReplaceTests",
    "RevisionRaceTests",
    "SnapshotTests",
    "TurnConflictTests",
    "TurnRaceTests",
}
"""What is run on every store of a target, and not on its first one alone: where lost requests make a difference."""


class Target(NamedTuple):
    """Code to be mutated, and what its tests are."""

    package: str
    folder: str
    files: Sequence[str]
    stores: Callable[[ModuleType], Sequence[Fixtures]]
    """What the kit is run on, one after the other."""
    own: Sequence[str]
    """Tests beside the kit, which run where the kit has found nothing."""


class Survivor(NamedTuple):
    """What says which mutation it is, wherever its line is now."""

    file: str
    place: str
    what: str


class Trial(NamedTuple):
    """A test on one of a target's stores."""

    store: int
    test: str


class Found(NamedTuple):
    """What became of a mutation: which test failed on it, or none."""

    survivor: Survivor
    line: int
    test: str


def _on_tables(package: ModuleType) -> Sequence[Fixtures]:
    from tests.conditional.conftest import Table

    def good() -> BackendFactory:
        return partial(package.ConditionalBackend, Table(slow=False))

    def bad() -> BackendFactory:
        table = Table(max_block=5_000, versions=True, lost=0.02, repeats=8, certain={"put"})
        return partial(package.ConditionalBackend, table, max_block=5_000)

    return [{"make_backend": good}, {"make_backend": bad}]


TARGETS: Mapping[str, Target] = {
    "memory": Target(
        "chathistory_memory",
        "plugins/memory/src/chathistory_memory",
        ("backend.py", "log.py", "store.py"),
        lambda package: [of_memory(package)],
        ("plugins/memory/tests", "-k", "not TestMemoryBackend"),
    ),
    "conditional": Target(
        "chathistory_core.conditional",
        "src/chathistory_core/conditional",
        (
            "backend.py",
            "writing.py",
            "reading.py",
            "clearing.py",
            "turns.py",
            "blocks.py",
            "state.py",
            "listing.py",
            "tries.py",
        ),
        _on_tables,
        [
            f"tests/conditional/test_{name}.py"
            for name in ("late", "overtaken", "clearing", "requests", "backend", "killed", "schedules")
        ],
    ),
}


def survey(name: str, file: str, told: Callable[[str], None]) -> Sequence[Found]:
    """What became of every mutation, or of those in one file; `told` hears of each that the kit does not find."""
    target = TARGETS[name]
    target = target._replace(files=[file] if file else target.files)
    seconds = _forked(lambda: _times(target))
    if seconds is None or _forked(partial(_fails_its_own, target, ())) is not False:
        raise AssertionError(f"the tests of {name!r} fail on the code as it is")
    kills = Counter[str]()
    found: list[Found] = []
    for file, mutation in all_mutations(target):
        order = sorted(seconds, key=lambda trial: (-kills[trial.test], seconds[trial]))
        changes = [Change(file, (ROOT / target.folder / file).read_text("utf-8"), mutation.code)]
        test = _forked(partial(_killer, target, changes, order))
        if test is None:
            test = "(ended)"
        elif not test and _forked(partial(_fails_its_own, target, changes)) is not False:
            test = "(its own tests)"
        kills[test] += 1
        found.append(Found(Survivor(file, mutation.place, mutation.what), mutation.line, test))
        if not test.startswith("test_"):
            told(f"{test or 'survives'}: {file}:{mutation.line} {mutation.place}: {mutation.what}")
    return found


def all_mutations(target: Target) -> Iterator[tuple[str, Mutation]]:
    """Each with the file it belongs to."""
    for file in target.files:
        for mutation in mutations((ROOT / target.folder / file).read_text("utf-8")):
            yield file, mutation


def explained(name: str) -> Mapping[Survivor, str]:
    """Why no test finds these: what is written down of them."""
    told = tomllib.loads(EXPLAINED.read_text("utf-8"))[name]
    return {Survivor(each["file"], each["place"], what): each["because"] for each in told for what in each["what"]}


def _times(target: Target) -> Mapping[Trial, float]:
    """How long each test of the kit takes on the code as it is."""
    with changed(target.package) as package:
        seconds: dict[Trial, float] = {}
        for number, fixtures in enumerate(target.stores(package)):
            for test in names(fixtures, shared=False) if not number else _troubled(fixtures):
                begin = time.perf_counter()
                run(test, fixtures)
                seconds[Trial(number, test)] = time.perf_counter() - begin
        return seconds


def _troubled(fixtures: Fixtures) -> Iterator[str]:
    return (test for test in names(fixtures, shared=False) if suite_of(test) in TROUBLED)


def _killer(target: Target, changes: Sequence[Change], order: Sequence[Trial]) -> str:
    """The first test that fails, or "" where none does."""
    test = "(import)"
    try:
        with changed(target.package, changes) as package:
            stores = target.stores(package)
            for number, test in order:
                run(test, stores[number])
    except BaseException:  # noqa: BLE001 - whatever it is, it was found
        return test
    return ""


def _fails_its_own(target: Target, changes: Sequence[Change]) -> bool:
    with changed(target.package, changes):
        # plain, for what a test module imports is imported already
        status = pytest.main(
            ["-x", "-q", "--assert=plain", "--disable-plugin-autoload", "-p", "no:cacheprovider", *target.own]
        )
    return status != pytest.ExitCode.OK


def _forked(function: Callable[[], T]) -> T | None:
    """What the function returns in a process of its own; None where that process ends without telling."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        _run_in_child(function, send)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    result: T | None = pickle.loads(told) if told else None
    return result


def _run_in_child(function: Callable[[], object], pipe: int) -> None:
    """Never returns."""
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        signal.alarm(3 * SECONDS)  # of one that waits
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        os.chdir(ROOT)
        warnings.simplefilter("ignore")
        with os.fdopen(pipe, "wb") as told:
            told.write(pickle.dumps(function()))
    finally:
        os._exit(0)
