"""Whether what was stored is what comes back: two processes on one conversation, retries, equal turns."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from benchmarks.contestants import WorkerError
from benchmarks.entrants import Entrant, brief, say
from benchmarks.results import Correctness

TASKS = 32
TURNS = 10

_MESSAGES = 4


class Faults(NamedTuple):
    """What is wrong with what was stored."""

    lost: int
    doubled: int
    split: int
    reordered: int


def check(field: Sequence[Entrant], *, tasks: int = TASKS, turns: int = TURNS) -> Iterator[Correctness]:
    """Of each contestant, with its first durability, what became of the turns."""
    for one in field:
        if one.is_main:
            say(f"correctness: {one.contestant.name}")
            try:
                yield _checked(one, tasks, turns)
            except WorkerError as error:
                yield Correctness(contestant=one.contestant.name, remark=brief(error))


def _checked(one: Entrant, tasks: int, turns: int) -> Correctness:
    with ExitStack() as stack:
        alone = one.contestant.family == "memory"  # no other process sees what it keeps
        workers = [one.worker] if alone else [one.worker, one.another(stack)]
        reader = one.worker if alone else one.another(stack)
        for number, worker in enumerate(workers):
            worker.send("writers", conversation="shared", tasks=tasks, turns=turns, same=True, prefix=f"p{number}")
        told = [worker.receive() for worker in workers]
        failed = [name for answer in told for name in answer["failed"]]
        names = [
            f"p{number}-{task}-{turn}"
            for number in range(len(workers))
            for task in range(tasks)
            for turn in range(turns)
        ]
        found = faults(reader.ask("marks", conversation="shared")["marks"], set(names) - set(failed))
        errors = sum((Counter(answer["errors"]) for answer in told), Counter[str]())
        return Correctness(
            contestant=one.contestant.name,
            processes=len(workers),
            turns=len(names),
            errors=dict(errors),
            **found._asdict(),
            retried=_stored(one, "retried", ["r", "r"]),
            equal=_stored(one, "equal", ["1", "2"]),
        )


def _stored(one: Entrant, conversation: str, turn_ids: Iterable[str]) -> int:
    """How often the same turn is there that was stored under these ids; a library may refuse to store one again."""
    for turn_id in turn_ids:
        with suppress(WorkerError):
            one.ask("store", conversation=conversation, names=["same"], turn_id=turn_id)
    return len(one.ask("marks", conversation=conversation)["marks"]) // _MESSAGES


def faults(marks: Sequence[str], acknowledged: Iterable[str]) -> Faults:
    """What is wrong with the messages of these marks (`name#number`), where these turns were said to be stored.

    `lost` and `doubled` count messages, `split` turns that others stand amid, `reordered` turns whose messages are not
    in their order, or which stand before an earlier one of their task.
    """
    places: dict[str, list[int]] = {}
    for place, mark in enumerate(marks):
        places.setdefault(mark, []).append(place)
    acknowledged = list(acknowledged)
    lost = sum(f"{name}#{number}" not in places for name in acknowledged for number in range(1, _MESSAGES + 1))
    split = reordered = 0
    newest: dict[str, tuple[int, int]] = {}
    for name in sorted({mark.partition("#")[0] for mark in places}, key=_of_task):
        first = [places[mark][0] for number in range(1, _MESSAGES + 1) if (mark := f"{name}#{number}") in places]
        task, number = _of_task(name)
        split += max(first) - min(first) >= len(first)
        reordered += first != sorted(first) or first[0] < newest.get(task, (0, -1))[1]
        newest[task] = number, first[0]
    return Faults(lost, sum(len(found) - 1 for found in places.values()), split, reordered)


def _of_task(name: str) -> tuple[str, int]:
    task, _, number = name.rpartition("-")
    return task, int(number)
