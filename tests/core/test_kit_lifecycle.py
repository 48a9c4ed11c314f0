"""Each backend here lets somebody in who must not be, or loses something at closing; the kit must fail on it."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import pytest

from chathistory_core import (
    Conversation,
    ConversationSummary,
    Order,
    Record,
    Written,
)
from chathistory_memory import MemoryBackend, MemoryStore


class StaysOpen(MemoryBackend):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        pass


class OpensTwice(MemoryBackend):
    async def __aenter__(self) -> Self:
        await super().__aexit__(None, None, None)
        return await super().__aenter__()


class ASecondOpeningCloses(MemoryBackend):
    async def __aenter__(self) -> Self:
        try:
            return await super().__aenter__()
        except BaseException:
            await super().__aexit__(None, None, None)
            raise


class OpensOnce(MemoryBackend):
    opened = False

    async def __aenter__(self) -> Self:
        assert not self.opened, "opened before"
        self.opened = True
        return await super().__aenter__()


class ForgetsAtClosing(MemoryBackend):
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for summary in await self.summaries():
            await self.clear(summary.key)
        await super().__aexit__(kind, error, traceback)


class SwallowsErrors(MemoryBackend):
    async def __aexit__(  # type: ignore[override] # that it returns something is what is wrong
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        await super().__aexit__(kind, error, traceback)
        return True


class NeedsALoopToBeMade(MemoryBackend):
    def __init__(self, store: MemoryStore) -> None:
        try:
            self.loop = asyncio.get_running_loop()
        except RuntimeError:
            raise ValueError("no running loop") from None
        super().__init__(store)


class AnswersAnyone(MemoryBackend):
    """Opens itself anew for whoever calls."""

    async def _reopen(self) -> None:
        await super().__aexit__(None, None, None)
        await super().__aenter__()

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        await self._reopen()
        return await super().get(key, limit=limit, before=before, after=after)


class WritesForAnyone(AnswersAnyone):
    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        await self._reopen()
        return await super().replace(key, records, turn_id=turn_id, expected_revision=expected_revision)

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        return await MemoryBackend.get(self, key, limit=limit, before=before, after=after)


class ListsForAnyone(AnswersAnyone):
    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        await self._reopen()
        return await super().summaries(prefix=prefix, after=after, limit=limit, order=order)

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        return await MemoryBackend.get(self, key, limit=limit, before=before, after=after)


MUTANTS: list[tuple[type[MemoryBackend], str]] = [
    (StaysOpen, "test_a_closed_backend_refuses_every_call"),
    (StaysOpen, "test_a_closed_backend_opens_again_and_has_its_records"),
    (StaysOpen, "test_an_error_inside_the_block_goes_through_and_closes"),
    (OpensTwice, "test_a_second_opening_is_refused_and_the_first_goes_on"),
    (ASecondOpeningCloses, "test_a_second_opening_is_refused_and_the_first_goes_on"),
    (OpensOnce, "test_a_closed_backend_opens_again_and_has_its_records"),
    (OpensOnce, "test_a_closed_backend_opens_again_in_another_loop"),
    (ForgetsAtClosing, "test_a_closed_backend_opens_again_and_has_its_records"),
    (ForgetsAtClosing, "test_closing_one_handle_leaves_the_others_open"),
    (ForgetsAtClosing, "test_a_turn_is_remembered_by_another_handle_and_after_closing"),
    (SwallowsErrors, "test_an_error_inside_the_block_goes_through_and_closes"),
    (NeedsALoopToBeMade, "test_a_backend_is_made_without_a_loop_and_opened_in_one"),
    (AnswersAnyone, "test_a_backend_that_was_not_opened_refuses_every_call"),
    (AnswersAnyone, "test_another_loop_of_the_same_thread_is_refused"),
    (AnswersAnyone, "test_another_thread_is_refused"),
    (WritesForAnyone, "test_a_closed_backend_refuses_every_call"),
    (WritesForAnyone, "test_another_thread_is_refused"),
    (ListsForAnyone, "test_a_closed_backend_refuses_every_call"),
]


@pytest.mark.parametrize(("broken", "test"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_the_kit_catches_a_backend_that(
    broken: type[MemoryBackend], test: str, kit_catches: Callable[[type[MemoryBackend], str], None]
) -> None:
    kit_catches(broken, test)


@pytest.mark.skipif(sys.platform == "win32", reason="this system cannot fork")
def test_the_kit_catches_a_backend_that_answers_a_forked_child(
    kit_catches: Callable[[type[MemoryBackend], str], None],
) -> None:
    kit_catches(AnswersAnyone, "test_a_forked_child_is_refused_and_the_parent_goes_on")
