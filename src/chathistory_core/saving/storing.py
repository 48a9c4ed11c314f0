"""What is stored of a run that has ended."""

from typing import Literal, TypeAlias, get_args
from weakref import WeakSet

from chathistory_core.conversations import Conversations
from chathistory_core.errors import RevisionConflictError, TurnConflictError
from chathistory_core.formats.note import is_note
from chathistory_core.provider import InvokingContext
from chathistory_core.reading import read_on
from chathistory_core.records import NO_REVISION, Conversation
from chathistory_core.saving.kept import kept_id
from chathistory_core.saving.replays import find_written, is_kept_request
from chathistory_core.saving.runs import Run

OnFailure: TypeAlias = Literal["discard", "request", "partial"]
"""What is stored of a run that fails: nothing, its request, or the request and what had come of the answer."""


class Storing:
    """Stores runs as the policies say.

    A turn that may have been tried before is written only while it is known what is stored of it: an attempt that
    succeeds and one that fails at the same time store no message twice.
    """

    def __init__(self, conversations: Conversations, *, on_failure: OnFailure, exclusive: bool) -> None:
        if on_failure not in get_args(OnFailure):
            allowed = ", ".join(map(repr, get_args(OnFailure)))
            raise ValueError(f"`on_failure` is one of {allowed}, not {on_failure!r}")
        self.on_failure = on_failure
        self.exclusive = exclusive
        self._conversations = conversations
        self._kept = WeakSet[InvokingContext]()

    async def save(self, run: Run) -> None:
        """Store the run; what is stored of it already is not stored again.

        Raises:
            EpochChangedError: its conversation was cleared or has expired meanwhile.
            RevisionConflictError: the run is `exclusive`, and others wrote meanwhile.
            TurnConflictError: the turn is stored with another answer.
        """
        await (self._keep(run) if run.failed else self._append(run))

    async def size(self, run: Run) -> int:
        """How many bytes its messages are."""
        return sum(len(record.payload) for record in await self._conversations.encode(run.key, run.messages))

    async def _append(self, run: Run) -> None:
        request, answer = run.context.request_messages, run.context.response_messages or ()
        guarded = self.exclusive or self._may_be_retry(run)
        seen = run.conversation
        if self.exclusive and seen is None:
            raise RevisionConflictError(run.key)  # the run was begun without knowing what is there
        while True:
            messages = (*(() if await self._is_kept(run, seen) else request), *answer)
            if not messages:
                return
            try:
                await self._conversations.append(run.key, messages, turn_id=run.turn_id, loaded=seen, unchanged=guarded)
                return
            except RevisionConflictError:
                seen = await self._since(run, seen)

    async def _keep(self, run: Run) -> None:
        answer = run.partial if self.on_failure == "partial" else []
        guarded = self._may_be_retry(run)
        seen, attempt = run.conversation, run.tried + 1
        while True:
            messages = (*(run.context.request_messages if attempt == 1 else ()), *answer)
            if not messages or await self._is_written(run, seen):
                return
            try:
                await self._conversations.append(
                    run.key, messages, turn_id=kept_id(run.turn_id, attempt), loaded=seen, unchanged=guarded
                )
            except TurnConflictError:  # another attempt has that place
                attempt += 1
            except RevisionConflictError:
                seen = await self._conversations.head(run.key, run.conversation, turn_id=run.turn_id)
            else:
                if run.context.invoking is not None:
                    self._kept.add(run.context.invoking)
                return

    def _may_be_retry(self, run: Run) -> bool:
        """Whether something may be kept of the turn: not where its id was made for this run."""
        began = run.context.invoking
        return self.on_failure != "discard" and (began is None or began.turn_id is not None or began in self._kept)

    def _may_be_tried(self, run: Run, seen: Conversation | None) -> bool:
        """Whether there may be another attempt at the run's turn in the conversation as it was seen."""
        return self._may_be_retry(run) and (seen is None or seen.revision != NO_REVISION)

    async def _is_written(self, run: Run, seen: Conversation | None) -> bool:
        """Whether another attempt at the run's turn succeeded."""
        if not self._may_be_tried(run, seen):
            return False
        asked = await self._conversations.encode(run.key, run.context.request_messages)
        return await find_written(self._conversations, run.key, asked, run.turn_id) is not None

    async def _is_kept(self, run: Run, seen: Conversation | None) -> bool:
        """Whether the run's request is kept of an attempt at its turn, and need not be stored.

        Raises:
            TurnConflictError: another request is.
        """
        if not run.tried and not self._may_be_tried(run, seen):
            return False
        asked = await self._conversations.encode(run.key, run.context.request_messages)
        kept = await find_written(self._conversations, run.key, asked, kept_id(run.turn_id, 1))
        if kept is None:
            return run.tried > 0
        if not await is_kept_request(self._conversations, run.key, asked, run.turn_id, kept):
            raise TurnConflictError(run.key, run.turn_id, kept)
        return True

    async def _since(self, run: Run, seen: Conversation | None) -> Conversation:
        """The conversation as it is now, where what was written since is no reason not to store the run."""
        if seen is not None and self.exclusive:
            newer = await read_on(self._conversations.backend, run.key, seen)
            is_same = newer is not None and newer.epoch == seen.epoch  # who holds no record is told of no other epoch
            if newer is not None and is_same and all(is_note(record.format) for record in newer.records):
                return newer if newer.records else newer._replace(records=seen.records)
            await self._conversations.head(run.key, run.conversation, turn_id=run.turn_id)
            raise RevisionConflictError(run.key)
        return await self._conversations.head(run.key, run.conversation, turn_id=run.turn_id)
