"""What a memory backend keeps its conversations in."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from threading import Lock

from chathistory_core import ConversationSummary, Order
from chathistory_memory.log import Log

_LOOKED_AT = 10
"""How many conversations a write looks at, to remove those that have expired."""


class MemoryStore:
    """Conversations that several backends of one process may share, in threads of their own too: hold the lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._logs: dict[str, Log] = {}
        """First the one that was not looked at for longest."""
        self._keys: list[str] = []
        """Sorted."""

    def find(self, key: str, now: datetime) -> Log | None:
        """The conversation, where there is one that has not expired."""
        log = self._logs.get(key)
        return None if log is None or log.expired(now) else log

    def start(self, key: str, now: datetime) -> Log:
        """A new conversation, in the place of an expired one."""
        self.drop(key)
        insort(self._keys, key)
        log = self._logs[key] = Log(key, now)
        return log

    def drop(self, key: str) -> None:
        """Remove the conversation, if there is one."""
        if self._logs.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]

    def purge(self, now: datetime) -> None:
        """Look at some conversations, each write at others, and remove those that have expired."""
        for log in list(islice(self._logs.values(), _LOOKED_AT)):
            if log.expired(now):
                self.drop(log.key)
            else:
                self._logs[log.key] = self._logs.pop(log.key)

    def page(
        self, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order, now: datetime
    ) -> Sequence[ConversationSummary]:
        """The summaries that a backend answers."""
        if order == "key":
            found = self._by_key(prefix, after.key if after else "", now)
        else:
            recent = sorted((log.summary for log in self._under(prefix, prefix, now)), key=_recency)
            found = iter(recent if after is None else recent[bisect_right(recent, _recency(after), key=_recency) :])
        return tuple(islice(found, None if limit is None else min(limit, len(self._keys))))

    def _by_key(self, prefix: str, after: str, now: datetime) -> Iterator[ConversationSummary]:
        return (log.summary for log in self._under(prefix, max(prefix, after), now) if log.key != after)

    def _under(self, prefix: str, start: str, now: datetime) -> Iterator[Log]:
        for index in range(bisect_left(self._keys, start), len(self._keys)):
            key = self._keys[index]
            if not key.startswith(prefix):
                return
            if (log := self.find(key, now)) is not None:
                yield log


def _recency(summary: ConversationSummary) -> tuple[float, str]:
    return -summary.updated_at.timestamp(), summary.key
