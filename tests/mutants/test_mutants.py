"""Backends with one promise broken in their code: the kit finds each, and passes the code as it is."""

import os
from collections import Counter
from collections.abc import Iterator

import pytest

from chathistory_core import BackendError
from chathistory_core.testing.obligations import OBLIGATIONS, TESTED, TRIALS

from .kit import FAILURES, names, run, suite_of
from .mutant import Backend, Mutant
from .page import MUTANTS, table, written
from .stores import Fixtures, Place, fixtures

BACKENDS: tuple[Backend, ...] = ("memory", "SQLite", "Redis")

each_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.backend}: {mutant.what}")


@each_mutant
def test_the_kit_finds_a_backend_where(mutant: Mutant, place: Place) -> None:
    with fixtures(mutant.backend, place, mutant.changes) as given, pytest.raises(FAILURES) as caught:
        run(mutant.test, given)
    assert type(caught.value) is not BackendError, "the mutant does something that its store refuses"


@pytest.fixture(params=BACKENDS)
def correct(request: pytest.FixtureRequest, place: Place) -> Iterator[tuple[Backend, Fixtures]]:
    with fixtures(request.param, place) as given:
        yield request.param, given


def test_a_correct_backend_passes_every_test_that_finds_a_mutant_of_it(correct: tuple[Backend, Fixtures]) -> None:
    backend, given = correct
    for test in sorted({mutant.test for mutant in MUTANTS if mutant.backend == backend}):
        run(test, given)


def test_every_obligation_has_a_mutant_and_every_backend_ten() -> None:
    assert {mutant.obligation for mutant in MUTANTS} == set(range(1, len(OBLIGATIONS) + 1))
    assert min(Counter(mutant.backend for mutant in MUTANTS).values()) >= 10
    assert len({(mutant.backend, mutant.what) for mutant in MUTANTS}) == len(MUTANTS) >= 30


@each_mutant
def test_a_mutant_is_found_by_a_test_of_the_obligation_it_breaks(mutant: Mutant) -> None:
    suite = suite_of(mutant.test)
    if suite not in TRIALS:
        assert mutant.obligation in {"ExpiryTests": (9,), "EncryptionTests": (5, 12)}.get(suite, (TESTED.get(suite),))


def test_the_page_lists_every_mutant() -> None:
    assert written() == table(), "run `python -m tests.mutants page`"


@pytest.mark.skipif("LONG" not in os.environ, reason="runs the kit 80 times; LONG in the environment asks for it")
@each_mutant
def test_the_named_test_finds_it_in_a_run_of_the_whole_kit_too(mutant: Mutant, place: Place) -> None:
    with fixtures(mutant.backend, place, mutant.changes) as given:
        failed = [test for test in names(given, shared=False) if fails(test, given)]
    assert mutant.test in failed


def fails(test: str, given: Fixtures) -> bool:
    try:
        run(test, given)
    except (Exception, pytest.fail.Exception):  # noqa: BLE001 - how it fails is all the same
        return True
    return False
