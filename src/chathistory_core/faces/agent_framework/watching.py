"""What sees a run's model and tools at work, for the framework tells a provider of no failure.

It stands between the tool loop and the model, and around each tool: so an error of the model, a cancelled task and a
stream that is closed or breaks off are known when they happen.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from agent_framework import (
    ChatContext,
    ChatMiddleware,
    FunctionInvocationContext,
    FunctionMiddleware,
    MiddlewareFailure,
    ResponseStream,
)

from chathistory_core.faces.agent_framework.runs import Fail, ModelStream, OpenRuns, Run


class WatchedModel(ChatMiddleware):
    """Sees each call of the model."""

    def __init__(self, run: Run, runs: OpenRuns, fail: Fail) -> None:
        self._run = run
        self._runs = runs
        self._fail = fail

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Ask the model."""
        self._run.asked(context.messages)
        try:
            await call_next()
        except (Exception, asyncio.CancelledError) as error:
            await self._fail(self._run, error)
            raise
        if isinstance(context.result, ResponseStream):
            self._run.streaming(context.result)
            _watch(context.result, self._run, self._runs, self._fail)
        elif context.result is not None:
            self._run.answered(context.result)


def _watch(stream: ModelStream, run: Run, runs: OpenRuns, fail: Fail) -> None:
    ends: list[BaseException] = []

    @contextmanager
    def pull() -> Iterator[None]:
        runs.add(run)
        run.is_read = True
        try:
            yield
        except BaseException as error:
            ends.append(error)
            raise
        finally:
            run.is_read = False

    async def end() -> None:
        error = ends[-1] if ends else GeneratorExit("the stream was closed before its end")
        if isinstance(error, StopAsyncIteration):
            return
        run.closed = not ends
        await fail(run, error)

    _ = stream.with_pull_context_manager(pull).with_cleanup_hook(end)  # the stream itself, which others read


class WatchedTools(FunctionMiddleware):
    """Sees each call of a tool. What a tool raises the framework tells the model; what ends the run is a failure."""

    def __init__(self, run: Run, fail: Fail) -> None:
        self._run = run
        self._fail = fail

    async def process(self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:  # noqa: ARG002 - the framework's
        """Call the tool."""
        try:
            await call_next()
        except (MiddlewareFailure, asyncio.CancelledError) as error:
            await self._fail(self._run, error)
            raise
