"""Histories, blocking: the provider over a backend, and its turns."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from chathistory_core import opening
from chathistory_core.blocking.block import Block, patience
from chathistory_core.blocking.call import run
from chathistory_core.blocking.face import Face, same, saved, waited
from chathistory_core.codec import Codec
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import MessageFilter, exclude_history
from chathistory_core.session import AgentSession
from chathistory_core.stored import STATE_KEY, StoredChatHistoryProvider, random_key
from chathistory_core.turn import Turn

if TYPE_CHECKING:
    from chathistory_core.plugin import BackendOptions


class BlockingTurn(Face[Turn]):
    """A request, what the model is given with it, and the answer, stored with the request when the block is left.

    Leaving the block without an exception is success, an exception inside it is failure, as in `chathistory_core.Turn`.
    """

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
    def answer(self) -> tuple[ChatMessage, ...] | None:
        """What was added; of a turn that is stored already, what was answered, None where it was replaced since."""
        return self.target.answer

    add = same(Turn.add)
    save = saved(Turn.save)

    def __enter__(self) -> Self:
        run(self.target.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        leave = partial(self.target.__aexit__, kind, error, traceback)
        run(leave, save_timeout=patience(error, self.save_timeout))


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
    clear = saved(StoredChatHistoryProvider.clear)
    count = waited(StoredChatHistoryProvider.count)
    exists = waited(StoredChatHistoryProvider.exists)
    summaries = waited(StoredChatHistoryProvider.summaries)

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
        provide_output_filter=provide_output_filter,
        store_request_filter=store_request_filter,
        store_response_filter=store_response_filter,
    )
    return _Opening(history, save_timeout=save_timeout)
