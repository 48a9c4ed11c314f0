"""The backend: the protocol of the core, each operation one script in the server."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from types import TracebackType
from typing import Self

from redis.asyncio import Redis, RedisCluster

from chathistory_core import (
    BackendStateError,
    Conversation,
    ConversationSummary,
    EpochChangedError,
    Limits,
    Opened,
    Operation,
    Order,
    Record,
    RevisionConflictError,
    TurnConflictError,
    Written,
    check_key,
    check_page,
    check_read,
    check_write,
    new_revision,
    turn_digest,
)
from chathistory_redis.exchange import Argument
from chathistory_redis.layout import MAX_SHARDS, MAX_TTL, NAMESPACE, pack, token
from chathistory_redis.listing import list_page
from chathistory_redis.reading import read
from chathistory_redis.scripts import CLEAR, WRITE
from chathistory_redis.server import Client, to_its_end
from chathistory_redis.store import Store, open_store
from chathistory_redis.translation import DRIVER_ERRORS

_SWEPT = 16
"""Expired conversations that one write takes out of the listing: more than one write puts in."""


_SMALL = 16 * 2**10
_FEW = 50
"""Bytes and records of a write that delays nobody who shares its round trip: more than most turns have."""


class RedisBackend:
    """Keeps conversations on a Redis or Valkey server, or on a cluster of them."""

    limits = Limits()

    def __init__(
        self,
        client: Client | Callable[[], Client],
        *,
        namespace: str = "chathistory",
        ttl: timedelta | None = None,
        shards: int | None = None,
        allow_eviction: bool = False,
        timeout: timedelta | None = None,
    ) -> None:
        """A `client` is borrowed: its owner closes it, in the loop where it was used. What a function makes is closed.

        `namespace` begins the names of all keys; `ttl` is how long a conversation stays after its last write. `shards`
        spread a new store over a cluster (1 where it is not given); of a store that is there the number is fixed.
        `allow_eviction` takes a server that removes keys when it is full: what it removed is gone as if it had expired.
        `timeout` is how long to wait for an answer, which costs less than the `socket_timeout` of a client.
        """
        if not re.fullmatch(NAMESPACE, namespace):
            raise ValueError(f"`namespace` is {namespace!r}: it must be text without braces and control characters")
        if ttl is not None and not timedelta(0) < ttl <= MAX_TTL:
            raise ValueError(f"`ttl` is {ttl}: it must be more than nothing, and at most {MAX_TTL.days} days")
        if shards is not None and not 1 <= shards <= MAX_SHARDS:
            raise ValueError(f"`shards` is {shards}: it must be from 1 to {MAX_SHARDS}")
        if timeout is not None and timeout <= timedelta(0):
            raise ValueError(f"`timeout` is {timeout}: it must be more than nothing")
        self._given = client
        self._namespace = namespace
        self._ttl = 0 if ttl is None else max(1, ttl // timedelta(microseconds=1))
        self._shards = shards
        self._allow_eviction = allow_eviction
        self._timeout = None if timeout is None else timeout.total_seconds()
        self._opened = Opened("the Redis backend")
        self._owned: Client | None = None
        self._store: Store | None = None

    async def __aenter__(self) -> Self:
        self._opened.open()
        try:
            client = self._given
            if not isinstance(client, Redis | RedisCluster):
                client = self._owned = client()
            self._store = await open_store(
                client,
                self._namespace,
                shards=self._shards,
                allow_eviction=self._allow_eviction,
                timeout=self._timeout,
            )
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        store, client = self._store, self._owned
        self._store = self._owned = None
        self._opened.close()
        try:
            if store is not None:
                await store.server.close()
        finally:
            if client is not None:
                with suppress(*DRIVER_ERRORS):  # of a connection that is broken already
                    await to_its_end(client.aclose())

    def _checked(self) -> Store:
        self._opened.check()
        if self._store is None:
            raise BackendStateError("the Redis backend is still being opened: wait for `async with`")
        return self._store

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        check_read(key, limit, before, after)
        return await read(self._checked(), key, limit, before, after)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self._write("append", key, records, turn_id, expected_revision, expected_epoch)

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self._write("replace", key, records, turn_id, expected_revision, None)

    async def _write(
        self,
        operation: Operation,
        key: str,
        records: Sequence[Record],
        turn_id: str,
        expected_revision: str | None,
        expected_epoch: str | None,
    ) -> Written:
        batch = check_write(operation, key, records, turn_id, self.limits)
        store = self._checked()
        size = sum(len(record.payload) for record in batch)
        arguments: list[Argument] = [
            operation,
            turn_id.encode(),
            turn_digest(operation, batch),
            token(new_revision()),
            token(new_revision()),
            token(expected_revision),
            token(expected_epoch),
            self._ttl,
            self.limits.turns_kept,
            _SWEPT,
            size,
        ]
        action = "append to conversation" if operation == "append" else "replace conversation"
        status, *reply = await store.run(
            WRITE, key, [*arguments, *pack(batch)], action=action, together=size <= _SMALL and len(batch) <= _FEW
        )
        if status == b"revision":
            raise RevisionConflictError(key)
        if status == b"epoch":
            raise EpochChangedError(key)
        revision, epoch, first = reply
        written = Written(revision.hex(), epoch.hex(), int(first), replayed=status == b"replayed")
        if status == b"taken":
            raise TurnConflictError(key, turn_id, written)
        return written

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        check_key(key)
        store = self._checked()
        # repeated after a lost reply it would take away what was appended in between
        (status,) = await store.run(
            CLEAR, key, [token(expected_revision), _SWEPT], action="clear conversation", once=True
        )
        if status == b"revision":
            raise RevisionConflictError(key)
        return status == b"cleared"

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        check_page(prefix, limit, order)
        return await list_page(self._checked(), prefix, after, limit, order)
