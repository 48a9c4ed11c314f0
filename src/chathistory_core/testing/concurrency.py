"""Obligations 3 to 6 at random: the answers of calls that overlap have an order."""

import asyncio
import time
from collections.abc import Sequence
from random import Random

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.records import NO_REVISION, Conversation, Record, Written
from chathistory_core.testing.calls import Answer, Append, Call, Clear, Get, Look, Replace, send
from chathistory_core.testing.histories import Event, check_history
from chathistory_core.testing.scenario import BackendFactory, chances, in_loop

ROUNDS = 25
CALLS = 6
"""Of each caller in a round."""


class HistoryTests:
    """Random calls of four callers on two handles, to two conversations a round."""

    @in_loop
    async def test_the_answers_of_concurrent_calls_have_an_order(self, make_backend: BackendFactory) -> None:
        await _rounds(make_backend, lossy=False)

    @in_loop
    async def test_the_answers_of_calls_that_are_cancelled_and_repeated_have_an_order(
        self, make_backend: BackendFactory
    ) -> None:
        await _rounds(make_backend, lossy=True)


async def _rounds(make_backend: BackendFactory, *, lossy: bool) -> None:
    async with make_backend() as one, make_backend() as other:
        for number, chance in enumerate(chances(ROUNDS)):
            seed = chance.random()
            callers = [Caller(f"caller {name}", seed, lossy=lossy) for name in range(4)]
            keys = (f"{number}/a", f"{number}/b")
            await asyncio.gather(
                *(caller.run(backend, keys) for caller, backend in zip(callers, (one, other) * 2, strict=True))
            )
            check_history(event for caller in callers for event in caller.events)


class Caller:
    """Calls a backend at random, with what it was told last, and records the answers in `events`.

    A lossy one cancels some of its writes and repeats each until it is answered. It clears nothing: a cancelled write
    that arrives behind a clear is a new one.
    """

    def __init__(self, name: str, seed: float, *, lossy: bool = False) -> None:
        """Callers of one seed and different names do different things."""
        self.events: list[Event] = []
        self._name = name
        self._chance = Random(f"{seed} {name}")  # noqa: S311 - a schedule, not a secret
        self._lossy = lossy
        self._seen: dict[str, Conversation] = {}

    async def run(self, backend: ChatHistoryBackend, keys: Sequence[str]) -> None:
        """Make `CALLS` calls to these conversations."""
        for _ in range(CALLS):
            call = self._drawn(self._chance.choice(keys))
            for _ in range(self._chance.randrange(3)):
                await asyncio.sleep(0)
            begin = time.monotonic_ns()
            repeated, answer = await self._answered(backend, call)
            self.events.append(Event(self._name, begin, time.monotonic_ns(), call, answer, repeated))
            self._learn(call.key, answer)

    def _drawn(self, key: str) -> Call:
        chance, seen = self._chance, self._seen.get(key, Conversation(key))
        kinds = ["append"] * 10 + ["replace"] * 3 + ["get"] * 6 + ["look"] * 2 + ["clear"] * (0 if self._lossy else 2)
        kind = chance.choice(kinds)
        revision = chance.choice([None, None, None, seen.revision, NO_REVISION])
        if kind == "append":
            epoch = chance.choice([None, None, seen.epoch])
            return Append(key, *self._batch(), expected_revision=revision, expected_epoch=epoch)
        if kind == "replace":
            return Replace(key, *self._batch(), expected_revision=revision)
        if kind == "clear":
            return Clear(key, expected_revision=revision)
        if kind == "look":
            return Look(key)
        limit = chance.choice([None, None, 0, 1, 3])
        if seen.records and chance.random() < 0.4:
            position = chance.choice(seen.records).position
            return Get(key, limit, after=position) if chance.random() < 0.7 else Get(key, limit, before=position)
        return Get(key, limit)

    def _batch(self) -> tuple[tuple[Record, ...], str]:
        """Records and their turn: now and then one that others take too, with the same records or with others."""
        if self._chance.random() < 0.3:
            turn = f"t{self._chance.randrange(3)}"
            text, count = self._chance.choice([turn, turn, "other"]), 2
        else:
            turn = text = f"{self._name} call {len(self.events)}"
            count = self._chance.randrange(1, 4)
        return tuple(Record(f"{text}.{index}".encode(), "text") for index in range(count)), turn

    async def _answered(self, backend: ChatHistoryBackend, call: Call) -> tuple[bool, Answer]:
        """Whether earlier attempts got no answer, and the answer."""
        # one that expects nothing to be there may still arrive when its repetition was refused
        may_cancel = isinstance(call, Append | Replace) and call.expected_revision != NO_REVISION
        repeated = False
        while self._lossy and may_cancel and self._chance.random() < 0.4:
            attempt = asyncio.create_task(send(backend, call))
            for _ in range(self._chance.choice([1, 2, 3, 10, 100, 500])):
                await asyncio.sleep(0)
            attempt.cancel()
            try:
                return repeated, await attempt
            except asyncio.CancelledError:
                repeated = True
        return repeated, await send(backend, call)

    def _learn(self, key: str, answer: Answer) -> None:
        seen = self._seen.get(key, Conversation(key))
        if isinstance(answer, Conversation):
            self._seen[key] = answer if answer.records else answer._replace(records=seen.records)
        elif isinstance(answer, Written):
            self._seen[key] = seen._replace(revision=answer.revision, epoch=answer.epoch)
