"""Histories, blocking: the provider over a backend, and its turns."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from chathistory_core import opening
from chathistory_core.blocking.block import Block, patience
from chathistory_core.blocking.call import run
from chathistory_core.blocking.face import Face, same, saved, waited
from chathistory_core.codec import Codec
from chathistory_core.conversations import MAX_REMEMBERED_BYTES
from chathistory_core.loading import OnLoadError
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import InvokedContext, MessageFilter, exclude_history
from chathistory_core.reducers import Reducer
from chathistory_core.saving.outbox import OnSaveError
from chathistory_core.saving.storing import OnFailure
from chathistory_core.session import AgentSession
from chathistory_core.stored import STATE_KEY, StoredChatHistoryProvider, random_key
from chathistory_core.stream import BlockingStream
from chathistory_core.turn import Turn, begin
from chathistory_core.views.repair import Repair
from chathistory_core.views.view import View
from chathistory_core.views.windows import Window

if TYPE_CHECKING:
    from chathistory_core.plugin import BackendOptions


T = TypeVar("T")


class BlockingTurn(Face[Turn]):
    """A request, what the model is given with it, and the answer, stored with the request when the block is left.

    Leaving the block without an exception is success; an exception inside it is failure, and so is leaving it before a
    `stream` came to its end, as in `chathistory_core.Turn`.
    """

    def __init__(self, turn: Turn, *, save_timeout: float) -> None:
        super().__init__(turn, save_timeout=save_timeout)
        self._streams: list[BlockingStream[Any]] = []

    @property
    def turn_id(self) -> str:
        """Names what is stored, so that saving it twice stores it once."""
        return self.target.turn_id

    @property
    def request(self) -> tuple[ChatMessage, ...]:
        """The messages that the turn was begun with."""
        return self.target.request

    @property
    def replayed(self) -> bool:
        """The turn is stored already, from an earlier attempt: there is no need to ask the model again."""
        return self.target.replayed

    @property
    def messages(self) -> tuple[ChatMessage, ...]:
        """All messages for the model as of now: history, request, answer so far."""
        return self.target.messages

    @property
    def view(self) -> View | None:
        """What the turn was given of the conversation, and what was left out of it; None before the block."""
        return self.target.view

    @property
    def answer(self) -> tuple[ChatMessage, ...] | None:
        """What was added; of a turn that is stored already, what was answered, None where it was replaced since."""
        return self.target.answer

    add = same(Turn.add)
    save = saved(Turn.save)

    def stream(
        self, pieces: Iterable[T], load: Callable[[Sequence[T]], ChatMessage | Iterable[ChatMessage]]
    ) -> BlockingStream[T]:
        """The pieces of an answer as they come, for `for`; when all have come, the answer is added.

        What `load` does, and what becomes of a stream that is left before its end, is as in `Turn.stream`.
        """
        stream = begin(self.target, BlockingStream(pieces, load, self.target.add))
        self._streams.append(stream)
        return stream

    def __enter__(self) -> Self:
        run(self.target.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave = partial(self.target.__aexit__, kind, error, traceback)
        try:
            run(leave, save_timeout=patience(error, self.save_timeout))
        finally:
            for stream in self._streams:
                stream.close()


class BlockingProvider(Face[StoredChatHistoryProvider]):
    """A `StoredChatHistoryProvider` whose calls return when they are done."""

    def __init__(self, provider: StoredChatHistoryProvider, *, save_timeout: float = 10) -> None:
        """The provider is one over the backend of a `BlockingBackend`.

        `save_timeout` is how many seconds Ctrl-C waits for a turn that is being saved; what the provider itself was
        given comes on top of it.
        """
        super().__init__(provider, save_timeout=save_timeout)

    session = same(StoredChatHistoryProvider.session)
    attach = same(StoredChatHistoryProvider.attach)
    key_of = same(StoredChatHistoryProvider.key_of)
    messages = waited(StoredChatHistoryProvider.messages)
    set_messages = saved(StoredChatHistoryProvider.set_messages)
    compact = saved(StoredChatHistoryProvider.compact)
    clear = saved(StoredChatHistoryProvider.clear)
    save_unsaved = saved(StoredChatHistoryProvider.save_unsaved)
    count = waited(StoredChatHistoryProvider.count)
    exists = waited(StoredChatHistoryProvider.exists)
    summaries = waited(StoredChatHistoryProvider.summaries)

    @property
    def unsaved(self) -> Sequence[InvokedContext]:
        """The runs that wait in the outbox, each conversation's in their order, as they are to be stored."""
        return self.target.unsaved

    def scoped(self, *parts: str) -> Self:
        """The provider of a narrower scope, over the same backend."""
        return type(self)(self.target.scoped(*parts), save_timeout=self.save_timeout)

    def turn(
        self,
        session: AgentSession | None,
        messages: Sequence[ChatMessage],
        *,
        agent: object = None,
        turn_id: str | None = None,
    ) -> BlockingTurn:
        """A run without a framework: `with history.turn(session, [request]) as turn`.

        A `turn_id` of your own makes the request one that may be sent again, as in `StoredChatHistoryProvider.turn`.
        """
        turn = self.target.turn(session, messages, agent=agent, turn_id=turn_id)
        return BlockingTurn(turn, save_timeout=self.save_timeout)


class _Opening(Face[AbstractAsyncContextManager[StoredChatHistoryProvider]]):
    def __init__(self, target: AbstractAsyncContextManager[StoredChatHistoryProvider], *, save_timeout: float) -> None:
        super().__init__(target, save_timeout=save_timeout)
        self._block = Block(target, save_timeout=save_timeout)

    def __enter__(self) -> BlockingProvider:
        return BlockingProvider(self._block.enter(), save_timeout=self.save_timeout)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._block.leave(kind, error, traceback)


def open_history(
    backend: "str | BackendOptions | None" = None,
    *,
    options: Mapping[str, object] | None = None,
    codec: Codec | None = None,
    scope: Sequence[str] = (),
    state_key: str = STATE_KEY,
    new_key: Callable[[AgentSession], str] = random_key,
    save_timeout: float = 10,
    window: Window | None = None,
    reducer: Reducer | None = None,
    repair: Repair | None = None,
    trusted_roles: Collection[str] | None = None,
    max_load_bytes: int | None = None,
    max_remembered_bytes: int = MAX_REMEMBERED_BYTES,
    on_load_error: OnLoadError = "raise",
    on_failure: OnFailure = "discard",
    on_save_error: OnSaveError = "raise",
    exclusive: bool = False,
    provide_output_filter: MessageFilter | None = None,
    store_request_filter: MessageFilter | None = exclude_history,
    store_response_filter: MessageFilter | None = None,
) -> AbstractContextManager[BlockingProvider]:
    """A provider over the backend that is named as for `open_backend`; the backend is open as long as the block lasts.

    The other arguments are those of `StoredChatHistoryProvider`; `save_timeout` is how many seconds Ctrl-C waits for a
    turn that is being saved. `codec`, `new_key` and the filters are called in the thread of the loop.
    """
    history = opening.open_history(
        backend,
        options=options,
        codec=codec,
        scope=scope,
        state_key=state_key,
        new_key=new_key,
        save_timeout=0,  # the time is up when the caller has left
        window=window,
        reducer=reducer,
        repair=repair,
        trusted_roles=trusted_roles,
        max_load_bytes=max_load_bytes,
        max_remembered_bytes=max_remembered_bytes,
        on_load_error=on_load_error,
        on_failure=on_failure,
        on_save_error=on_save_error,
        exclusive=exclusive,
        provide_output_filter=provide_output_filter,
        store_request_filter=store_request_filter,
        store_response_filter=store_response_filter,
    )
    return _Opening(history, save_timeout=save_timeout)
