import hashlib
import string
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from chathistory_core import (
    NO_REVISION,
    Conversation,
    Limits,
    Operation,
    Record,
    StoredRecord,
    new_revision,
    new_turn_id,
    turn_digest,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
STORED = StoredRecord(b"canary", "text+zstd", 7, "t", NOW)

RECORDS = st.lists(
    st.builds(Record, st.binary(max_size=4), st.sampled_from(["a", "b", "ab"]), st.none() | st.binary(max_size=4)),
    max_size=4,
)


def test_a_digest_is_blake2b_over_parts_behind_their_lengths() -> None:
    def length(number: int) -> bytes:
        return bytes(7) + bytes([number])

    text = length(6) + b"append" + length(4) + b"text" + length(2) + b"hi" + length(4) + b"data" + length(5) + b"print"
    records = [Record(b"hi", "text+zstd+aes.k1"), Record(b"cipher", "data", b"print")]
    assert turn_digest("append", records) == hashlib.blake2b(text, digest_size=16).digest()


def test_digests_are_the_same_in_every_version() -> None:
    # `b2sum -l 128` of the parts
    assert turn_digest("append", [Record(b"hello", "chat-message")]).hex() == "b778f5fce5285d4176b163b51c19b453"
    assert turn_digest("replace", [Record(b"hello", "chat-message")]).hex() == "a25ec9b59948cdc602ce2835b1316bd7"
    assert turn_digest("replace", []).hex() == "fa3e5fd0a84f87483e481790c8d48b14"
    assert (
        turn_digest("append", [Record(b"\0\xff", "chat-message+zstd"), Record(b"", "text", b"")]).hex()
        == "f333d07efb99763eb65cd31ca6374a2b"
    )


@given(RECORDS, RECORDS)
def test_digests_differ_where_base_formats_or_contents_do(one: list[Record], other: list[Record]) -> None:
    def told(records: list[Record]) -> list[tuple[str, bytes]]:
        return [(each.format, each.payload if each.fingerprint is None else each.fingerprint) for each in records]

    assert (turn_digest("append", one) == turn_digest("append", other)) == (told(one) == told(other))
    assert turn_digest("append", one) != turn_digest("replace", one)


@given(RECORDS)
def test_encodings_make_no_difference_to_a_digest(records: list[Record]) -> None:
    encoded: list[Record] = [each._replace(format=f"{each.format}+aes.k{at}") for at, each in enumerate(records)]
    operation: Operation = "append"
    assert turn_digest(operation, encoded) == turn_digest(operation, records)


def test_tokens_are_128_random_bits_of_text() -> None:
    tokens = [make() for make in (new_revision, new_turn_id) for _ in range(1_000)]
    assert len(set(tokens)) == 2_000
    assert all(len(token) == 32 and set(token) <= set(string.hexdigits.lower()) for token in tokens)


def test_a_conversation_nobody_began_has_no_revision_epoch_or_times() -> None:
    unknown = Conversation("k")
    assert unknown.revision == NO_REVISION == ""
    assert (unknown.epoch, unknown.record_count, unknown.created_at, unknown.updated_at) == ("", 0, None, None)
    assert unknown.records == ()


def test_a_stored_record_gives_the_record_to_write_again() -> None:
    assert STORED.record == Record(b"canary", "text+zstd")


def test_no_repr_shows_content() -> None:
    assert repr(Record(b"canary", "text", b"canary")) == "<Record 'text', 6 bytes>"
    assert repr(STORED) == "<StoredRecord 7, 'text+zstd', 6 bytes>"
    assert repr(Conversation("k", record_count=3, records=(STORED,))) == "<Conversation 'k', 1 of 3 records>"
    assert "canary" not in f"{[STORED, STORED.record]} {STORED!s} {(STORED,)!r}"


def test_limits_are_at_least_those_of_every_backend() -> None:
    assert Limits() == (100_000, 64 * 2**20, 16 * 2**20, 1_000)
