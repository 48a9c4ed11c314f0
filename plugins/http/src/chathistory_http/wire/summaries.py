"""Heads of conversations as JSON and back."""

from collections.abc import Sequence

from chathistory_core import ConversationSummary
from chathistory_http.wire.json_text import text_of, value_in
from chathistory_http.wire.times import read_time, write_time


def write_summaries(summaries: Sequence[ConversationSummary]) -> bytes:
    """The body that carries heads of conversations."""
    values = [
        {
            "key": one.key,
            "revision": one.revision,
            "epoch": one.epoch,
            "recordCount": one.record_count,
            "createdAt": write_time(one.created_at),
            "updatedAt": write_time(one.updated_at),
        }
        for one in summaries
    ]
    return text_of({"summaries": values})


def read_summaries(body: bytes) -> list[ConversationSummary]:
    """The heads in an answer's body.

    Raises:
        ValueError: there is something else; the text of the error shows none of it.
    """
    match value_in(body):
        case {"summaries": list(values)}:
            return list(map(_read_summary, values))
    raise ValueError("no summaries")


def _read_summary(value: object) -> ConversationSummary:
    match value:
        case {
            "key": str(key),
            "revision": str(revision),
            "epoch": str(epoch),
            "recordCount": int(count),
            "createdAt": str(created),
            "updatedAt": str(updated),
        }:
            return ConversationSummary(key, revision, epoch, count, read_time(created), read_time(updated))
    raise ValueError("no summary")
