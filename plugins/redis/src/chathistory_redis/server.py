"""The server, or the cluster, in which scripts run."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeAlias

from redis.asyncio import Redis, RedisCluster
from redis.client import NEVER_DECODE
from redis.exceptions import NoScriptError

from chathistory_redis.batches import Batches
from chathistory_redis.scripts import Script
from chathistory_redis.translation import DRIVER_ERRORS, translate

Client: TypeAlias = Redis | RedisCluster
"""What a store is reached through; `decode_responses=True` makes no difference."""

Argument: TypeAlias = bytes | str | int

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

    def __init__(self, client: Client) -> None:
        self._client = client
        self._free = asyncio.Semaphore(min(_MOST_AT_ONCE, _connections(client)))
        self._batches = None if isinstance(client, RedisCluster) else Batches(client, self._free)

    async def run(
        self,
        script: Script,
        keys: Sequence[bytes],
        arguments: Sequence[Argument],
        *,
        action: str,
        once: bool = False,
        together: bool = False,
    ) -> list[bytes]:
        """What the script replies.

        `action` is for errors, after "did not"; `once` where the driver must not repeat the call after a lost reply;
        `together` where call and reply are so small that others may share their round trip.
        """
        call = self._call_once if once else self._call_together if together else self._call
        try:
            try:
                return await call("EVALSHA", script.sha, len(keys), *keys, *arguments)
            except NoScriptError:
                return await call("EVAL", script.text, len(keys), *keys, *arguments)
        except DRIVER_ERRORS as error:
            raise translate(error, action) from None

    async def _call(self, *command: Argument) -> list[bytes]:
        async with self._free:
            reply: list[bytes] = await self._client.execute_command(*command, **{NEVER_DECODE: True})
            return reply

    async def _call_together(self, *command: Argument) -> list[bytes]:
        reply = await self._batches.call(command) if self._batches else None
        return await self._call(*command) if reply is None else reply

    async def _call_once(self, *command: Argument) -> list[bytes]:
        reply: list[bytes]
        async with self._free:
            if isinstance(self._client, RedisCluster):
                await to_its_end(self._client.initialize())
                slot = self._client.keyslot(command[3])
                node = self._client.nodes_manager.get_node_from_slot(slot)
                # for nodes that are named the client follows redirections, and repeats nothing
                reply = await self._client.execute_command(*command, target_nodes=node, **{NEVER_DECODE: True})
                return reply
            pool = self._client.connection_pool
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # a decorator hides its types
            try:
                await connection.send_command(*command)
                reply = await connection.read_response(disable_decoding=True)
                return reply
            finally:
                await pool.release(connection)

    async def close(self) -> None:
        """Wait for what is on its way."""
        if self._batches:
            await self._batches.close()


def _connections(client: Client) -> int:
    if isinstance(client, RedisCluster):
        return min((node.max_connections for node in client.get_nodes()), default=_MOST_AT_ONCE)
    return client.connection_pool.max_connections
