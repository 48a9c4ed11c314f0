"""Values that nobody can change."""

import copy
import json
import math
import pickle
from collections import OrderedDict
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest

from chathistory_core.messages import FrozenDict, FrozenList, SourceAttribution, freeze

VALUE = {"b": [1, 2.5, "x", None, True, {"c": []}], "a": {}}


def frozen() -> Any:
    return freeze(VALUE)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.__setitem__("x", 1),
        lambda value: value.__delitem__("a"),
        lambda value: value.update(x=1),
        lambda value: value.pop("a"),
        lambda value: value.popitem(),
        lambda value: value.setdefault("x", 1),
        lambda value: value.clear(),
        lambda value: value.__ior__({"x": 1}),
        lambda value: value["a"].update(x=1),
        lambda value: value["b"].append(1),
        lambda value: value["b"].extend([1]),
        lambda value: value["b"].insert(0, 1),
        lambda value: value["b"].pop(),
        lambda value: value["b"].remove(1),
        lambda value: value["b"].clear(),
        lambda value: value["b"].sort(),
        lambda value: value["b"].reverse(),
        lambda value: value["b"].__setitem__(0, 1),
        lambda value: value["b"].__delitem__(0),
        lambda value: value["b"].__iadd__([1]),
        lambda value: value["b"].__imul__(2),
        lambda value: value["b"][5]["c"].append(1),
    ],
)
def test_no_change_of_a_frozen_value_gets_through_at_any_depth(change: Any) -> None:
    value = frozen()
    with pytest.raises(TypeError, match="model_copy"):
        change(value)
    assert value == VALUE


def test_freezing_takes_a_copy_that_the_given_value_does_not_reach() -> None:
    given: dict[str, Any] = {"a": [1]}
    value: Any = freeze(given)
    given["a"].append(2)
    assert value == {"a": [1]}


def test_what_is_frozen_already_is_itself() -> None:
    value = frozen()
    assert id(freeze(value)) == id(value)
    assert copy.copy(value) is value
    assert copy.deepcopy(value) is value
    assert copy.deepcopy(value["b"]) is value["b"]


def test_json_writes_a_frozen_value_as_the_given_one() -> None:
    assert json.dumps(frozen()) == json.dumps(VALUE)


def test_a_pickled_value_comes_back_equal_and_frozen() -> None:
    value: Any = pickle.loads(pickle.dumps(frozen()))
    assert value == VALUE
    assert type(value) is FrozenDict
    assert type(value["b"]) is FrozenList


def test_frozen_values_equal_and_hash_as_one_value() -> None:
    assert hash(frozen()) == hash(frozen())
    assert hash(frozen()["b"]) == hash(frozen()["b"])


class Colour(StrEnum):
    RED = "red"


class Number(IntEnum):
    ONE = 1


def test_relatives_of_json_types_become_those() -> None:
    value: Any = freeze({Colour.RED: [Colour.RED, Number.ONE, (1, 2)], "m": MappingProxyType({"k": OrderedDict(x=1)})})
    assert value == {"red": ["red", 1, [1, 2]], "m": {"k": {"x": 1}}}
    assert [type(item) for item in value["red"]] == [str, int, FrozenList]
    assert [type(key) for key in value] == [str, str]
    assert type(value["m"]["k"]) is FrozenDict


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (datetime(2026, 1, 1), "datetime is no JSON value: convert it first"),  # noqa: DTZ001 - refused whatever its zone
        ({"a": b"x"}, "bytes is no JSON value: convert it first"),
        ([{1, 2}], "set is no JSON value: convert it first"),
        (object(), "object is no JSON value: convert it first"),
        ({1: 2}, "a key of int is no JSON: keys are text"),
        ([SourceAttribution()], "SourceAttribution is no JSON value: convert it first"),
    ],
)
def test_what_is_no_json_is_refused_by_its_type(value: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        freeze(value)


def test_a_value_nested_too_deep_is_a_value_error() -> None:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    with pytest.raises(ValueError, match="nested too deep"):
        freeze(value)


def test_numbers_without_a_json_form_are_kept_until_someone_writes_them() -> None:
    value: Any = freeze([math.inf])
    assert value == [math.inf]
