"""What a write did, as JSON and back."""

from collections.abc import Mapping

from chathistory_core import Written
from chathistory_http.wire.json_text import Member, text_of, value_in


def written_members(written: Written) -> Mapping[str, Member]:
    """What a write did, as a JSON object."""
    return {
        "revision": written.revision,
        "epoch": written.epoch,
        "firstPosition": written.first_position,
        "replayed": written.replayed,
    }


def read_written(value: object) -> Written:
    """What a write did, in a JSON value.

    Raises:
        ValueError: there is something else; the text of the error shows none of it.
    """
    match value:
        case {"revision": str(revision), "epoch": str(epoch), "firstPosition": int(first), "replayed": bool(replayed)}:
            return Written(revision, epoch, first, replayed)
    raise ValueError("not what a write did")


def write_written(written: Written) -> bytes:
    """The body that says what a write did."""
    return text_of(written_members(written))


def read_written_body(body: bytes) -> Written:
    """What a write did, in an answer's body; `ValueError` as of `read_written`."""
    return read_written(value_in(body))


def write_cleared(*, cleared: bool) -> bytes:
    """The body that says whether there was something to clear."""
    return b'{"cleared":true}' if cleared else b'{"cleared":false}'


def read_cleared(body: bytes) -> bool:
    """Whether there was something to clear, in an answer's body; `ValueError` as of `read_written`."""
    match value_in(body):
        case {"cleared": bool(cleared)}:
            return cleared
    raise ValueError("not whether something was cleared")
