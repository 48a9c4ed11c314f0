"""What a turn costs on conversations of growing length, and what else is asked of a conversation of one length."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import NamedTuple

from benchmarks.entrants import Entrant, prepare, take_turns
from benchmarks.results import Measured

TOO_SLOW = 5.0
"""Seconds of a turn from which on a contestant takes no further part."""

FILLED_WITHIN = 60.0
"""Seconds that filling may take: a conversation up to a length, or a store with conversations."""

LAST = 20

_SECONDS = 1.0
"""After which a sample is no longer gone on with."""


class Lengths(NamedTuple):
    """How many messages conversations have that are measured; a turn more or less."""

    short: Sequence[int] = (10, 100, 1_000)
    """Each round has a new conversation."""
    long: Sequence[int] = (10_000, 100_000)
    """All rounds have the same one, and only the first durability of a contestant takes part."""

    @property
    def read(self) -> int:
        """Of how many messages all are read."""
        return self.short[-1]

    @property
    def last_of(self) -> int:
        """Of how many messages the last are read, and how much memory it takes to read all."""
        return self.long[0]


QUICK = Lengths(short=(8, 40), long=(80, 160))


def measure(field: Sequence[Entrant], lengths: Lengths, rounds: int) -> Iterator[Measured]:
    """At each length the first turn of a process, its next ones, and appends; reads at the lengths for these."""
    prepare(field, "warming up", _warm_up)
    for length in lengths.short:
        yield from _turns(field, length, rounds, rounds_of_first=rounds, key=_key_of_round)
    yield from take_turns(field, "load", lengths.read, rounds, partial(_read, length=lengths.read))
    field = [one for one in field if one.contestant.is_ours or one.is_main]
    for length in lengths.long:
        prepare(field, f"filling conversations of {length:,}", partial(_fill, conversation=str(length), length=length))
        yield from _turns(field, length, rounds, rounds_of_first=1, key=_key)
        if length == lengths.last_of:
            yield from take_turns(field, "last", length, rounds, partial(_last, length=length))
            kept = [one for one in field if one.contestant.family != "memory"]
            yield from take_turns(kept, "memory", length, 1, partial(_memory, length=length))


def _warm_up(one: Entrant) -> None:
    one.ask("turn", conversation="warm", times=20)


def _key_of_round(length: int, number: int) -> str:
    return f"{length} {number}"


def _key(length: int, number: int) -> str:  # noqa: ARG001 - the same in all rounds
    return str(length)


def _turns(
    field: Sequence[Entrant], length: int, rounds: int, *, rounds_of_first: int, key: Callable[[int, int], str]
) -> Iterator[Measured]:
    def first(one: Entrant, number: int) -> float:
        if key is _key_of_round:
            _fill(one, key(length, number), length)
        return one.seconds("turn", conversation=key(length, number), times=1)

    def turn(one: Entrant, number: int) -> float:
        one.ask("turn", conversation=key(length, number), times=1)  # the turn before
        seconds = several("turn", one, number)
        if seconds > TOO_SLOW:
            one.out = f"a turn took {seconds:.0f} s at {length:,} messages"
        return seconds

    def several(do: str, one: Entrant, number: int) -> float:
        times = max(2, min(10, length // 40))
        return one.seconds(do, conversation=key(length, number), times=times, seconds=_SECONDS)

    yield from take_turns(field, "first turn", length, rounds_of_first, first)
    yield from take_turns(field, "turn", length, rounds, turn)
    yield from take_turns(field, "append", length, rounds, partial(several, "append"))


def _read(one: Entrant, number: int, *, length: int) -> float:
    return one.seconds("load", conversation=_key_of_round(length, number), times=3, seconds=_SECONDS)


def _last(one: Entrant, number: int, *, length: int) -> float:
    return one.seconds("last", conversation=_key(length, number), count=LAST, times=10, seconds=_SECONDS)


def _memory(one: Entrant, number: int, *, length: int) -> float:
    with ExitStack() as stack:
        worker = one.another(stack)
        worker.ask("load", conversation="small", times=1)  # makes what is made once
        return float(worker.ask("memory", conversation=_key(length, number))["bytes"])


def _fill(one: Entrant, conversation: str, length: int) -> None:
    filled = one.ask(
        "fill", patience=2 * FILLED_WITHIN, conversation=conversation, turns=length // 4, seconds=FILLED_WITHIN
    )
    if filled["turns"] < length // 4:
        one.out = f"filling took more than {FILLED_WITHIN:.0f} s, for {filled['turns'] * 4:,} of {length:,} messages"
