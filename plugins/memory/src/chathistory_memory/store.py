"""What a memory backend keeps its conversations in."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice
from threading import Lock

from chathistory_core import ConversationSummary, Order
from chathistory_memory.log import Log

_PURGED_AT_ONCE = 100
"""The most expired conversations that one write removes."""


class MemoryStore:
    """Conversations that several backends of one process may share, in threads of their own too: hold the lock."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._logs: dict[str, Log] = {}
        """In the order of their last writes, which is that of their expiry."""
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

    def renew(self, log: Log, expires_at: datetime | None) -> None:
        """Note that the conversation was written just now."""
        log.expires_at = expires_at
        self._logs[log.key] = self._logs.pop(log.key)

    def drop(self, key: str) -> None:
        """Remove the conversation, if there is one."""
        if self._logs.pop(key, None) is not None:
            del self._keys[bisect_left(self._keys, key)]

    def purge(self, now: datetime) -> None:
        """Remove some of what has expired."""
        for key in [log.key for log in islice(self._logs.values(), _PURGED_AT_ONCE) if log.expired(now)]:
            self.drop(key)

    def page(
        self, prefix: str, after: ConversationSummary | None, limit: int | None, order: Order, now: datetime
    ) -> Sequence[ConversationSummary]:
        """The summaries that a backend answers."""
        if order == "key":
            found = self._by_key(prefix, after.key if after else "", now)
        else:
            recent = sorted((log.summary for log in self._under(prefix, prefix, now)), key=_recency)
            found = iter(recent if after is None else recent[bisect_right(recent, _recency(after), key=_recency) :])
        return tuple(islice(found, limit))

    def _by_key(self, prefix: str, after: str, now: datetime) -> Iterator[ConversationSummary]:
        return (log.summary for log in self._under(prefix, max(prefix, after), now) if log.key != after)

    def _under(self, prefix: str, start: str, now: datetime) -> Iterator[Log]:
        for key in islice(self._keys, bisect_left(self._keys, start), None):
            if not key.startswith(prefix):
                return
            if (log := self.find(key, now)) is not None:
                yield log


def _recency(summary: ConversationSummary) -> tuple[float, str]:
    return -summary.updated_at.timestamp(), summary.key
