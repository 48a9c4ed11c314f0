"""What follows from a conversation that grows is what follows from it when it is read anew."""

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core import ChatMessage, Conversation, StoredRecord
from chathistory_core.conversations import Loaded
from chathistory_core.saving.kept import kept_among, kept_id

WHEN = datetime(2026, 1, 1, tzinfo=UTC)
TURNS = ["a", "b", kept_id("a", 1), kept_id("b", 2)]

stretches = st.lists(st.tuples(st.sampled_from(TURNS), st.integers(0, 3)), max_size=8)


def loaded(stretch: list[tuple[str, int]], *, first: int = 1) -> Loaded:
    records = tuple(
        StoredRecord(b"x", "f", position, turn_id, WHEN) for position, (turn_id, _) in enumerate(stretch, first)
    )
    groups = [tuple(ChatMessage.user("Hi") for _ in range(count)) for _, count in stretch]
    return Loaded(Conversation("k", f"r{first}", "e", len(stretch), WHEN, WHEN, records), groups)


def known_of(one: Loaded) -> list[object]:
    return [
        [id(message) for message in one.messages],
        list(one.places),
        one.among(kept_among),
        [one.turn(turn_id) for turn_id in (*TURNS, "c")],
    ]


@given(stretches, stretches, st.booleans())
def test_what_was_known_of_the_beginning_is_extended(
    begun: list[tuple[str, int]], added: list[tuple[str, int]], looked_at: bool
) -> None:
    before, newer = loaded(begun), loaded(added, first=len(begun) + 1)
    if looked_at:
        known_of(before)
    whole = before.followed_by(newer.conversation, newer.groups)
    records = (*before.conversation.records, *newer.conversation.records)
    assert whole.conversation == newer.conversation._replace(records=records)
    assert known_of(whole) == known_of(Loaded(whole.conversation, [*before.groups, *newer.groups]))


def test_of_a_conversation_that_grows_only_the_new_records_are_looked_at() -> None:
    looked_at = []

    def positions(records: Sequence[StoredRecord]) -> frozenset[int]:
        looked_at.append([record.position for record in records])
        return frozenset(looked_at[-1])

    one = loaded([("a", 1), ("a", 1)])
    assert one.among(positions) == one.among(positions) == {1, 2}
    newer = loaded([("b", 1)], first=3)
    assert one.followed_by(newer.conversation, newer.groups).among(positions) == {1, 2, 3}
    assert looked_at == [[1, 2], [3]]


@pytest.mark.parametrize("turn_id", ["b", "c"])
def test_a_turn_stands_where_its_last_records_stand(turn_id: str) -> None:
    one = loaded([("b", 1), ("a", 1), ("b", 1), ("b", 0), ("a", 1)])
    assert one.turn(turn_id) == {"b": range(2, 4)}.get(turn_id)


def test_a_repr_shows_no_message() -> None:
    assert "Hi" not in repr(loaded([("a", 1)]))
