"""All obligations at random: whatever calls follow each other, a backend answers as the model says."""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Literal

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import integers

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.reading import read_on
from chathistory_core.records import NO_REVISION, Conversation, ConversationSummary, Record, new_turn_id
from chathistory_core.testing.actions import (
    ACTIONS,
    Action,
    Follow,
    List,
    Read,
    Reopen,
    Repeat,
    Token,
    Write,
)
from chathistory_core.testing.calls import Append, Call, Clear, Get, Look, Replace, send
from chathistory_core.testing.model import State, step
from chathistory_core.testing.scenario import EXAMPLES, TIME_LIMIT, BackendFactory, examples, keys_of

RUNS = 50
STEPS = 25


def run_machine(make_backend: BackendFactory, *, shorten: bool = True) -> None:
    """Run random calls against the model; `shorten` looks for the shortest way to a failure, which takes long."""

    class Backend(Machine):
        new_handle = staticmethod(make_backend)

    run_state_machine_as_test(
        Backend,
        settings=settings(
            max_examples=examples(RUNS),
            stateful_step_count=STEPS,
            derandomize=EXAMPLES not in os.environ,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink) if shorten else (Phase.generate,),
            print_blob=False,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )


class Machine(RuleBasedStateMachine):
    """Two handles over one store, in a loop of their own, and the model of what they were told to do.

    Every run has keys of its own, for the store is empty only at first. All actions are one rule, for hypothesis leaves
    out rules by chance, and without writes there is nothing to see.
    """

    def __init__(self) -> None:
        super().__init__()
        self._prefix = f"{new_turn_id()[:12]}/"
        self._states = {key: State(key) for key in (self._prefix + key for key in ("a", "a/b", "b"))}
        self._earlier: dict[str, list[tuple[str, str]]] = {key: [] for key in self._states}
        self._held = {key: Conversation(key) for key in self._states}
        self._listed: ConversationSummary | None = None
        self._sent: list[Append | Replace] = []
        self._runner = asyncio.Runner()
        self._handles: list[ChatHistoryBackend] = []
        self._opened: list[AsyncExitStack] = []
        try:
            for _ in range(2):
                self._run(self._open(self.new_handle()))
        except BaseException:
            self.teardown()
            raise

    @staticmethod
    def new_handle() -> ChatHistoryBackend:
        """Another unopened handle; a subclass's to give, for hypothesis makes machines without arguments."""
        raise NotImplementedError

    def teardown(self) -> None:
        """Close the handles and the loop."""
        try:
            for stack in self._opened:
                self._run(stack.aclose())
        finally:
            self._runner.close()

    def _run(self, work: Coroutine[object, object, None]) -> None:
        self._runner.run(asyncio.wait_for(work, TIME_LIMIT))

    async def _open(self, backend: ChatHistoryBackend) -> None:
        stack = AsyncExitStack()
        await stack.enter_async_context(backend)
        self._handles.append(backend)
        self._opened.append(stack)

    @rule(handle=integers(0, 1), action=ACTIONS)
    def call(self, handle: int, action: Action) -> None:
        """Do it with one of the handles."""
        self._run(self._act(handle, action))

    async def _act(self, handle: int, action: Action) -> None:
        match action:
            case Write():
                await self._write(handle, action)
            case Repeat():
                await self._repeat(handle, action)
            case Read():
                await self._read(handle, action)
            case Follow():
                await self._follow(handle, action)
            case List():
                await self._list(handle, action)
            case Reopen():
                backend = self._handles.pop(handle)
                await self._opened.pop(handle).aclose()
                await self._open(backend if action.which == "same" else self.new_handle())

    async def _send(self, handle: int, call: Call) -> None:
        before = self._states[call.key]
        answer = await send(self._handles[handle], call)
        self._states[call.key] = after = step(before, call, answer)
        if before.revision not in (NO_REVISION, after.revision):
            self._earlier[call.key].append((before.revision, before.epoch))

    async def _send_write(self, handle: int, call: Append | Replace | Clear) -> None:
        """Write, and read with the other handle."""
        await self._send(handle, call)
        await self._send(1 - handle, Get(call.key))

    async def _write(self, handle: int, write: Write) -> None:
        key = self._prefix + write.key
        revision = self._token(key, write.revision, 0)
        if write.operation == "clear":
            await self._send_write(handle, Clear(key, revision))
            return
        batch = _batch(write.text, write.size, write.encoding)
        turn_id = f"turn {len(self._sent)}" if write.turn == "new" else write.turn
        if write.operation == "append":
            self._sent.append(Append(key, batch, turn_id, revision, self._token(key, write.epoch, 1)))
        else:
            self._sent.append(Replace(key, batch, turn_id, revision))
        await self._send_write(handle, self._sent[-1])

    async def _repeat(self, handle: int, repeat: Repeat) -> None:
        if self._sent:
            call = self._sent[-1 - repeat.back % len(self._sent)]
            if repeat.revision == "current":
                call = call._replace(expected_revision=self._states[call.key].revision)
            await self._send_write(handle, call)

    async def _read(self, handle: int, read: Read) -> None:
        key = self._prefix + read.key
        lines = self._states[key].lines
        position = (lines[read.at].position if read.at < len(lines) else None) or read.at
        before, after = (max(0, position + read.by) if read.cursor == each else None for each in ("before", "after"))
        for limit in (None, 0, 1, 2, 5):
            await self._send(handle, Get(key, limit, before, after))

    async def _follow(self, handle: int, follow: Follow) -> None:
        key = self._prefix + follow.key
        held, state = self._held[key], self._states[key]
        found = await read_on(self._handles[handle], key, held, limit=follow.limit)
        if held.records and held.epoch != state.epoch:
            assert found is None, "records were taken away and the follower was not told to start over"
            self._held[key] = Conversation(key)
            return
        assert found is not None, "the follower was told to start over and nothing was taken away"
        after = held.records[-1].position if held.records else 0
        self._states[key] = step(state, Get(key, follow.limit, after=after), found)
        self._held[key] = found._replace(records=(held.records + found.records)[-1:])

    async def _list(self, handle: int, listing: List) -> None:
        prefix, order = self._prefix + listing.prefix, listing.order
        backend = self._handles[handle]
        whole = list(await backend.summaries(prefix=prefix, order=order))
        there = [key for key, state in self._states.items() if key.startswith(prefix) and state.revision != NO_REVISION]
        assert sorted(keys_of(whole)) == sorted(there)
        for summary in whole:
            self._states[summary.key] = step(self._states[summary.key], Look(summary.key), summary)
        assert whole == sorted(whole, key=lambda each: _rank(each, order)), f"not in the order {order!r}"
        for after in (None, self._listed, *whole):
            behind = [each for each in whole if after is None or _rank(each, order) > _rank(after, order)]
            for limit in (None, 0, 1, 2):
                page = await backend.summaries(prefix=prefix, after=after, limit=limit, order=order)
                assert keys_of(page) == keys_of(behind[:limit]), f"behind {after and after.key!r}, limit {limit}"
        self._listed = whole[-1] if whole else self._listed

    def _token(self, key: str, token: Token | None, which: Literal[0, 1]) -> str | None:
        """A revision (0) or epoch (1) of the conversation."""
        state, earlier = self._states[key], self._earlier[key]
        match token:
            case "current":
                return (state.revision, state.epoch)[which]
            case "earlier":
                return earlier[-1][which] if earlier else "unknown"
            case "none":
                return NO_REVISION
        return token


def _batch(text: str, count: int, encoding: str) -> tuple[Record, ...]:
    """Records that are the same to `turn_digest` in every encoding."""
    plain = [f"{text}{index}".encode() for index in range(count)]
    if not encoding:
        return tuple(Record(payload, "text") for payload in plain)
    return tuple(Record(encoding.encode() + payload, f"text+test.{encoding}", payload) for payload in plain)


def _rank(summary: ConversationSummary, order: Order) -> tuple[float, str]:
    return (0 if order == "key" else -summary.updated_at.timestamp(), summary.key)
