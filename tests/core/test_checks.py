import traceback
from typing import cast

import pytest

from chathistory_core import InvalidKeyError, Limits, Order, Record, TooLargeError, check_page, check_read, check_write

LIMITS = Limits(max_records=3, max_bytes=20, max_record_bytes=10)
CANARY = b"canary-01"


def test_a_read_may_have_a_limit_and_one_cursor() -> None:
    check_read("k", None, None, None)
    check_read("k", 0, 0, None)
    check_read("k", 2**70, None, 2**70)


@pytest.mark.parametrize(
    ("limit", "before", "after", "text"),
    [
        (-1, None, None, "`limit` is -1: it must not be negative"),
        (None, -2, None, "`before` is -2: it must not be negative"),
        (None, None, -3, "`after` is -3: it must not be negative"),
        (None, 0, 0, "`before` and `after` exclude each other: give one"),
    ],
)
def test_a_read_that_makes_no_sense_is_refused(
    limit: int | None, before: int | None, after: int | None, text: str
) -> None:
    with pytest.raises(ValueError, match=r"must not be negative|exclude each other") as caught:
        check_read("k", limit, before, after)
    assert str(caught.value) == text


def test_a_number_is_an_integer() -> None:
    with pytest.raises(TypeError, match="`limit` is float: it must be an integer"):
        check_read("k", cast("int", 1.5), None, None)
    with pytest.raises(TypeError, match="`after` is str: it must be an integer"):
        check_read("k", None, None, cast("int", "1"))
    with pytest.raises(TypeError, match="`limit` is float: it must be an integer"):
        check_page("", cast("int", float("inf")), "key")


def test_a_read_needs_a_key() -> None:
    with pytest.raises(InvalidKeyError):
        check_read("", None, None, None)


def test_a_write_is_given_back_in_a_tuple_of_its_own() -> None:
    batch = [Record(b"a", "text"), Record(b"b", "text")]
    assert check_write("append", "k", batch, "t", LIMITS) == tuple(batch)
    assert check_write("append", "k", iter(batch), "t", LIMITS) == tuple(batch)
    assert check_write("replace", "k", [], "t", LIMITS) == ()


def test_a_write_up_to_the_limits_passes() -> None:
    check_write("append", "k", [Record(bytes(10), "text")] * 2, "t", LIMITS)
    check_write("append", "k", [Record(b"", "text")] * 3, "t", LIMITS)


@pytest.mark.parametrize(
    ("records", "error", "text"),
    [
        ([], ValueError, "nothing to append to conversation 'k': skip the call"),
        (
            [Record(CANARY, "text")] * 4,
            TooLargeError,
            "append to conversation 'k' has 4 records, more than 3: write them in several turns",
        ),
        (
            [Record(b"a", "text"), Record(CANARY * 2, "text")],
            TooLargeError,
            (
                "record 1 for conversation 'k' has 18 bytes, more than 10: "
                "keep large content elsewhere and store its address"
            ),
        ),
        (
            [Record(CANARY, "text")] * 3,
            TooLargeError,
            "append to conversation 'k' has 27 bytes, more than 20: write the records in several turns",
        ),
        (
            [Record(cast("bytes", "canary-01"), "text")],
            TypeError,
            "record 0 has a payload of str: it must be bytes",
        ),
        (
            [Record(CANARY, "text"), cast("Record", (CANARY, "text"))],
            TypeError,
            "record 1 is tuple: it must be a Record",
        ),
        (
            [Record(b"a", "text", cast("bytes", "canary-01"))],
            TypeError,
            "record 0 has a fingerprint of str: it must be bytes",
        ),
    ],
)
def test_a_write_that_no_backend_takes_is_refused_without_showing_it(
    records: list[Record], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as caught:
        check_write("append", "k", records, "t", LIMITS)
    assert type(caught.value) is error
    assert str(caught.value) == text
    assert CANARY.decode() not in "".join(traceback.format_exception(caught.value))


def test_a_write_needs_a_key_and_a_turn_id() -> None:
    with pytest.raises(InvalidKeyError, match="a key has"):
        check_write("replace", "", [], "t", LIMITS)
    with pytest.raises(InvalidKeyError, match="a turn id has"):
        check_write("replace", "k", [], "", LIMITS)


def test_a_page_has_a_prefix_a_limit_and_an_order() -> None:
    check_page("", None, "key")
    check_page("a", 0, "recent")
    with pytest.raises(InvalidKeyError, match="prefix"):
        check_page("\0", None, "key")
    with pytest.raises(ValueError, match="`limit` is -1: it must not be negative"):
        check_page("", -1, "key")
    with pytest.raises(ValueError, match="order is 'key' or 'recent', not 'oldest'"):
        check_page("", None, cast("Order", "oldest"))


@pytest.mark.parametrize("name", ["chat-message", "openai-chat+zstd", "a+b.K_2-x+c", "chathistory-note"])
def test_a_format_is_a_name_and_encodings(name: str) -> None:
    check_write("append", "k", [Record(b"", name)], "t", Limits())


@pytest.mark.parametrize("name", ["", "Chat", "a b", "a+", "+a", "a.k", "a+b.", "a+b.k.l", "\ud800", "a\n", "é"])
def test_any_other_format_is_refused_by_name(name: str) -> None:
    with pytest.raises(ValueError, match="record 0 for conversation 'k' has the format"):
        check_write("append", "k", [Record(b"", name)], "t", Limits())
