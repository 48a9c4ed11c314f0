"""Small writes that are begun in one turn of the loop, sent together."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from redis.asyncio import Redis
from redis.client import NEVER_DECODE

Command: TypeAlias = Sequence[bytes | str | int]

Reply: TypeAlias = list[bytes]

_MOST = 100
"""Commands of one batch: what a server does in a few milliseconds."""


class Batches:
    """Sends commands over a client's connections: those that wait at the same time share one, and one round trip.

    Nothing waits for others to come: a batch is what tasks began before the loop went on. As they get their replies at
    the same time, they tend to meet again.
    """

    def __init__(self, client: Redis, free: asyncio.Semaphore) -> None:
        """`free` counts the connections that may still be used."""
        self._client = client
        self._free = free
        self._waiting: list[tuple[Command, asyncio.Future[Reply | None]]] = []
        self._sending = set[asyncio.Task[None]]()

    async def call(self, command: Command) -> Reply | None:
        """What the server replies, or None where nobody is there to share a round trip with: nothing is sent then.

        The command must be one that may be repeated. A task that is cancelled does not call it back.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply | None] = loop.create_future()
        self._waiting.append((command, answer))
        if len(self._waiting) == 1:
            loop.call_soon(self._send)
        return await answer

    def _send(self) -> None:
        waiting = [(command, answer) for command, answer in self._waiting if not answer.done()]
        self._waiting = []
        if len(waiting) == 1:
            waiting[0][1].set_result(None)
            return
        for start in range(0, len(waiting), _MOST):
            task = asyncio.get_running_loop().create_task(self._exchange(waiting[start : start + _MOST]))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _exchange(self, batch: Sequence[tuple[Command, asyncio.Future[Reply | None]]]) -> None:
        try:
            async with self._free:
                pipeline = self._client.pipeline(transaction=False)
                for command, _ in batch:
                    pipeline.execute_command(*command, **{NEVER_DECODE: True})
                replies: list[Reply | Exception] = await pipeline.execute(raise_on_error=False)
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
        """Wait for what is on its way."""
        if self._sending:
            await asyncio.wait(self._sending)
