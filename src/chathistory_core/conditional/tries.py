"""How often something is tried again."""

import asyncio
from random import random

from chathistory_core.errors import BackendUnavailableError

_MOST = 100
_FAILURES = 3
_LONGEST = 0.05
"""Seconds; all tries together wait for two and a half on the average."""


class Tries:
    """Lets a call that others got in the way of be made again, after a pause, until it has been made too often."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._made = 0
        self.failures = 0

    async def another(self) -> None:
        """Return when it is time for the next try.

        Raises:
            BackendUnavailableError: it would be one too many.
        """
        if self._made == _MOST:
            raise BackendUnavailableError(
                f"conversation {self._key!r} was changed by others during each of {_MOST} tries: repeat the call"
            )
        if self._made:
            await asyncio.sleep(random() * min(_LONGEST, 0.001 * 2**self._made))  # noqa: S311 - a pause, no secret
        self._made += 1

    def failed(self, error: BackendUnavailableError) -> None:
        """Take note of a commit of which nobody knows what became.

        Raises:
            BackendUnavailableError: the error itself, when there were too many.
        """
        self.failures += 1
        if self.failures == _FAILURES:
            raise error
