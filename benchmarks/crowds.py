"""What many writers cost, and many conversations."""

from collections.abc import Iterator, Sequence
from functools import partial

from benchmarks.contestants import NotOfferedError
from benchmarks.entrants import Entrant, prepare, take_turns
from benchmarks.lengths import FILLED_WITHIN
from benchmarks.results import Measured

TASKS = 32
_TURNS = 5


def measure(field: Sequence[Entrant], conversations: int, rounds: int) -> Iterator[Measured]:
    """An append of 32 tasks at once, on a conversation each and on one; a list of all conversations."""
    for one in field:
        one.out = ""  # of what was too long
    yield from take_turns(field, "writers, a conversation each", 0, rounds, partial(_write, same=False))
    yield from take_turns(field, "writers, one conversation", 0, rounds, partial(_write, same=True))
    listing = [entrant for entrant in field if entrant.is_main and _lists(entrant)]
    prepare(listing, f"making {conversations:,} conversations", lambda one: _fill(one, conversations))
    yield from take_turns(
        listing, "list", conversations, rounds, lambda one, _: one.seconds("conversations", times=3, seconds=1)
    )


def _write(one: Entrant, number: int, *, same: bool) -> float:
    conversation = f"{'one' if same else 'each'} {number}"
    told = one.ask("writers", conversation=conversation, tasks=TASKS, turns=_TURNS, same=same)
    return float(told["ns"][0]) / 1e9 / float(told["appends"])


def _lists(one: Entrant) -> bool:
    try:
        one.ask("conversations", times=1)
    except NotOfferedError:
        return False
    return True


def _fill(one: Entrant, conversations: int) -> None:
    made = one.ask(
        "fill_many", patience=2 * FILLED_WITHIN, prefix="list ", conversations=conversations, seconds=FILLED_WITHIN
    )["conversations"]
    if made < conversations:
        one.out = f"making {made:,} of {conversations:,} conversations took {FILLED_WITHIN:.0f} s"
