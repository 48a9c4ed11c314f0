"""A success is saved although its task is being cancelled."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

import pytest

from chathistory_core import BackendUnavailableError
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import InvokedContext
from chathistory_core.stored import StoredChatHistoryProvider

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


def others() -> set["asyncio.Task[Any]"]:
    return asyncio.all_tasks() - {task for task in (asyncio.current_task(),) if task is not None}


@pytest.mark.parametrize("way", ["turn", "invoked"])
@pytest.mark.parametrize("times", [1, 2, 5])
def test_cancelled_at_any_await_of_the_save_it_is_stored_whole(backend: Any, times: int, way: str) -> None:
    async def cancelled_after(steps: int, history: StoredChatHistoryProvider) -> str:
        session = history.session(f"k{steps}")
        leaving = asyncio.Event()

        async def job() -> None:
            if way == "invoked":
                leaving.set()
                await history.invoked(InvokedContext.succeeded(None, session, [USER("q")], [ASSISTANT("a")]))
                return
            async with history.turn(session, [USER("q")]) as turn:
                turn.add(ASSISTANT("a"))
                leaving.set()

        task = asyncio.create_task(job())
        await leaving.wait()
        for _ in range(steps):
            await asyncio.sleep(0)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        try:
            await task
            end = "done"
        except asyncio.CancelledError:
            end = "cancelled"
        assert await history.count(session) == 2, steps
        assert not others()
        return end

    async def run() -> None:
        backend.steps = 5
        async with backend:
            history = StoredChatHistoryProvider(backend, save_timeout=60)
            ends = [await cancelled_after(steps, history) for steps in range(20)]
        assert ends[:5] == ["cancelled"] * 5

    asyncio.run(run())


def test_cancelled_inside_the_block_nothing_is_stored(between: Callable[[], Any]) -> None:
    async def run() -> None:
        async with between() as backend:
            history = StoredChatHistoryProvider(backend)
            entered = asyncio.Event()

            async def job() -> None:
                async with history.turn(history.session("k"), [USER("q")]) as turn:
                    turn.add(ASSISTANT("half"))
                    entered.set()
                    await asyncio.Event().wait()

            task = asyncio.create_task(job())
            await entered.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await history.count("k") == 0

    asyncio.run(run())


def test_a_timeout_around_a_turn_is_still_a_timeout_and_the_turn_is_stored(between: Callable[[], Any]) -> None:
    async def run() -> None:
        async with between() as backend:
            history = StoredChatHistoryProvider(backend)

            task = asyncio.current_task()
            assert task is not None

            async def wait_to_be_cancelled() -> None:
                while not task.cancelling():  # noqa: ASYNC110 - no event tells of it
                    await asyncio.sleep(0)

            backend.before_append = wait_to_be_cancelled
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), history.turn(history.session("k"), [USER("q")]) as turn:
                    turn.add(ASSISTANT("a"))
            assert await history.count("k") == 2

    asyncio.run(run())


@pytest.mark.parametrize("save_timeout", [0, 0.02])
def test_a_save_that_hangs_is_given_up_after_its_time(
    between: Callable[[], Any], caplog: pytest.LogCaptureFixture, save_timeout: float
) -> None:
    async def run() -> None:
        async with between() as backend:
            backend.hangs = True
            history = StoredChatHistoryProvider(backend, save_timeout=save_timeout)
            turn = history.turn(history.session("k"), [USER("q")], turn_id="T")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01), turn:
                    turn.add(ASSISTANT("canary-42"))
            assert not others()
            backend.hangs = False
            await turn.save()
            assert await history.count("k") == 2

    with caplog.at_level(logging.ERROR, "chathistory"):
        asyncio.run(run())
    assert "turn 'T' of conversation 'k' was not saved within" in caplog.text
    assert "canary" not in caplog.text


def test_a_save_that_fails_while_being_cancelled_says_so_in_the_log(
    between: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with between() as backend:
            history = StoredChatHistoryProvider(backend)
            backend.steps, backend.failures = 3, 1

            async def job() -> None:
                context = InvokedContext.succeeded(None, history.session("k"), [USER("q")], [], turn_id="T")
                await history.invoked(context)

            task = asyncio.create_task(job())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with caplog.at_level(logging.ERROR, "chathistory"):
        asyncio.run(run())
    assert "turn 'T' of conversation 'k' was not saved while being cancelled: BackendUnavailableError" in caplog.text


def test_a_save_that_fails_raises_its_own_error(between: Callable[[], Any]) -> None:
    async def run() -> None:
        async with between() as backend:
            history = StoredChatHistoryProvider(backend)
            backend.failures = 1
            with pytest.raises(BackendUnavailableError, match="down"):
                await history.invoked(InvokedContext.succeeded(None, history.session("k"), [USER("q")], []))

    asyncio.run(run())


def test_a_save_is_finished_though_the_loop_ends_and_cancels_every_task(between: Callable[[], Any]) -> None:
    backend = between()
    backend.steps = 5

    async def run() -> None:
        async with backend.backend:
            history = StoredChatHistoryProvider(backend)

            async def job() -> None:
                await history.invoked(
                    InvokedContext.succeeded(None, history.session("k"), [USER("q")], [ASSISTANT("a")])
                )

            task = asyncio.create_task(job())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            for each in others():  # as `asyncio.run` does when its main task has ended
                each.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await history.count("k") == 2

    asyncio.run(run())


def test_a_cancellation_that_comes_again_and_again_does_not_stop_the_save(between: Callable[[], Any]) -> None:
    async def run() -> None:
        async with between() as backend:
            backend.steps = 50
            history = StoredChatHistoryProvider(backend)

            async def job() -> None:
                await history.invoked(
                    InvokedContext.succeeded(None, history.session("k"), [USER("q")], [ASSISTANT("a")])
                )

            task = asyncio.create_task(job())
            while not task.done():
                await asyncio.sleep(0)
                task.cancel()
            assert task.cancelled()
            assert await history.count("k") == 2

    asyncio.run(run())
