"""What runs in a contestant's process: reads requests as lines of JSON, times what they ask for, answers in kind.

The script of a contestant holds its adapters and ends with `serve({"name": Adapter, …})`; the name to be served is its
argument. It runs in an environment of its own, so this needs the standard library alone.
"""

import asyncio
import gc
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from benchmarks.turns import make_turn, make_turns

_FILLED_AT_ONCE = 250
"""Turns that `fill` gives to one append."""

_MARK = re.compile(r"<([\w-]+#[1-4])>")


class NotOffered(Exception):  # noqa: N818 - no error: the library has no such thing
    """The library does not have this: it is not emulated."""


class Place(NamedTuple):
    """Where a contestant keeps its conversations; nobody else does there."""

    folder: Path
    """Empty, on a disk."""
    url: str
    """Of an empty Redis server, `redis://127.0.0.1:port/0`; empty for those that need none."""
    durability: str
    """`FULL` or `NORMAL`: what a file's writes are asked for, as SQLite's `synchronous` names it."""


class Adapter:
    """A library as its documentation says it is used; overridden, each method is a few lines.

    What is not timed: `native`, `fill`, `text`, `open`, `close`.
    """

    distributions: ClassVar[Sequence[str]] = ()
    """Whose versions are told."""
    returns: ClassVar[str] = "message objects"
    """What `load` gives: `message objects`, where they were validated or made anew, or `plain dicts`."""

    async def open(self, place: Place) -> str:
        """Opens the library; returns the durability that it has: `FULL`, `NORMAL`, or in a few words another."""
        raise NotImplementedError

    async def close(self) -> None:
        """Closes what `open` has opened."""

    def native(self, turn: Any) -> Sequence[Any]:
        """The turn's four messages as the library's own objects."""
        raise NotImplementedError

    async def append(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:
        """Stores native messages behind the others; where the library can name a write, by `turn_id`."""
        raise NotImplementedError

    async def load(self, conversation: str) -> Sequence[Any]:
        """The whole conversation, oldest first, as it would be given to a model."""
        raise NotImplementedError

    async def turn(self, conversation: str, messages: Sequence[Any], turn_id: str) -> None:
        """What a turn of an agent asks of the store: the conversation for the model, then the turn's messages."""
        await self.load(conversation)
        await self.append(conversation, messages, turn_id)

    async def last(self, conversation: str, count: int) -> Sequence[Any]:  # noqa: ARG002 - for those who override
        """The newest messages, oldest first."""
        raise NotOffered

    async def conversations(self) -> Sequence[Any]:
        """All conversations that are stored."""
        raise NotOffered

    def text(self, message: Any) -> str:
        """Anything that holds the text of the native message, of its arguments or of its result."""
        return str(message)


class _Worker:
    """Answers the requests for one adapter: each method is one, its parameters are those of the request."""

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._made = 0

    async def open(self, *, folder: str, url: str = "", durability: str = "FULL") -> Mapping[str, object]:
        has = await self._adapter.open(Place(Path(folder), url, durability))
        versions = {name: version(name) for name in self._adapter.distributions}
        return {"durability": has, "returns": self._adapter.returns, "versions": versions}

    async def close(self) -> Mapping[str, object]:
        await self._adapter.close()
        return {}

    async def fill(self, *, conversation: str, turns: int, seconds: float = 1e9) -> Mapping[str, object]:
        """Appends as many turns, many at once; what it had time for."""
        end = time.monotonic() + seconds
        stored = 0
        while stored < turns and time.monotonic() < end:
            several = list(self._native(min(_FILLED_AT_ONCE, turns - stored)))
            messages = [message for _, turn in several for message in turn]
            await self._adapter.append(conversation, messages, several[0][0])
            stored += len(several)
        return {"turns": stored}

    async def fill_many(self, *, prefix: str, conversations: int, seconds: float = 1e9) -> Mapping[str, object]:
        """Appends one turn to each of many conversations; what it had time for."""
        end = time.monotonic() + seconds
        for number in range(conversations):
            if time.monotonic() > end:
                return {"conversations": number}
            ((turn_id, messages),) = self._native(1)
            await self._adapter.append(f"{prefix}{number}", messages, turn_id)
        return {"conversations": conversations}

    async def append(self, *, conversation: str, times: int, seconds: float = 1e9) -> Mapping[str, object]:
        return await self._timed_turns(self._adapter.append, conversation, times, seconds)

    async def turn(self, *, conversation: str, times: int, seconds: float = 1e9) -> Mapping[str, object]:
        return await self._timed_turns(self._adapter.turn, conversation, times, seconds)

    async def load(self, *, conversation: str, times: int, seconds: float = 1e9) -> Mapping[str, object]:
        return await _timed([lambda: self._adapter.load(conversation)] * times, seconds)

    async def last(self, *, conversation: str, count: int, times: int, seconds: float = 1e9) -> Mapping[str, object]:
        return await _timed([lambda: self._adapter.last(conversation, count)] * times, seconds)

    async def conversations(self, *, times: int, seconds: float = 1e9) -> Mapping[str, object]:
        return await _timed([self._adapter.conversations] * times, seconds)

    async def writers(
        self, *, conversation: str, tasks: int, turns: int, same: bool, prefix: str = "w"
    ) -> Mapping[str, object]:
        """Tasks that append at once: nanoseconds in all, appends, the errors that they met, and in which turns."""
        names = [[f"{prefix}-{task}-{number}" for number in range(turns)] for task in range(tasks)]
        work = [[(name, self._adapter.native(make_turn(name))) for name in its] for its in names]
        errors = Counter[str]()
        failed: list[str] = []

        async def write(task: int) -> None:
            for name, messages in work[task]:
                try:
                    await self._adapter.append(conversation if same else f"{conversation}-{task}", messages, name)
                except Exception as error:  # noqa: BLE001 - counted, as what it is
                    errors[type(error).__name__] += 1
                    failed.append(name)

        gc.collect()
        begun = time.perf_counter_ns()
        await asyncio.gather(*(write(task) for task in range(tasks)))
        return {"ns": [time.perf_counter_ns() - begun], "appends": tasks * turns, "errors": errors, "failed": failed}

    async def store(
        self, *, conversation: str, names: Sequence[str], turn_id: str | None = None
    ) -> Mapping[str, object]:
        """Appends the turns of these names, one after the other, under their names or under the id that is given."""
        for name in names:
            await self._adapter.append(conversation, self._adapter.native(make_turn(name)), turn_id or name)
        return {}

    async def marks(self, *, conversation: str) -> Mapping[str, object]:
        """The marks of the stored messages, in their order: `name#1`; empty for a message without one."""
        found = [_MARK.search(self._adapter.text(message)) for message in await self._adapter.load(conversation)]
        return {"marks": [match[1] if match else "" for match in found]}

    async def memory(self, *, conversation: str) -> Mapping[str, object]:
        """Bytes that this process grew by at most while it loaded the conversation, which it holds at the end."""
        gc.collect()
        _forget_peak()
        before = _memory("VmRSS")
        held = await self._adapter.load(conversation)
        return {"bytes": _memory("VmHWM") - before, "messages": len(held)}

    def _native(self, count: int) -> Sequence[tuple[str, Sequence[Any]]]:
        turns = list(make_turns(f"t{os.getpid()}", count, first=self._made))
        self._made += count
        return [(turn.name, self._adapter.native(turn)) for turn in turns]

    async def _timed_turns(
        self,
        method: Callable[[str, Sequence[Any], str], Awaitable[None]],
        conversation: str,
        times: int,
        seconds: float,
    ) -> Mapping[str, object]:
        made = self._native(times)
        return await _timed([partial(method, conversation, messages, turn) for turn, messages in made], seconds)


async def _timed(calls: Sequence[Callable[[], Awaitable[object]]], seconds: float) -> Mapping[str, object]:
    """The nanoseconds of each call, one after the other; at least of one, and no more once the time is over."""
    gc.collect()
    taken: list[int] = []
    end = time.monotonic() + seconds
    for call in calls:
        begun = time.perf_counter_ns()
        await call()
        taken.append(time.perf_counter_ns() - begun)
        if time.monotonic() > end:
            break
    return {"ns": taken}


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")  # so that `VmHWM` begins anew


def _memory(name: str) -> int:
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:")]
    return int(line.split()[1]) * 1024


def serve(adapters: Mapping[str, Callable[[], Adapter]]) -> None:
    """Answers requests for the adapter that the command line names, until there are no more."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    worker = _Worker(adapters[sys.argv[1]]())
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            request = json.loads(line)
            try:
                answer = runner.run(getattr(worker, request.pop("do"))(**request))
            except NotOffered:
                answer = {"not offered": True}
            except Exception as error:  # noqa: BLE001 - the answer, whatever it is
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)
