"""A store in memory that is as bad as `ConditionalStore` allows."""

import asyncio
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import partial
from random import Random
from typing import TypeVar

import pytest

from chathistory_core import BackendUnavailableError
from chathistory_core.conditional import Block, Head

BATCH = 25
PAGE = 100

Answer = TypeVar("Answer")


class Killed(BaseException):
    """What a writer that is killed never gets to see."""


class Table:
    """Heads and blocks; every request takes a while, and may be lost, or its reply, or be made twice.

    `lost` is how often a request or its reply is lost, but for those of the `certain` kinds; `repeats` how often the
    driver makes it again then. With `versions` the head is compared by a version of the store's own. `slow=False`
    makes every request at once.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        lost: float = 0,
        repeats: int = 0,
        certain: Collection[str] = (),
        versions: bool = False,
        slow: bool = True,
        max_block: int = 256 * 1_024,
    ) -> None:
        self.random = Random(seed)
        self.lost, self.repeats, self.versions, self.slow, self.max_block = lost, repeats, versions, slow, max_block
        self.certain = certain
        self.heads_by_key: dict[str, Head] = {}
        self.logs: dict[str, dict[str, bytes]] = {}
        self.requests: Counter[str] = Counter()
        self.bytes_read = 0
        self.failing: dict[str, Callable[[], None]] = {}
        """What is called before requests of a kind."""
        self._version = 0

    async def load(self, key: str) -> Head | None:
        return await self._request("load", lambda: self.heads_by_key.get(key))

    async def commit(self, key: str, seen: Head | None, new: Head | None, blocks: Sequence[Block]) -> bool:
        staged = self.random.sample(blocks, len(blocks))
        for start in range(0, len(staged), BATCH):
            batch = staged[start : start + BATCH]
            await self._request("stage", partial(self._keep, batch))
        return await self._request("put", lambda: self._put(key, seen, new))

    async def scan(self, log: str, start: str, stop: str) -> Sequence[Block]:
        found: list[Block] = []
        while True:
            page = await self._request("scan", partial(self._page, log, start, stop))
            found += page
            if len(page) < PAGE:
                return found
            start = f"{page[-1].name}!"

    async def drop(self, log: str, names: Sequence[str] | None = None) -> None:
        assert len(log) == 32, "it would remove somebody else's"
        left = sorted(self.logs.get(log, {})) if names is None else list(names)
        self.random.shuffle(left)
        for start in range(0, max(1, len(left)), BATCH):
            batch = left[start : start + BATCH]
            await self._request("drop", partial(self._remove, log, batch))

    async def heads(self, *, prefix: str, after: str | None, limit: int) -> Sequence[Head]:
        def go() -> Sequence[Head]:
            keys = sorted(key for key in self.heads_by_key if key.startswith(prefix) and (after is None or key > after))
            return [self.heads_by_key[key] for key in keys[:limit]]

        return await self._request("heads", go)

    def blocks(self) -> list[Block]:
        """Everything in every log."""
        return [Block(log, name, body) for log, names in self.logs.items() for name, body in names.items()]

    def _keep(self, blocks: Sequence[Block]) -> None:
        for log, name, body in blocks:
            assert 0 < len(body) <= self.max_block
            assert len(log) == 32
            assert len(name) <= 80
            assert (log + name).isascii()
            assert self.logs.setdefault(log, {}).setdefault(name, body) == body, "a name was used for another body"

    def _put(self, key: str, seen: Head | None, new: Head | None) -> bool:
        have = self.heads_by_key.get(key)
        if self.versions:
            fits = (have and have.version) == (seen and seen.version)
        else:
            fits = (have and have.revision) == (seen and seen.revision)
        if fits and new is not None:
            assert len(new.body) <= 4_096
            self._version += 1
            self.heads_by_key[key] = new._replace(version=str(self._version) if self.versions else "")
        elif fits:
            self.heads_by_key.pop(key, None)
        return fits

    def _page(self, log: str, start: str, stop: str) -> list[Block]:
        names = sorted(self.logs.get(log, {}))
        found = [Block(log, name, self.logs[log][name]) for name in names[bisect_left(names, start) :] if name < stop]
        self.bytes_read += sum(len(block.body) for block in found[:PAGE])
        return found[:PAGE]

    def _remove(self, log: str, names: Sequence[str]) -> None:
        for name in names:
            self.logs.get(log, {}).pop(name, None)
        if not self.logs.get(log):
            self.logs.pop(log, None)

    async def _request(self, kind: str, go: Callable[[], Answer]) -> Answer:
        for last in (*[False] * self.repeats, True):
            self.requests[kind] += 1
            self.failing.get(kind, bool)()
            await self._wait()
            if self._is_lost(kind):
                if last:
                    raise BackendUnavailableError("the request was lost")
                continue
            answer = go()
            await self._wait()
            if self._is_lost(kind):
                if last:
                    raise BackendUnavailableError("the reply was lost")
                continue
            return answer
        raise AssertionError

    async def _wait(self) -> None:
        if self.slow:
            for _ in range(self.random.randrange(3)):
                await asyncio.sleep(0)

    def _is_lost(self, kind: str) -> bool:
        return kind not in self.certain and self.random.random() < self.lost / 2


@pytest.fixture
def make_table() -> type[Table]:
    return Table


@pytest.fixture
def killed() -> type[Killed]:
    return Killed
