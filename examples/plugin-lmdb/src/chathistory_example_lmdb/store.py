"""What `ConditionalBackend` needs, in LMDB."""

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import lmdb

from chathistory_core import BackendUnavailableError
from chathistory_core.conditional import Block, Head
from chathistory_example_lmdb.environment import acquire, release

_LONGEST = 511
"""Bytes of a key of LMDB. One of ours may have one more: its head shares the row of the 511 it begins with."""

Answer = TypeVar("Answer")


class LMDBStore:
    """Heads and blocks in two tables of a file; every call is one transaction in the store's own thread."""

    def __init__(self, path: str, *, map_size: int, sync: bool) -> None:
        self._path = path
        self._acquire = partial(acquire, path, map_size=map_size, sync=sync)

    async def __aenter__(self) -> Self:
        self._thread = ThreadPoolExecutor(1, "lmdb")
        try:
            self._open = await self._run(self._acquire)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._thread.submit(release, self._open)  # behind what cancelled calls have left to do
        await asyncio.to_thread(self._thread.shutdown)

    async def load(self, key: str) -> Head | None:
        def go() -> Head | None:
            with self._open.lmdb.begin(self._open.heads) as transaction:
                stem, rest = _split(key)
                return _heads(transaction.get(stem)).get(rest)

        return await self._run(go)

    async def commit(self, key: str, seen: Head | None, new: Head | None, blocks: Sequence[Block]) -> bool:
        def go() -> bool:
            with self._open.lmdb.begin(self._open.heads, write=True) as transaction:
                stem, rest = _split(key)
                heads = _heads(transaction.get(stem))
                if heads.get(rest) != seen:
                    return False
                for block in blocks:
                    transaction.put(_name(block.log, block.name), block.body, db=self._open.blocks)
                heads.pop(rest, None)
                if new is not None:
                    heads[rest] = new
                if heads:
                    transaction.put(stem, _row(heads))
                else:
                    transaction.delete(stem)
                return True

        return await self._run(go)

    async def scan(self, log: str, start: str, stop: str) -> Sequence[Block]:
        def go() -> Sequence[Block]:
            found = []
            with self._open.lmdb.begin(self._open.blocks) as transaction, transaction.cursor() as cursor:
                end = _name(log, stop)
                more = cursor.set_range(_name(log, start))
                while more and cursor.key() < end:
                    found.append(Block(log, cursor.key().decode().removeprefix(f"{log}/"), cursor.value()))
                    more = cursor.next()
            return found

        return await self._run(go)

    async def drop(self, log: str, names: Sequence[str] | None = None) -> None:
        def go() -> None:
            with self._open.lmdb.begin(self._open.blocks, write=True) as transaction, transaction.cursor() as cursor:
                for name in names or ():
                    transaction.delete(_name(log, name))
                while names is None and cursor.set_range(_name(log, "")) and cursor.key().startswith(_name(log, "")):
                    cursor.delete()

        await self._run(go)

    async def heads(self, *, prefix: str, after: str | None, limit: int) -> Sequence[Head]:
        def go() -> Sequence[Head]:
            found: list[Head] = []
            first, behind = prefix.encode(), (after or "").encode()
            with self._open.lmdb.begin(self._open.heads) as transaction, transaction.cursor() as cursor:
                more = cursor.set_range(max(first, behind)[:_LONGEST])
                while more and cursor.key().startswith(first[:_LONGEST]) and len(found) < limit:
                    for rest, head in sorted(_heads(cursor.value()).items()):
                        key = cursor.key() + rest
                        if key.startswith(first) and key > behind:
                            found.append(head)
                    more = cursor.next()
            return found[:limit]

        return await self._run(go)

    async def _run(self, work: Callable[[], Answer]) -> Answer:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except lmdb.Error as error:
            raise BackendUnavailableError(f"LMDB cannot use {self._path!r}: {error}") from None


def _name(log: str, name: str) -> bytes:
    return f"{log}/{name}".encode()


def _split(key: str) -> tuple[bytes, bytes]:
    return key.encode()[:_LONGEST], key.encode()[_LONGEST:]


def _row(heads: dict[bytes, Head]) -> bytes:
    return json.dumps(
        [(rest.hex(), head.revision, head.body.decode("latin-1")) for rest, head in heads.items()]
    ).encode()


def _heads(row: bytes | None) -> dict[bytes, Head]:
    rows = json.loads(row) if row else []
    return {bytes.fromhex(rest): Head(revision, body.encode("latin-1")) for rest, revision, body in rows}
