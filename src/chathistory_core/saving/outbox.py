"""Runs that wait in memory, because the store could not be reached when they ended."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TypeAlias, get_args

from chathistory_core.errors import ChatHistoryError, EpochChangedError, TurnConflictError
from chathistory_core.messages import ChatMessage
from chathistory_core.saving.finish import finish
from chathistory_core.saving.runs import Run, shown
from chathistory_core.saving.storing import Storing

logger = logging.getLogger("chathistory")

OnSaveError: TypeAlias = Literal["raise", "outbox"]
"""What becomes of a run that the store cannot take now: an error holds it, or it waits in memory."""

MAX_RUNS: Final = 1_000
MAX_BYTES: Final = 64 * 2**20
"""How much waits at most, measured as it is to be stored."""

_MOST_FAILED: Final = 3
"""How many conversations are tried in vain before the store counts as gone."""


class Outbox:
    """Stores runs, and keeps those that the store cannot take now.

    They are stored under their own turn ids, each conversation's in the order in which they ended: before anything else
    of their conversation is loaded or stored; one more with each other run that is stored, for then the store answers
    again; and all of them on demand.
    """

    def __init__(self, storing: Storing, *, on_save_error: OnSaveError, save_timeout: float) -> None:
        if on_save_error not in get_args(OnSaveError):
            allowed = ", ".join(map(repr, get_args(OnSaveError)))
            raise ValueError(f"`on_save_error` is one of {allowed}, not {on_save_error!r}")
        if not save_timeout >= 0:
            raise ValueError(f"`save_timeout` is a number of seconds, not {save_timeout!r}")
        self._storing = storing
        self._is_used = on_save_error == "outbox"
        self._save_timeout = save_timeout
        self._waiting: list[_Waiting] = []

    async def store(self, run: Run) -> None:
        """Store the run, also while this task is being cancelled; or let it wait, where there is room.

        Raises:
            ChatHistoryError: it is not stored and does not wait.
        """
        what = f"turn {run.turn_id!r} of conversation {run.key!r}"
        await finish(partial(self._store, run, what), what, timeout=self._save_timeout)

    async def _store(self, run: Run, what: str) -> None:
        try:
            await self.save(run.key)
            await self._storing.save(run)
        except asyncio.CancelledError:
            await self._take(run)
            raise
        except ChatHistoryError as error:
            if not error.retryable or not await self._take(run):
                raise
            logger.warning("%s waits to be stored: %s", what, type(error).__name__)
        else:
            await self._save_another()

    async def _take(self, run: Run) -> bool:
        """Whether the run waits from now on."""
        if not self._is_used:
            return False
        for other in self.waiting(run.key):
            if (other.turn_id, other.failed) == (run.turn_id, run.failed):
                if other.messages == run.messages:
                    return True
                if not run.failed:
                    return False  # of two answers to a turn one would be given up in silence
        size = await self._storing.size(run)
        if len(self._waiting) >= MAX_RUNS or sum(each.size for each in self._waiting) + size > MAX_BYTES:
            return False
        self._waiting.append(_Waiting(run, size))
        return True

    async def _save_another(self) -> None:
        for run in self.waiting()[:1]:
            with suppress(ChatHistoryError):  # it waits on; the run that was stored is none the worse for it
                await self._save(run)

    def waiting(self, key: str | None = None, *, prefix: str = "") -> list[Run]:
        """The runs that wait: of one conversation, or of all whose keys have this prefix."""
        return [run for run, _ in self._waiting if run.key.startswith(prefix) and (key is None or run.key == key)]

    async def save(self, key: str | None = None, *, prefix: str = "") -> None:
        """Store the runs that wait, of one conversation or of all whose keys have this prefix, as far as it goes.

        A run whose conversation was cleared, or whose turn is stored with another answer, is given up, as the log says.

        Raises:
            BackendUnavailableError: the store still does not take them; they wait on.
        """
        failed: dict[str, ChatHistoryError] = {}
        for run in self.waiting(key, prefix=prefix):
            if run.key in failed:
                continue  # behind the one that failed
            try:
                await self._save(run)
            except ChatHistoryError as error:
                failed[run.key] = error
                if len(failed) == _MOST_FAILED:
                    break
        if failed:
            raise next(iter(failed.values()))

    async def _save(self, run: Run) -> None:
        try:
            await self._storing.save(run)
        except (EpochChangedError, TurnConflictError) as error:
            logger.error("a run that waited is not stored: %s", error)  # noqa: TRY400 - where it was raised tells nothing
        except ChatHistoryError:
            self._waiting.sort(key=lambda each: each.run.key == run.key)  # the next ones tried are of others
            raise
        self._forget(run)

    async def shown(self, key: str, turn_id: str | None) -> list[ChatMessage]:
        """What a model sees of the runs of a conversation that wait, though it was tried to store them now.

        That is what it will see when they are stored: nothing of the turn that is tried again.
        """
        with suppress(ChatHistoryError):  # loading tells of a store that is gone, saving of a run that it does not take
            await self.save(key)
        return shown([run for run in self.waiting(key) if run.turn_id != turn_id])

    def answer(self, key: str, turn_id: str, request: Sequence[ChatMessage]) -> tuple[ChatMessage, ...] | None:
        """What the turn that began with this request was answered, where it waits."""
        for run in self.waiting(key):
            answer = run.context.response_messages
            if run.turn_id == turn_id and answer is not None and list(run.context.request_messages) == list(request):
                return tuple(answer)
        return None

    def clear(self, key: str) -> None:
        """Forget the runs of a conversation that was cleared: they shall not bring it back."""
        for run in self.waiting(key):
            self._forget(run)

    def _forget(self, run: Run) -> None:
        self._waiting = [each for each in self._waiting if each.run is not run]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Try once more to store all that waits.

        Raises:
            ChatHistoryError: some of it is not stored, and is in the error's `unsaved`. Where the block raises too, the
                log says so instead.
        """
        try:
            await self._empty()
        except Exception:
            if error is None:  # else that one is to be seen
                raise

    async def _empty(self) -> None:
        if not self._waiting:
            return
        try:
            await finish(self.save, "what waited to be stored", timeout=self._save_timeout)
        except ChatHistoryError as error:
            error.unsaved = tuple(run.context for run in self.waiting())
            raise
        finally:
            if self._waiting:
                logger.error("runs that waited and are not stored: %s", len(self._waiting))


class _Waiting(NamedTuple):
    run: Run
    size: int
