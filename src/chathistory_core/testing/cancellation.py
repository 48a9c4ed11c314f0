"""Obligations 4, 5 and 13 at every await: a call that is cancelled there is whole or absent, and the next one works."""

import asyncio
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from itertools import count
from typing import Literal, TypeAlias

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.testing.scenario import BackendFactory, in_loop, records, say, texts_of, with_backend

Moment: TypeAlias = Literal["waiting", "answered"]
"""Cancelled as soon as the call waits, or when what it waits for is there and it was not told yet."""

MOMENTS: tuple[Moment, ...] = ("waiting", "answered")

Attempt: TypeAlias = Callable[[str], Coroutine[object, object, object]]
"""The call, for the key of its own that it is given."""

Check: TypeAlias = Callable[[str], Awaitable[None]]

MOST = 2_000
"""Suspensions of one call: more are a call that never ends."""


class CancellationTests:
    """Each call is cancelled at its first await, then anew at its second, and so on until it gets through."""

    @with_backend
    async def test_an_append_cancelled_at_any_await_is_whole_or_absent_and_stored_once_when_repeated(
        self, backend: ChatHistoryBackend
    ) -> None:
        await say(backend, "neighbour", "n")

        async def check(key: str) -> None:
            assert texts_of(await backend.get(key)) in ([], ["a", "b"])
            await say(backend, key, "a", "b", turn_id="t")
            await say(backend, key, "c", turn_id="u")
            assert texts_of(await backend.get(key)) == ["a", "b", "c"]
            assert (await say(backend, key, "a", "b", turn_id="t")).replayed
            assert texts_of(await backend.get("neighbour")) == ["n"]

        await at_every_await(lambda key: say(backend, key, "a", "b", turn_id="t"), check)

    @with_backend
    async def test_an_append_to_a_conversation_cancelled_at_any_await_takes_nothing_away(
        self, backend: ChatHistoryBackend
    ) -> None:
        async def before(key: str) -> None:
            await say(backend, key, "a", turn_id="s")

        async def check(key: str) -> None:
            assert texts_of(await backend.get(key)) in (["a"], ["a", "b", "c"])
            await say(backend, key, "b", "c", turn_id="t")
            assert texts_of(await backend.get(key)) == ["a", "b", "c"]
            assert (await say(backend, key, "a", turn_id="s")).replayed

        await at_every_await(lambda key: say(backend, key, "b", "c", turn_id="t"), check, before)

    @with_backend
    async def test_a_replace_cancelled_at_any_await_leaves_the_old_or_the_new(
        self, backend: ChatHistoryBackend
    ) -> None:
        async def before(key: str) -> None:
            await say(backend, key, "a", "b")

        async def check(key: str) -> None:
            assert texts_of(await backend.get(key)) in (["a", "b"], ["x", "y", "z"])
            await backend.replace(key, records("x", "y", "z"), turn_id="t")
            await say(backend, key, "c")
            assert texts_of(await backend.get(key)) == ["x", "y", "z", "c"]

        await at_every_await(lambda key: backend.replace(key, records("x", "y", "z"), turn_id="t"), check, before)

    @with_backend
    async def test_a_clear_cancelled_at_any_await_leaves_everything_or_nothing(
        self, backend: ChatHistoryBackend
    ) -> None:
        async def before(key: str) -> None:
            await say(backend, key, "a", "b", turn_id="s")

        async def check(key: str) -> None:
            found = await backend.get(key)
            assert (texts_of(found), found.record_count) in ((["a", "b"], 2), ([], 0))
            await backend.clear(key)
            assert texts_of(await backend.get(key)) == []
            assert [one.key for one in await backend.summaries(prefix=key)] == []
            assert not await backend.clear(key)
            await say(backend, f"{key} goes on", "a")
            assert texts_of(await backend.get(f"{key} goes on")) == ["a"]

        await at_every_await(backend.clear, check, before)

    @with_backend
    async def test_after_a_read_cancelled_at_any_await_each_call_gets_its_own_answer(
        self, backend: ChatHistoryBackend
    ) -> None:
        await say(backend, "long", *(f"long {number}" for number in range(200)))
        held = await backend.get("long")
        await say(backend, "other", "o")
        page = await backend.summaries()

        async def check(_: str) -> None:
            assert texts_of(await backend.get("other")) == ["o"]
            assert await backend.get("long") == held
            assert await backend.summaries() == page

        await at_every_await(lambda _: backend.get("long"), check)
        await at_every_await(lambda _: backend.summaries(), check)

    @in_loop
    async def test_an_opening_cancelled_at_any_await_can_be_made_again(self, make_backend: BackendFactory) -> None:
        made: dict[str, ChatHistoryBackend] = {}

        async def opened_and_closed(key: str) -> None:
            made[key] = backend = make_backend()
            async with backend:
                pass

        async def check(key: str) -> None:
            async with made[key] as backend:
                await say(backend, key, "a")
                assert texts_of(await backend.get(key)) == ["a"]

        await at_every_await(opened_and_closed, check)


async def at_every_await(attempt: Attempt, check: Check, before: Check | None = None) -> None:
    """Cancel the attempt at its first await, check, cancel another at its second, and so on until one gets through.

    Each attempt has a key of its own. It may end as if it had not been cancelled, but with no other error.
    """
    for moment in MOMENTS:
        for suspension in count(1):
            assert suspension <= MOST, f"the call was suspended {MOST} times and is not done"
            key = f"{moment} {suspension}"
            if before is not None:
                await before(key)
            task = CancelledTask(attempt(key), suspension, moment)
            await asyncio.wait([task.task])
            if not task.task.cancelled():  # it got through, or before Python 3.12 a driver's `wait_for` forgot it
                task.task.result()
            await check(key)
            if not task.reached:
                break


class CancelledTask:
    """A task that is cancelled at its nth suspension, counted from 1; `reached` says whether it came to it."""

    def __init__(self, call: Coroutine[object, object, object], suspension: int, moment: Moment) -> None:
        self.reached = False
        self._suspension = suspension
        self._moment: Moment = moment
        self.task = asyncio.create_task(self._run(call))

    async def _run(self, call: Coroutine[object, object, object]) -> object:
        return await self._counted(call)

    @types.coroutine
    def _counted(self, call: Coroutine[object, object, object]) -> Generator[object, object, object]:
        """The call's result; what it waits for goes on to the loop, as without this."""
        sent: object = None
        error: BaseException | None = None
        for suspension in count(1):
            try:
                awaited = call.send(sent) if error is None else call.throw(error)
            except StopIteration as done:
                return done.value
            if suspension == self._suspension:
                self._cancel_at(awaited)
            sent, error = None, None
            try:
                sent = yield awaited
            except BaseException as caught:  # noqa: BLE001 - it is the call's
                error = caught
        raise AssertionError("a call without an end")

    def _cancel_at(self, awaited: object) -> None:
        self.reached = True
        if self._moment == "answered" and isinstance(awaited, asyncio.Future):
            # added before the task's own, so that the task learns of both at once
            awaited.add_done_callback(lambda _: self.task.cancel())
        else:
            asyncio.get_running_loop().call_soon(self.task.cancel)
