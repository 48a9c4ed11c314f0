"""The tests of the kit as functions, to be run on a backend that may be a broken one."""

import inspect
from collections.abc import Callable, Iterator
from typing import cast

import pytest
from redis.exceptions import RedisError

from chathistory_core import ChatHistoryError
from chathistory_core.testing import BackendFactory, BackendTests, CrashTests, ExpiryTests, NetworkTests, ProcessTests
from chathistory_core.testing.abilities import AbilityTests
from chathistory_core.testing.machine import run_machine

from .stores import Fixtures

SUITES = (BackendTests, ExpiryTests, ProcessTests, CrashTests, NetworkTests)

FAILURES = (AssertionError, pytest.fail.Exception, ChatHistoryError, RedisError, ValueError, TimeoutError)
"""How a test fails that finds something; a TypeError, AttributeError or NameError would be a slip of the mutant's."""

_MODEL = "test_whatever_is_called_it_answers_as_the_model_says"


def run(test: str, fixtures: Fixtures) -> None:
    """Run the test of this name, in every variant, each on a store of its own."""
    suite = next(suite for suite in SUITES if hasattr(suite, test))
    method: Callable[..., None] = getattr(suite(), test)
    if test == _MODEL:
        run_machine(cast("BackendFactory", fixtures["make_backend"]()), shorten=False)
        return
    for variant in _variants(method):
        wanted = set(inspect.signature(method).parameters) - set(variant)
        method(**variant, **{name: fixtures[name]() for name in wanted})


def suite_of(test: str) -> str:
    """The class of the kit that has the test."""
    suite = next(suite for suite in SUITES if hasattr(suite, test))
    return str(getattr(suite, test).__qualname__).partition(".")[0]


def names(fixtures: Fixtures, *, shared: bool) -> Iterator[str]:
    """Every test that these fixtures are enough for; those of several processes only for a store that they share."""
    for suite in SUITES if shared else set(SUITES) - {ProcessTests, CrashTests}:
        for name in dir(suite):
            if name.startswith("test_") and (shared or name not in vars(AbilityTests)):
                method = getattr(suite, name)
                given = {"self"} | {each for variant in _variants(method) for each in variant}
                if set(inspect.signature(method).parameters) - given <= set(fixtures):
                    yield name


def _variants(method: Callable[..., None]) -> list[dict[str, object]]:
    """The keywords of each variant of a parametrized test; none for a plain one."""
    variants: list[dict[str, object]] = [{}]
    for mark in getattr(method, "pytestmark", ()):
        if mark.name == "parametrize":
            name, values = mark.args
            variants = [{**variant, name: value} for variant in variants for value in values]
    return variants
