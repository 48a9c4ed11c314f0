"""What the tests of the kit are made of: a loop of their own, short records, and what a conversation holds."""

import asyncio
import os
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from random import Random
from typing import TypeAlias, TypeVar

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.records import Conversation, ConversationSummary, Record, Written, new_turn_id

BackendFactory: TypeAlias = Callable[[], ChatHistoryBackend]
"""Gives another unopened backend over the same store at each call."""

Suite = TypeVar("Suite")

TIME_LIMIT = 120
"""Seconds after which a test that hangs fails."""

EXAMPLES = "BACKEND_TESTS_EXAMPLES"
"""The environment variable that says how many cases a random test runs. (Names in CHATHISTORY_ are settings.)"""


def examples(default: int) -> int:
    """How many cases a random test runs."""
    return int(os.environ.get(EXAMPLES, default))


def chances(default: int) -> Iterator[Random]:
    """Where each case of a random test gets its draws: the same each time, unless a number of cases was asked for."""
    for seed in range(examples(default)):
        yield Random(None if EXAMPLES in os.environ else seed)  # noqa: S311 - a schedule, not a secret


def in_loop(
    test: Callable[[Suite, BackendFactory], Coroutine[object, object, None]],
) -> Callable[[Suite, BackendFactory], None]:
    """The test as a plain function that runs in an event loop of its own, whatever plugins pytest has."""

    def run(self: Suite, make_backend: BackendFactory) -> None:
        asyncio.run(_bounded(test(self, make_backend)))

    _name(run, test)
    return run


def with_backend(
    test: Callable[[Suite, ChatHistoryBackend], Coroutine[object, object, None]],
) -> Callable[[Suite, BackendFactory], None]:
    """The test as a plain function that gives it one opened backend in an event loop of its own."""

    async def opened(self: Suite, make_backend: BackendFactory) -> None:
        __tracebackhide__ = True
        async with make_backend() as backend:
            await test(self, backend)

    _name(opened, test)
    return in_loop(opened)


def _name(function: Callable[..., object], test: Callable[..., object]) -> None:
    # functools.wraps would also set __wrapped__, which leads pytest and its plugins to the coroutine function
    function.__name__, function.__qualname__ = test.__name__, test.__qualname__
    function.__module__, function.__doc__ = test.__module__, test.__doc__


async def _bounded(scenario: Coroutine[object, object, None]) -> None:
    __tracebackhide__ = True
    async with asyncio.timeout(TIME_LIMIT):
        await scenario


def records(*texts: str) -> list[Record]:
    """A record for each text."""
    return [Record(text.encode(), "text") for text in texts]


async def say(backend: ChatHistoryBackend, key: str, *texts: str, turn_id: str | None = None) -> Written:
    """Append a record for each text, under a turn of their own."""
    return await backend.append(key, records(*texts), turn_id=new_turn_id() if turn_id is None else turn_id)


def texts_of(conversation: Conversation) -> list[str]:
    """What `records` made the conversation's records of."""
    return [record.payload.decode() for record in conversation.records]


def keys_of(summaries: Sequence[ConversationSummary]) -> list[str]:
    """The keys, in the order of the page."""
    return [summary.key for summary in summaries]


async def next_instant() -> None:
    """Wait until the machine's clock shows another time, which on some systems takes milliseconds."""
    now = datetime.now(UTC)
    while datetime.now(UTC) == now:  # noqa: ASYNC110 - no event tells of a clock
        await asyncio.sleep(0)
