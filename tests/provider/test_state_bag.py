import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from chathistory_core.messages import Json
from chathistory_core.session import StateBag


def test_a_value_is_read_back_and_overwritten() -> None:
    bag = StateBag()
    bag.set("k", "one")
    assert bag.get("k", str) == "one"
    bag.set("k", {"n": [1, 2]})
    assert bag.get("k", dict) == {"n": [1, 2]}
    assert len(bag) == 1


@pytest.mark.parametrize("key", ["", " ", "\t\n"])
def test_a_blank_key_is_refused_by_every_method(key: str) -> None:
    bag = StateBag()
    for use in (
        lambda: bag.get(key),
        lambda: bag.set(key, 1),
        lambda: bag.set_default(key, lambda: 1),
        lambda: bag.remove(key),
        lambda: key in bag,
        lambda: StateBag({key: 1}),
    ):
        with pytest.raises(ValueError, match="blank"):
            use()


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="NoneType"):
        StateBag().get(cast("str", None))


def test_what_is_missing_reads_as_none() -> None:
    bag = StateBag()
    assert bag.get("k") is None
    assert bag.get("k", dict) is None
    assert "k" not in bag


def test_reading_twice_gives_the_same_object() -> None:
    bag = StateBag({"k": {"a": 1}})
    assert bag.get("k") is bag.get("k")


def test_null_is_a_value_that_counts_and_can_be_overwritten_both_ways() -> None:
    bag = StateBag()
    bag.set("k", None)
    assert len(bag) == 1
    assert "k" in bag
    assert bag.get("k", str) is None
    assert json.dumps(bag.to_json()) == '{"k": null}'
    bag.set("k", "text")
    assert bag.get("k", str) == "text"
    bag.set("k", None)
    assert bag.get("k") is None


def test_removing_says_whether_there_was_something_and_leaves_the_others() -> None:
    bag = StateBag({"a": 1, "b": None})
    assert bag.remove("a")
    assert not bag.remove("a")
    assert bag.remove("b")
    bag.set("a", 2)
    assert bag.to_json() == {"a": 2}


def test_its_json_is_an_object_of_the_values() -> None:
    assert StateBag().to_json() == {}
    values: dict[str, Json] = {"s": "é", "o": {"list": [1, 2.5, None, True]}}
    text = json.dumps(StateBag(values).to_json())
    assert json.loads(text) == values
    assert StateBag(json.loads(text)).to_json() == values


def test_a_value_of_another_kind_is_an_error_that_names_both() -> None:
    for bag in (StateBag({"k": "text"}), StateBag(json.loads('{"k": "text"}'))):
        with pytest.raises(TypeError, match="str, not dict"):
            bag.get("k", dict)


def test_an_integer_reads_as_a_float_and_a_boolean_as_no_number() -> None:
    bag = StateBag({"one": 1, "yes": True})
    assert type(bag.get("one", float)) is float
    for kind in (int, float):
        with pytest.raises(TypeError, match="bool"):
            bag.get("yes", kind)
    assert bag.get("yes", bool) is True


@pytest.mark.parametrize("value", [object(), {1: 2}, {"a": {1, 2}}, float("nan"), float("inf"), "\ud800", b"x"])
def test_what_is_no_json_is_refused_when_it_is_set(value: object) -> None:
    bag = StateBag({"k": "before"})
    with pytest.raises(ValueError, match="no JSON value"):
        bag.set("k", cast("Json", value))
    with pytest.raises(ValueError, match="no JSON value"):
        bag.set_default("other", lambda: cast("Json", value))
    assert bag.to_json() == {"k": "before"}


def test_a_refusal_shows_nothing_of_the_value() -> None:
    with pytest.raises(ValueError, match="no JSON value") as caught:
        StateBag().set("k", cast("Json", {"canary-42": object()}))
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert "canary" not in repr(StateBag({"k": "canary-42"}))


def test_nobodys_change_of_a_value_shows_in_it() -> None:
    given: dict[str, Json] = {"list": [1]}
    bag = StateBag()
    bag.set("k", given)
    cast("list[int]", given["list"]).append(2)
    read = bag.get("k", dict)
    assert read == {"list": [1]}
    with pytest.raises(TypeError):
        cast("dict[str, Json]", read)["list"] = []
    bag.to_json().clear()
    assert len(bag) == 1


def test_a_default_is_made_once_and_only_where_there_is_none() -> None:
    bag = StateBag({"null": None, "there": "kept"})
    assert bag.set_default("there", lambda: "new") == "kept"
    assert bag.set_default("null", lambda: "new") == "new"
    assert bag.set_default("absent", lambda: "new") == "new"
    assert bag.set_default("absent", lambda: "newer") == "new"


def test_threads_that_ask_for_a_default_at_once_get_one() -> None:
    bag = StateBag()
    made: list[int] = []

    def make() -> int:
        made.append(1)
        return len(made)

    with ThreadPoolExecutor(16) as pool:
        answers = set(pool.map(lambda _: bag.set_default("k", make), range(200)))
    assert answers == {1}
    assert made == [1]


def test_writers_and_readers_in_many_threads_stay_consistent() -> None:
    bag = StateBag()

    def work(number: int) -> None:
        bag.set(f"k{number}", {"n": number})
        assert bag.get(f"k{number}", dict) == {"n": number}
        assert json.loads(json.dumps(bag.to_json()))[f"k{number}"] == {"n": number}

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(100)))
    assert len(bag) == 100


def test_a_bag_can_be_copied_and_pickled() -> None:
    bag = StateBag({"k": {"a": [1]}})
    for twin in (copy.deepcopy(bag), pickle.loads(pickle.dumps(bag))):
        twin.set("k", 1)
        assert bag.to_json() == {"k": {"a": [1]}}
