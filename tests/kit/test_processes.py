"""Random calls of two processes find what goes wrong between them."""

from functools import partial
from importlib import import_module
from pathlib import Path

import pytest

from chathistory_core.testing import ProcessTests


@pytest.mark.parametrize("broken", ["ReadsThenReplaces", "ChecksThenWrites", "ReadsACopy"])
def test_random_calls_of_two_processes_find_a_backend_that(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)  # the other processes get the path too
    backend = getattr(import_module("broken_stores"), broken)
    with pytest.raises(AssertionError, match="no order of these calls"):
        ProcessTests().test_the_answers_of_concurrent_calls_of_two_processes_have_an_order(
            partial(backend.from_path, tmp_path / "history.db")
        )
