"""A turn of a conversation, for people without a framework."""

import logging
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from chathistory_core.messages import ChatMessage
from chathistory_core.provider import ChatHistoryProvider, InvokedContext, InvokingContext
from chathistory_core.records import new_turn_id
from chathistory_core.saving.replays import Replay
from chathistory_core.stream import Pieces, Stream
from chathistory_core.views.view import View

logger = logging.getLogger("chathistory")

T = TypeVar("T")
S = TypeVar("S", bound=Pieces[Any])


def begin(turn: "Turn", stream: S) -> S:
    """The stream, from now on the one that decides how the turn ends."""
    turn._check_open()  # noqa: SLF001 - their own, for the streams of other faces
    turn._leave_streams()  # noqa: SLF001
    turn._streams.append(stream)  # noqa: SLF001
    return stream


class Turn:
    """A request, what the model is given with it, and the answer, stored with the request when the block is left.

    Leaving the block without an exception is success: request and answer are stored as one; without an answer, the
    request alone. An exception or cancellation inside the block is failure, and so is leaving it before a `stream` came
    to its end: then by default nothing is stored, else what the provider's `on_failure` says. Either is done when the
    block is left, even while its task is being cancelled.
    """

    def __init__(
        self,
        provider: ChatHistoryProvider,
        invoking: InvokingContext,
        replay: Callable[[InvokingContext, Sequence[ChatMessage]], Awaitable[Replay | None]],
    ) -> None:
        """`replay` looks for a turn that is stored already; it is asked where `invoking` names one."""
        self.turn_id = invoking.turn_id or new_turn_id()
        self.request = tuple(invoking.request_messages)
        """The messages that the turn was begun with."""
        self.replayed = False
        """The turn is stored already, from an earlier attempt: there is no need to ask the model again."""
        self._provider = provider
        self._invoking = invoking
        self._replay = replay
        self._given: Sequence[ChatMessage] = self.request
        self._stored: tuple[ChatMessage, ...] | None = None
        self._added: list[ChatMessage] = []
        self._streams: list[Pieces[Any]] = []
        self._state = "new"
        self._invoked: InvokedContext | None = None

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages for the model as of now: history, request, answer so far."""
        return (*self._given, *(self.answer or ()))

    @property
    def answer(self) -> tuple[ChatMessage, ...] | None:
        """What was added; of a turn that is stored already, what was answered, None where it was replaced since."""
        return self._stored if self.replayed and not self._added else tuple(self._added)

    @property
    def view(self) -> View | None:
        """What the turn was given of the conversation, and what was left out of it; None before the block."""
        return self._invoking.view

    def add(self, answer: ChatMessage | Iterable[ChatMessage]) -> None:
        """Put a message, or several, behind `messages`; to be stored when the block is left.

        A turn that is stored already takes only the answer that it has: with another, leaving the block raises
        `TurnConflictError`. What is added before a `stream` came to its end is the answer in its place.
        """
        self._check_open()
        added = [answer] if isinstance(answer, ChatMessage) else list(answer)
        for message in added:
            if not isinstance(message, ChatMessage):
                raise TypeError(
                    "a turn takes messages, not "
                    f"{type(message if isinstance(answer, (list, tuple)) else answer).__name__}: "
                    "use the `load` of its format"
                )
        self._leave_streams()
        self._added += added

    def stream(
        self, pieces: AsyncIterable[T], load: Callable[[Sequence[T]], ChatMessage | Iterable[ChatMessage]]
    ) -> Stream[T]:
        """The pieces of an answer as they come, for `async for`; when all have come, the answer is added.

        `load` makes messages of the pieces so far, such as `openai_chat.load_chunks`. Where the block is left before
        the stream came to its end, by `break`, an exception or a cancellation, the run has failed, whatever an
        asynchronous generator around it does later, and the source is closed. So it has where the source ends and
        `load` marks a message as incomplete: then `EOFError` is raised.

        The last stream counts: what came of one before it that broke off is no part of the answer.
        """
        return begin(self, Stream(pieces, load, self.add))

    def _check_open(self) -> None:
        if self._state != "open":
            raise RuntimeError("a turn is added to inside its block")

    def _leave_streams(self) -> None:
        for stream in self._streams:
            stream.leave()

    async def save(self) -> None:
        """Store the turn whose saving failed when the block was left; what is stored already is not stored again."""
        if self._state == "saved":
            return
        if self._state != "left" or self._invoked is None:
            raise RuntimeError("a turn is saved when its block is left, and again with `save` where that failed")
        await self._provider.invoked(self._invoked)
        self._state = "saved"

    async def __aenter__(self) -> Self:
        if self._state != "new":
            raise RuntimeError("a turn is entered once: begin another with `turn(…)`")
        self._state = "entered"
        self._given = await self._provider.invoking(self._invoking)
        if self._invoking.turn_id is not None:
            found = await self._replay(self._invoking, self._given)
            if found is not None:
                self.replayed = True
                self._stored = found.answer
        self._state = "open"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stream = self._streams[-1] if self._streams else None
        if error is None and stream is not None and stream.is_broken_off:
            error = GeneratorExit("the stream was left before its end")
        try:
            if self.replayed and (error is not None or not self._added):
                self._state = "saved"
            elif error is not None:
                self._state = "failed"
                await self._note(error, [*self._added, *(stream.partial() if stream is not None else ())])
            else:
                await self._leave()
        finally:
            await self._close_streams()

    async def _leave(self) -> None:
        began = self._invoking
        self._state = "left"
        self._invoked = InvokedContext.succeeded(
            began.agent, began.session, self._given, tuple(self._added), invoking=began, turn_id=self.turn_id
        )
        await self.save()

    async def _note(self, error: BaseException, partial: Sequence[ChatMessage]) -> None:
        """Tell the provider of the failure; what goes wrong there must not hide it, but a cancellation goes through."""
        began = self._invoking
        context = InvokedContext.failed(
            began.agent,
            began.session,
            self._given,
            error,
            partial_messages=partial,
            invoking=began,
            turn_id=self.turn_id,
        )
        try:
            await self._provider.invoked(context)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the first error is the one to be seen
            logger.warning("noting the failure of turn %r failed: %s", self.turn_id, type(failure).__name__)

    async def _close_streams(self) -> None:
        self._leave_streams()
        for stream in self._streams:
            if isinstance(stream, Stream):
                await stream.close()

    def __repr__(self) -> str:
        return f"<Turn {self.turn_id!r}, {len(self.messages)} messages>"
