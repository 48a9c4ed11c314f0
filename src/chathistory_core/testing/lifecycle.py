"""Obligation 14: who may use a backend, and when."""

import asyncio
import os
import signal
import sys
import warnings
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import BackendStateError
from chathistory_core.testing.scenario import BackendFactory, in_loop, records, say, texts_of, with_backend

CALLS: tuple[Callable[[ChatHistoryBackend], Awaitable[object]], ...] = (
    lambda backend: backend.get("k"),
    lambda backend: backend.append("k", records("refused"), turn_id="refused"),
    lambda backend: backend.replace("k", records("refused"), turn_id="refused"),
    lambda backend: backend.clear("k"),
    lambda backend: backend.summaries(),
)


class LifecycleTests:
    """Made anywhere; used by the loop, thread and process that opened it."""

    def test_a_backend_is_made_without_a_loop_and_opened_in_one(self, make_backend: BackendFactory) -> None:
        backend = make_backend()

        async def scenario() -> None:
            async with backend as opened:
                assert opened is backend
                await say(opened, "k", "a")
                assert texts_of(await opened.get("k")) == ["a"]

        asyncio.run(scenario())

    @in_loop
    async def test_a_backend_that_was_not_opened_refuses_every_call(self, make_backend: BackendFactory) -> None:
        await assert_refused(make_backend())

    @in_loop
    async def test_a_closed_backend_refuses_every_call(self, make_backend: BackendFactory) -> None:
        backend = make_backend()
        async with backend:
            await say(backend, "k", "a")
        await assert_refused(backend)
        async with make_backend() as other:
            assert texts_of(await other.get("k")) == ["a"]

    @in_loop
    async def test_a_closed_backend_opens_again_and_has_its_records(self, make_backend: BackendFactory) -> None:
        backend = make_backend()
        for number in range(3):
            async with backend:
                await say(backend, "k", str(number))
                assert (await backend.get("k")).record_count == number + 1
        async with make_backend() as other:
            assert texts_of(await other.get("k")) == ["0", "1", "2"]

    def test_a_closed_backend_opens_again_in_another_loop(self, make_backend: BackendFactory) -> None:
        backend = make_backend()

        async def scenario(count: int) -> None:
            async with backend:
                await asyncio.gather(*(say(backend, "k", "a") for _ in range(4)))
                assert (await backend.get("k")).record_count == count

        for count in (4, 8, 12):
            asyncio.run(scenario(count))

    @in_loop
    async def test_a_second_opening_is_refused_and_the_first_goes_on(self, make_backend: BackendFactory) -> None:
        backend = make_backend()
        async with backend:
            await say(backend, "k", "a")
            async with AsyncExitStack() as stack:
                with pytest.raises(BackendStateError):
                    await stack.enter_async_context(backend)
            await say(backend, "k", "b")
            assert texts_of(await backend.get("k")) == ["a", "b"]
        await assert_refused(backend)

    @in_loop
    async def test_an_error_inside_the_block_goes_through_and_closes(self, make_backend: BackendFactory) -> None:
        backend = make_backend()
        with pytest.raises(ZeroDivisionError):
            async with backend:
                raise ZeroDivisionError
        await assert_refused(backend)

    @in_loop
    async def test_closing_one_handle_leaves_the_others_open(self, make_backend: BackendFactory) -> None:
        async with make_backend() as other:
            async with make_backend() as one:
                await say(one, "k", "a")
            await say(other, "k", "b")
            assert texts_of(await other.get("k")) == ["a", "b"]

    def test_another_loop_of_the_same_thread_is_refused(self, make_backend: BackendFactory) -> None:
        backend = make_backend()
        loop = asyncio.new_event_loop()
        try:
            loop.run_until_complete(backend.__aenter__())
            loop.run_until_complete(say(backend, "k", "a"))
            asyncio.run(assert_refused(backend))
            assert texts_of(loop.run_until_complete(backend.get("k"))) == ["a"]
            loop.run_until_complete(backend.__aexit__(None, None, None))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    @with_backend
    async def test_another_thread_is_refused(self, backend: ChatHistoryBackend) -> None:
        await say(backend, "k", "a")
        await asyncio.to_thread(lambda: asyncio.run(assert_refused(backend)))
        assert texts_of(await backend.get("k")) == ["a"]

    if sys.platform != "win32":

        @in_loop
        async def test_a_forked_child_is_refused_and_the_parent_goes_on(self, make_backend: BackendFactory) -> None:
            async with make_backend() as backend:
                await say(backend, "k", "a")
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)  # of forking while threads run: what is tested
                    child = os.fork()
                if child == 0:
                    _refused_in_child(backend)
                status = os.waitpid(child, 0)[1]  # noqa: ASYNC222 - the child ends by itself
                assert os.waitstatus_to_exitcode(status) == 0, "the child could use its parent's backend, or hung"
                await say(backend, "k", "b")
                found = await backend.get("k")
            assert texts_of(found) == ["a", "b"]


def _refused_in_child(backend: ChatHistoryBackend) -> None:
    """Leave the process, with 0 where every call is refused; never return to the parent's test."""
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # of a backend that waits for its parent's threads
        asyncio.run(assert_refused(backend))
        code = 0
    finally:
        os._exit(code)


async def assert_refused(backend: ChatHistoryBackend) -> None:
    """Check that every operation raises `BackendStateError` at once."""
    for call in CALLS:
        with pytest.raises(BackendStateError):
            await asyncio.wait_for(call(backend), 10)
