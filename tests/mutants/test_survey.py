"""The mutations are those of the rules, and what is written down of survivors is about code that is there."""

import ast
import os

import pytest

from .operators import mutations
from .survey import TARGETS, Survivor, all_mutations, explained, survey

CODE = '''
"""What is said of the module."""
MOST = 10

def page(records: "list[int]", limit: int | None, *, newest: bool = True) -> list[int]:
    """What is said of the function."""
    if limit is not None and limit < 0:
        raise ValueError(f"{limit} is negative", "and so not taken")
    found = sorted((each for each in records if each > 1), key=abs)
    return found[:limit] if newest else found
'''


def test_each_rule_changes_one_thing_and_words_stay() -> None:
    made = list(mutations(CODE))
    assert {(each.place, each.what) for each in made} >= {
        ("MOST", "10 → 11"),
        ("MOST", "10 → 9"),
        ("page", "True → False"),
        ("page", "if limit is not None and limit < 0: → if True:"),
        ("page", "limit is not None and limit < 0 → limit is not None or limit < 0"),
        ("page", "limit is not None and limit < 0 → limit < 0"),
        ("page", "limit is not None → limit is None"),
        ("page", "limit < 0 → limit <= 0"),
        ("page", "limit < 0 → limit >= 0"),
        ("page", "for … if each > 1 → for …"),
        (
            "page",
            "sorted((each for each in records if each > 1), key=abs) → sorted((each for each in records if each > 1))",
        ),
        ("page", ":limit → :"),
        ("page", "found[:limit] if newest else found → found"),
        ("page", "return found[:limit] if newest else found → return"),
    }
    whole = ast.unparse(ast.parse(CODE))
    assert len({each.code for each in made} - {whole}) == len(made)
    assert len({(each.place, each.what) for each in made}) == len(made), "two mutations have one name"
    assert not any("said of" in each.what or "taken?" in each.what for each in made)


@pytest.mark.parametrize("name", TARGETS)
def test_what_is_explained_is_a_mutation_of_the_code_as_it_is(name: str) -> None:
    there = {Survivor(file, each.place, each.what) for file, each in all_mutations(TARGETS[name])}
    assert len(there) > 200
    assert set(explained(name)) - there == set()
    assert all(len(reason) > 20 for reason in explained(name).values())


@pytest.mark.skipif("LONG" not in os.environ, reason="takes minutes; LONG in the environment asks for it")
@pytest.mark.parametrize("name", TARGETS)
def test_every_mutation_is_found_or_explained(name: str) -> None:
    found = survey(name, "", lambda _: None)
    assert {each.survivor for each in found if not each.test} == set(explained(name))
