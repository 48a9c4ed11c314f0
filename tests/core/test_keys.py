import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core import InvalidKeyError, check_key, check_prefix, check_turn_id, prefix_end, scope
from chathistory_core.keys import escape, unescape

CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
EDGES = st.sampled_from("/%2Fa\x01\ud7ff\ue000\uffff\U0010ffff")
TEXTS = st.text(CHARACTERS | EDGES, max_size=8)
PARTS = st.text(CHARACTERS | EDGES, min_size=1, max_size=8)


@pytest.mark.parametrize(
    "key", ["k", " ", "/", "..", "*?[]\\%", "\U0001f600", "שלום", "\uffff\U0010ffff", "k" * 512, "é" * 256]
)
def test_a_key_is_any_text_that_is_short_enough(key: str) -> None:
    assert check_key(key) is key
    assert check_prefix(key) is key


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("", "a key has at least one character"),
        ("a\0", "key 'a\\x00' holds the character NUL: remove it"),
        ("\ud800", "key '\\ud800' holds a lone surrogate: no UTF-8 can carry it"),
        ("k" * 513, f"key '{'k' * 40}'… has 513 bytes in UTF-8, more than 512: hash it"),
        ("é" * 257, f"key '{'é' * 40}'… has 514 bytes in UTF-8, more than 512: hash it"),
        (b"k", "a key is text, not bytes"),
        (None, "a key is text, not NoneType"),
    ],
)
def test_what_is_no_key_is_refused_with_the_reason(key: str, text: str) -> None:
    with pytest.raises(InvalidKeyError) as caught:
        check_key(key)
    assert str(caught.value) == text
    assert caught.value.__cause__ is None


def test_a_turn_id_has_up_to_200_bytes() -> None:
    assert check_turn_id("é" * 100) == "é" * 100
    with pytest.raises(InvalidKeyError, match=r"turn id .* has 202 bytes in UTF-8, more than 200: hash it"):
        check_turn_id("é" * 101)
    with pytest.raises(InvalidKeyError, match="a turn id has at least one character"):
        check_turn_id("")


def test_a_prefix_may_be_empty() -> None:
    assert check_prefix("") == ""
    with pytest.raises(InvalidKeyError, match=r"prefix .* holds the character NUL"):
        check_prefix("a\0")


def test_a_scope_ends_each_part_with_the_separator() -> None:
    assert scope() == ""
    assert scope("tenant", "ann") == "tenant/ann/"
    assert scope("a/b", "50%") == "a%2Fb/50%25/"


@pytest.mark.parametrize("parts", [("",), ("a", ""), ("a\0",), ("\ud800",), ("k" * 512,), ("/" * 171,)])
def test_a_scope_that_begins_no_key_is_refused(parts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidKeyError):
        scope(*parts)


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_different_parts_make_different_scopes(one: list[str], other: list[str]) -> None:
    assert (scope(*one) == scope(*other)) == (one == other)


@given(st.lists(PARTS, max_size=4), st.lists(PARTS, max_size=4))
def test_a_scope_covers_those_that_begin_with_its_parts_and_no_other(one: list[str], other: list[str]) -> None:
    assert scope(*other).startswith(scope(*one)) == (other[: len(one)] == one)


@given(TEXTS)
def test_an_escaped_part_holds_no_separator_and_comes_back(part: str) -> None:
    assert "/" not in escape(part)
    assert unescape(escape(part)) == part


@given(TEXTS, TEXTS)
def test_a_range_to_the_end_of_a_prefix_holds_what_begins_with_it(prefix: str, key: str) -> None:
    for text in (key, prefix + key, prefix[:-1] + key):
        end = prefix_end(prefix)
        assert (prefix <= text and (end is None or text < end)) == text.startswith(prefix)
        assert end is None or end.encode()


@pytest.mark.parametrize(
    ("prefix", "end"),
    [
        ("", None),
        ("a", "b"),
        ("a\uffff", "a\U00010000"),
        ("a\ud7ff", "a\ue000"),
        ("a\U0010ffff", "b"),
        ("\U0010ffff\U0010ffff", None),
    ],
)
def test_the_end_of_a_prefix_is_the_next_text_that_can_be_stored(prefix: str, end: str | None) -> None:
    assert prefix_end(prefix) == end
