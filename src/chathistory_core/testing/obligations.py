"""Which test speaks for which obligation, and what a run of the kit says of a backend."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

OBLIGATIONS = (
    "order",
    "epoch",
    "snapshot",
    "atomicity",
    "exactly once",
    "revision",
    "reading",
    "empty writes",
    "clear",
    "summaries",
    "keys",
    "size and cost",
    "errors",
    "lifecycle",
)
"""Of `ChatHistoryBackend`, the first one is number 1."""

TESTED: Mapping[str, int] = {
    "OrderTests": 1,
    "EpochTests": 2,
    "SnapshotTests": 3,
    "AtomicityTests": 4,
    "ReplayTests": 5,
    "TurnConflictTests": 5,
    "TurnRaceTests": 5,
    "RevisionTests": 6,
    "ExpectedEpochTests": 6,
    "RevisionRaceTests": 6,
    "TimeTests": 6,
    "ReadTests": 7,
    "WalkTests": 7,
    "ReplaceTests": 8,
    "ClearTests": 9,
    "SummaryTests": 10,
    "PageTests": 10,
    "PrefixTests": 10,
    "KeyTests": 11,
    "FidelityTests": 12,
    "EncryptionTests": 12,
    "SizeTests": 12,
    "FailureTests": 13,
    "LifecycleTests": 14,
}
"""Test classes of the kit, and the number of the obligation each speaks for."""

TRIALS: Mapping[str, str] = {
    "ModelTests": "random calls, against a model",
    "HistoryTests": "random calls at once",
    "CancellationTests": "a call cancelled at every await",
    "ProcessTests": "two processes at once",
    "CrashTests": "writers killed with SIGKILL",
    "NetworkTests": "a network that loses, delays, cuts and resets",
}
"""Test classes of the kit that try all obligations together, and what they put a store through."""


class Outcome(NamedTuple):
    """How one test ended."""

    suite: str
    """The class that has the test."""
    test: str
    passed: bool
    message: str = ""
    """What failed, in one line."""


class Line(NamedTuple):
    """One obligation or trial: how many tests spoke for it, and which failed."""

    name: str
    tests: int
    failed: Sequence[str]
    reason: str = ""
    """Why it was not tested."""

    @property
    def kept(self) -> bool:
        """Tested, and nothing failed."""
        return self.tests > 0 and not self.failed


def obligations(outcomes: Sequence[Outcome]) -> Sequence[Line]:
    """What the tests say of each obligation."""
    return [
        _line(f"{number} {name}", [each for each in outcomes if TESTED.get(each.suite) == number])
        for number, name in enumerate(OBLIGATIONS, 1)
    ]


def trials(outcomes: Sequence[Outcome], reasons: Mapping[str, str]) -> Sequence[Line]:
    """What the tests say of each trial; `reasons` tells, by class, why it was not tested."""
    return [
        _line(name, [each for each in outcomes if each.suite == suite], reasons.get(suite, ""))
        for suite, name in TRIALS.items()
    ]


def level(kept: Sequence[Line], tried: Sequence[Line]) -> str:
    """The whole in one sentence: which obligations are kept and trials passed, and what is missing."""
    sentence = (
        f"keeps {sum(line.kept for line in kept)} of {len(kept)} obligations, "
        f"passes {sum(line.kept for line in tried)} of {len(tried)} trials"
    )
    broken = [line.name for line in (*kept, *tried) if not line.kept and not line.reason]
    untested = [line.name for line in tried if line.reason]
    missing = [f"broken: {', '.join(broken)}"] * bool(broken) + [f"not tested: {', '.join(untested)}"] * bool(untested)
    return "; ".join([sentence, *missing])


def _line(name: str, outcomes: Iterable[Outcome], reason: str = "") -> Line:
    found = list(outcomes)
    return Line(name, len(found), [each.test for each in found if not each.passed], reason)
