"""Small writes that are begun in one turn of the loop, sent together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from chathistory_redis.exchange import Command, Reply, told

_MOST = 100
"""Commands of one batch: what a server does in a few milliseconds."""


class Batches:
    """Sends commands: those that begin in one turn of the loop share a round trip.

    Nothing waits longer for others to come. As they get their replies at the same time, they tend to meet again.
    """

    def __init__(self, send: Callable[[Sequence[Command]], Awaitable[Sequence[Reply | Exception]]]) -> None:
        """`send` answers what the server replies to each of some commands that share a round trip."""
        self._send = send
        self._waiting: list[tuple[Command, asyncio.Future[Reply]]] = []
        self._sending = set[asyncio.Task[None]]()

    async def call(self, command: Command) -> Reply:
        """What the server replies.

        The command must be one that may be repeated. A task that is cancelled calls nothing back that is on its way.
        """
        answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting.append((command, answer))
        if len(self._waiting) == 1:
            try:
                await asyncio.sleep(0)
            except asyncio.CancelledError:
                answer.cancel()
                raise
            finally:
                batch, self._waiting = self._waiting, []
                if len(batch) > 1:
                    self._begin([each for each in batch if not each[1].done()])
            if len(batch) == 1:  # alone, it needs no task of its own
                return told(*await self._send([command]))
        return await answer

    def _begin(self, commands: Sequence[tuple[Command, asyncio.Future[Reply]]]) -> None:
        for start in range(0, len(commands), _MOST):
            task = asyncio.get_running_loop().create_task(self._exchange(commands[start : start + _MOST]))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _exchange(self, batch: Sequence[tuple[Command, asyncio.Future[Reply]]]) -> None:
        try:
            replies = await self._send([command for command, _ in batch])
        except asyncio.CancelledError:
            for _, answer in batch:
                answer.cancel()
            raise
        except Exception as error:  # noqa: BLE001 - raised in each task that waits
            replies = [error] * len(batch)
        for (_, answer), reply in zip(batch, replies, strict=True):
            if answer.done():
                continue
            if isinstance(reply, Exception):
                answer.set_exception(reply)
            else:
                answer.set_result(reply)

    async def close(self) -> None:
        """Wait for what is on its way; cancelled meanwhile, break it off."""
        sending = set(self._sending)
        if not sending:
            return
        try:
            await asyncio.wait(sending)
        except asyncio.CancelledError:
            for task in sending:
                task.cancel()
            await asyncio.wait(sending)
            raise
