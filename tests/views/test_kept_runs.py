"""What is kept of runs that failed is shown through a window as it is shown without one."""

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chathistory_core import InvokingContext, StoredChatHistoryProvider, Window
from chathistory_core.messages import ChatMessage
from chathistory_memory import MemoryBackend

from .histories import generated
from .messages import ASSISTANT, SYSTEM, USER, calls, results

Attempt: TypeAlias = tuple[int, bool, int]
"""Of which turn, whether it fails, and how many rounds there were by then."""

ATTEMPTS = st.lists(st.tuples(st.integers(0, 8), st.sampled_from([True, True, False]), st.integers(0, 4)), max_size=24)
WINDOWS = st.one_of(
    st.integers(1, 8).map(lambda limit: Window(messages=limit)),
    st.integers(1, 3).map(lambda limit: Window(turns=limit)),
)


async def attempt(history: StoredChatHistoryProvider, number: int, rounds: int, *, fails: bool) -> None:
    async with history.turn(history.session("k"), [USER(f"question {number}")], turn_id=f"t{number}") as turn:
        for each in range(rounds):
            turn.add([calls(f"{each}"), results(f"{each}")])
        if fails:
            turn.add([calls("on the way"), ASSISTANT("well")][rounds % 2])
            raise ZeroDivisionError
        if not turn.replayed:
            turn.add(ASSISTANT(f"answer {number}"))


async def seen(history: StoredChatHistoryProvider, turn_id: str) -> Sequence[ChatMessage]:
    context = InvokingContext(None, history.session("k"), [], turn_id=turn_id)
    return [message.without_source() for message in await history.invoking(context)]


@generated
@given(ATTEMPTS, WINDOWS, st.integers(0, 9))
def test_a_window_over_failed_attempts_shows_what_the_whole_view_ends_with(
    attempts: list[Attempt], window: Window, asking: int
) -> None:
    async def work() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            done: set[int] = set()
            for number, fails, rounds in attempts:
                if number not in done:
                    await asyncio.gather(attempt(history, number, rounds, fails=fails), return_exceptions=True)
                    done |= set() if fails else {number}
            turn_id = "new" if asking in done else f"t{asking}"
            limited = StoredChatHistoryProvider(backend, window=window)
            whole = await seen(history, turn_id)
            assert await seen(limited, turn_id) == list(window.select(whole).messages)

    asyncio.run(work())


def test_rules_that_a_failed_attempt_kept_are_not_pinned_for_the_run_that_brings_them_again() -> None:
    async def fail(history: StoredChatHistoryProvider) -> None:
        async with history.turn(history.session("k"), [SYSTEM("rules"), USER("0")], turn_id="t0"):
            raise ZeroDivisionError

    async def work() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="request", window=Window(messages=2))
            with pytest.raises(ZeroDivisionError):
                await fail(history)
            for number in range(1, 40):
                await attempt(history, number, 0, fails=False)
            latest = [USER("question 39"), ASSISTANT("answer 39")]
            assert await seen(history, "t0") == latest
            assert await seen(history, "another") == [SYSTEM("rules"), *latest]

    asyncio.run(work())
