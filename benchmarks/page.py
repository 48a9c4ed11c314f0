"""The page and its plots, made of the figures of a run alone."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks import tables, words
from benchmarks.comparison import Comparison, is_ours
from benchmarks.correctness import TASKS, TURNS
from benchmarks.lengths import FILLED_WITHIN, TOO_SLOW
from benchmarks.plots import Line, plot
from benchmarks.results import Results
from benchmarks.tables import GOAL_AT, SLOWER

_PLOTTED = ("file", "redis")

_HEAD = """\
# Performance

What ours costs against the least that could do the same, and against what other libraries cost for it. Times differ
from machine to machine and from minute to minute, so what counts here are ratios of samples that were taken side by
side, in one run. `python3 dev.py benchmark` measures everything anew and writes this page;
`python -m benchmarks --help` says how to measure a part.

## How it is measured

- A turn is four messages: a question of 200 bytes, a tool call of 150 bytes of JSON, its result of 1 KB of JSON and an
  answer of 800 bytes, with characters of one to three bytes. All get the same turns, as message objects of their own,
  which are made before the clock starts.
- Each library runs in a process and an environment of its own, with a folder or a server of its own, used as its
  documentation shows: `benchmarks/peers/` names the pages. Each process measures itself, its garbage collected before.
- All take turns in each round, in the other order every second round. A ratio is the median of the ratios of the
  rounds; beside it stands between what half of them lie.
- Durability is the same on both sides: a file that is synchronised on every commit is compared with ours with
  `synchronous=FULL`, another with ours with `NORMAL`. The servers keep everything in memory, as they do by default.
- What a library does not offer is not emulated: a dash. One that takes more than {too_slow:.0f} s for a turn, or more
  than {filled:.0f} s to be filled, takes no further part in longer ones; it is named below the table.
- Ours stores the tool's result as JSON values and most others as text, which costs less.
- `benchmarks/worker.py` is what all of them do, `benchmarks/ours.py` is ours, `benchmarks/floors/` the least.

{machine}
"""

_FLOORS = """
## Against the least that could do it

The least is written by hand and knows nothing of retries, conflicts, expiry or other writers. A ratio above its goal
is bold.

"""

_REST = """
Where a goal is not reached, profiles on the same machine show what the rest consists of:

- *SQLite, 32 tasks*: half of an append, some 50 µs, is the encoding of its four messages on the event loop, which the
  thread cannot share. Of the thread's half the records take 8 µs, turn, head and digest 11, other Python 8, and the
  commit 24 to 27, for 32 conversations are nearly four pages of the log each. A bare commit with `FULL` is
  synchronised in some 100 µs here: there is less to share than on slower disks.
"""

_TURNS = """
## A turn of an agent

What an agent asks of a store for one turn: the whole conversation for the model, then the turn's four messages are
stored. The process had the turn before too, as in a service: ours remembers what it has read and asks only for what is
new. Ours is a time, the others are multiples of it: of the time of ours that has the same durability. The goal is that
each takes at least {slower} times as long at {at:,} messages; one that does not is bold.

What is remembered has a bound, `max_remembered_bytes`: 64 MiB, some 14,000 of these messages, of all conversations
together. A conversation that is longer is read whole in each turn, unless the bound is higher, as it is in one of the
lines, or a window says how much the model is shown: then only that is read, which takes what *last 20* takes below.
"""

_FIRST_TURNS = """
## The first turn of a process

The same of a conversation that the process has not read before. A star stands for reads that validate nothing: they
give plain dictionaries, or the very objects that were stored.
"""

_APPENDS = """
## Storing a turn

The turn's messages alone, behind what is stored.
"""

_OTHERS = """
## Reading, many writers, many conversations

*Read*: all messages, for the first time. *Last*: the newest alone. *Memory*: by how much a new process grows at most
while it reads them all. *Writers*: an append of {tasks} tasks that append at once. *List*: all conversations.
"""

_NORMAL = """
## Without waiting for the disk

Of those that can be told so.
"""

_NOT_AHEAD = """
## Where ours is not ahead

Behind each is what it took, as a multiple of ours. A library with a star parses JSON and validates nothing, so that a
first read costs it less than validation alone. Of a first read of ours of 10,000 messages at least a fifth, of 100,000
more than half is Python's garbage collector, which looks again and again through all that was made so far. A turn of a
conversation that is too long to be remembered is such a read.

"""

_AGENTS = """
## Inside Microsoft Agent Framework

A turn of the framework's own agent, whose model answers at once, with `StoredHistoryProvider` and with the framework's
providers: what the framework itself takes is in both. Those are told of no failure, and of a stream that is closed they
store half an answer as a whole one where telemetry is on, as it is by default. A ratio above its goal is bold.

"""

_AGENTS_REST = """
Of a turn of ours at 10 messages with SQLite, profiles say, the framework itself takes a third, and the two ways to the
store another. 8 % is the framework's pipeline of middleware, by which ours sees failures and streams that are closed;
10 % the conversion of messages, which are stored as the framework wrote them; 6 % copies of its objects, so that nobody
changes what is remembered; 2 % a task of its own, in which a save survives that the agent is cancelled.
"""

_CORRECTNESS = """
## Whether everything is there

Two processes (in memory, one) with {tasks} tasks each append {turns} turns a task to one conversation. Counted are
messages that are not there though nothing was raised, and messages that are there twice; turns that others stand amid,
and turns out of order; appends that raised. Then one turn is stored twice, as after a lost answer, and two equal turns
are stored: how many are there. Where a caller can name its turns, these are 1 and 2.

"""


def write(results: Results, folder: Path) -> None:
    """Write page and plots into the folder."""
    for name, text in made(results).items():
        (folder / name).write_text(text, "utf-8", newline="\n")


def made(results: Results) -> Mapping[str, str]:
    """The page and its plots, by the names of their files."""
    comparison = Comparison(results)
    plots = {_file(family): plot(lines) for family in _PLOTTED if (lines := _lines(comparison, family))}
    machine = "Measured on " + ", ".join(results.machine.values()) + "."
    versions = {name: each for told in (results.versions, *_told(results)) for name, each in told.items()}
    parts = [
        _HEAD.format(too_slow=TOO_SLOW, filled=FILLED_WITHIN, machine=machine),
        _FLOORS + tables.floors(results.floors) + _REST,
        _TURNS.format(slower=SLOWER, at=GOAL_AT),
        *(f"{tables.by_length(comparison, 'turn', family)}{_shown(family, plots)}" for family in tables.FAMILIES),
        _FIRST_TURNS,
        *(tables.by_length(comparison, "first turn", family) for family in tables.FAMILIES),
        _APPENDS,
        *(tables.by_length(comparison, "append", family) for family in tables.FAMILIES),
        _OTHERS.format(tasks=TASKS),
        *(tables.operations(comparison, family) for family in tables.FAMILIES),
        _NORMAL + tables.other_durability(comparison),
        _NOT_AHEAD + tables.not_ahead(comparison),
        _AGENTS + tables.floors(results.agents) + _AGENTS_REST,
        _CORRECTNESS.format(tasks=TASKS, turns=TURNS) + tables.correctness(results.correctness),
        f"\n## Versions\n\n{', '.join(f'{name} {version}' for name, version in sorted(versions.items()))}.\n",
    ]
    return {"performance.md": "".join(parts), **plots}


def _told(results: Results) -> Iterator[Mapping[str, str]]:
    return (one.versions for one in results.field)


def _file(family: str) -> str:
    return f"performance-{family}.svg"


def _shown(family: str, plots: Mapping[str, str]) -> str:
    return f"\n![What a turn takes, against the messages stored]({_file(family)})\n" if _file(family) in plots else ""


def _lines(comparison: Comparison, family: str) -> Sequence[Line]:
    found = [(one, comparison.points(one, "turn")) for one in comparison.field(family)]
    return [Line(words.name(one).replace("\\*", "*"), points, is_ours(one)) for one, points in found if points]
