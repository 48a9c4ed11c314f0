"""A store on a server: opened once the server can keep it."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from redis.asyncio import RedisCluster
from redis.exceptions import NoPermissionError, ResponseError

from chathistory_core import BackendError, ConfigurationError
from chathistory_redis import scripts
from chathistory_redis.exchange import Argument
from chathistory_redis.layout import VERSION, Layout, store_key
from chathistory_redis.scripts import Script
from chathistory_redis.server import Client, Server, to_its_end
from chathistory_redis.translation import DRIVER_ERRORS, translate

_SWEPT = 1_000
"""Expired conversations that an opening takes out of each shard's listing."""


class Store(NamedTuple):
    """Where conversations are, and how they lie there."""

    server: Server
    layout: Layout
    evicts: bool
    """Whether the server may remove keys by itself."""

    async def run(
        self,
        script: Script,
        key: str,
        arguments: Sequence[Argument],
        *,
        action: str,
        once: bool = False,
        together: bool = False,
    ) -> list[bytes]:
        """What a script of one conversation replies; see `Server.run`."""
        name = key.encode()
        shard = self.layout.shard_of(name)
        keys = (*shard.of_index, *shard.of_conversation(name))
        arguments = (name, int(self.evicts), *arguments)
        action = f"{action} {key!r}"
        reply = await self.server.run(script, keys, arguments, action=action, once=once, together=together)
        if reply[0] == b"lost":
            raise BackendError(
                f"the Redis server lost a part of conversation {key!r}, evicted or removed by another client: clear it"
            )
        return reply


async def open_store(
    client: Client, namespace: str, *, shards: int | None, allow_eviction: bool, timeout: float | None
) -> Store:
    """The store of this namespace; a new one is laid out. For `timeout` see `Server`.

    Raises:
        ConfigurationError: the server may evict what it keeps, or the store has another number of shards.
    """
    action = f"open the store {namespace!r}"
    try:
        async with asyncio.timeout(timeout):
            if isinstance(client, RedisCluster):
                await to_its_end(client.initialize())
            if not allow_eviction:
                await _refuse_eviction(client)
            for script in scripts.ALL:
                await client.script_load(script.text)
    except DRIVER_ERRORS as error:
        raise translate(error, action) from None
    server = Server(client, timeout)
    try:
        store = Store(server, await _layout(server, namespace, shards, action), allow_eviction)
        for shard in store.layout.shards:
            keys = (*shard.of_index, *shard.of_conversation(b""))
            await server.run(scripts.SWEEP, keys, [b"", 0, _SWEPT], action=action)
    except BaseException:
        await server.close()
        raise
    return store


async def _layout(server: Server, namespace: str, shards: int | None, action: str) -> Layout:
    (found,) = await server.run(scripts.STORE, [store_key(namespace)], [f"{VERSION} {shards or 1}"], action=action)
    version, _, count = found.decode().partition(" ")
    if version != str(VERSION):
        raise ConfigurationError(
            f"the store {namespace!r} is laid out in version {version}, not {VERSION}: "
            "install the release that wrote it, or choose another namespace"
        )
    if shards is not None and int(count) != shards:
        raise ConfigurationError(
            f"the store {namespace!r} has {count} shards, not {shards}: their number was fixed when it was made; "
            "leave the option out, or choose another namespace"
        )
    return Layout(namespace, int(count))


async def _refuse_eviction(client: Client) -> None:
    try:
        if isinstance(client, RedisCluster):
            told = [await client.info("memory", target_nodes=node) for node in client.get_primaries()]
        else:
            told = [await client.info("memory")]
    except NoPermissionError:
        raise ConfigurationError(_UNTOLD) from None
    except ResponseError as error:
        if "unknown command" not in str(error):
            raise
        raise ConfigurationError(_UNTOLD) from None
    for memory in told:
        policy = memory.get("maxmemory_policy", "noeviction")
        if memory.get("maxmemory") and policy != "noeviction":
            raise ConfigurationError(
                f"the Redis server evicts conversations when it is full (`maxmemory-policy {policy}`): set it to "
                "`noeviction`, or pass `allow_eviction` where losing some is fine"
            )


_UNTOLD = (
    "the Redis server does not tell whether it evicts conversations when it is full: let this user call INFO, or pass "
    "`allow_eviction` where losing some is fine"
)
