"""The server, or the cluster, in which scripts run."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import TypeAlias

from redis.asyncio import Redis, RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError, ResponseError

from chathistory_redis.batches import Batches
from chathistory_redis.exchange import Argument, Command, Reply, exchange, told
from chathistory_redis.patience import Patience
from chathistory_redis.scripts import Script
from chathistory_redis.translation import DRIVER_ERRORS, translate

Client: TypeAlias = Redis | RedisCluster
"""What a store is reached through; `decode_responses=True` makes no difference."""

_MOST_AT_ONCE = 100
"""Commands on their way at the same time, where the client's pool has as many connections: an empty one raises."""


async def to_its_end(call: Awaitable[object]) -> None:
    """Wait for what the driver cannot break off without leaving connections open; a cancellation comes after it."""
    task = asyncio.ensure_future(call)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # heard, whenever it ends
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


class Server:
    """A client that has been connected, in the loop where it was."""

    def __init__(self, client: Client, timeout: float | None) -> None:
        """`timeout` is how many seconds to wait for a reply, beside what the client itself waits."""
        self._client = client
        self._patience = None if timeout is None else Patience(timeout)
        self._free = asyncio.Semaphore(min(_MOST_AT_ONCE, _connections(client)))
        self._batches = None if isinstance(client, RedisCluster) else Batches(partial(self._send, client))

    async def run(
        self,
        script: Script,
        keys: Sequence[bytes],
        arguments: Sequence[Argument],
        *,
        action: str,
        once: bool = False,
        together: bool = False,
    ) -> Reply:
        """What the script replies.

        `action` is for errors, after "did not"; `once` where the driver must not repeat the call after a lost reply;
        `together` where call and reply are so small that others may share their round trip.
        """
        scripted = (len(keys), *keys, *arguments)
        try:
            try:
                return await self._call(("EVALSHA", script.sha, *scripted), once=once, together=together)
            except NoScriptError:
                return await self._call(("EVAL", script.text, *scripted), once=once, together=together)
        except DRIVER_ERRORS as error:
            raise translate(error, action) from None

    async def _call(self, command: Command, *, once: bool, together: bool) -> Reply:
        if isinstance(self._client, RedisCluster):
            async with self._free:
                with self._patience or nullcontext():
                    return await _ask(self._client, command, once=once)
        if together and self._batches:
            return await self._batches.call(command)
        return told(*await self._send(self._client, [command], once=once))

    async def _send(
        self, client: Redis, commands: Sequence[Command], *, once: bool = False
    ) -> Sequence[Reply | ResponseError]:
        async with self._free:
            with self._patience or nullcontext():
                return await exchange(client, commands, once=once)

    async def close(self) -> None:
        """Wait for what is on its way."""
        try:
            if self._batches:
                await self._batches.close()
        finally:
            if self._patience:
                self._patience.close()


async def _ask(cluster: RedisCluster, command: Command, *, once: bool) -> Reply:
    reply: Reply
    if once:
        await to_its_end(cluster.initialize())
        node = cluster.nodes_manager.get_node_from_slot(cluster.keyslot(command[3]))
        # for nodes that are named the client follows redirections, and repeats nothing
        reply = await cluster.execute_command(*command, target_nodes=node, **{NEVER_DECODE: True})
    else:
        reply = await cluster.execute_command(*command, **{NEVER_DECODE: True})
    return reply


def _connections(client: Client) -> int:
    if isinstance(client, RedisCluster):
        return min((node.max_connections for node in client.get_nodes()), default=_MOST_AT_ONCE)
    return client.connection_pool.max_connections
