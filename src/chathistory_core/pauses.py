"""Long work on the event loop, in slices."""

import asyncio
from time import perf_counter
from typing import Final

SLICE: Final = 0.002
"""Seconds of work between two chances for other tasks: what takes longer in one piece goes over it, once."""


class Pauses:
    """Says when it is time to let other tasks run, in work that begins now."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end = perf_counter() + SLICE

    @property
    def due(self) -> bool:
        """Whether a slice of work is done."""
        return perf_counter() >= self._end

    async def pause(self) -> None:
        """Let other tasks run, once."""
        await asyncio.sleep(0)
        self._end = perf_counter() + SLICE
