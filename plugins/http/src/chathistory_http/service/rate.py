"""How often a caller may come: a bucket each, which fills steadily and from which every request takes one."""

import math
from collections import OrderedDict
from collections.abc import Callable

_CALLERS = 10_000
"""Callers that are remembered; of more, those that were away longest begin anew, with a full bucket."""

_BURST_SECONDS = 2.0


class Rate:
    """So many requests a second for each caller, and those of two seconds at once."""

    def __init__(self, per_second: float, *, clock: Callable[[], float]) -> None:
        if not per_second > 0:
            raise ValueError(f"`per_second` is {per_second}: it must be more than 0")
        self._per_second = per_second
        self._size = max(1.0, per_second * _BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # what was in it, and when

    def take(self, caller: str) -> int:
        """0 where the request may pass, else after how many seconds the next one may."""
        now = self._clock()
        left, at = self._buckets.pop(caller, (self._size, now))
        left = min(self._size, left + (now - at) * self._per_second)
        passes = left >= 1
        self._buckets[caller] = (left - 1 if passes else left, now)
        if len(self._buckets) > _CALLERS:
            self._buckets.popitem(last=False)
        return 0 if passes else math.ceil((1 - left) / self._per_second)
