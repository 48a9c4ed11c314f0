"""The contract between an agent and the history of its conversations: `invoking`, the model, `invoked`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar, final
from weakref import WeakKeyDictionary

from chathistory_core.errors import ConfigurationError
from chathistory_core.keys import check_turn_id
from chathistory_core.messages import CHAT_HISTORY, ChatMessage, SourceAttribution
from chathistory_core.messages.prefix import begins_with
from chathistory_core.records import new_turn_id
from chathistory_core.session import AgentSession, check_session
from chathistory_core.views.view import View

MessageFilter: TypeAlias = Callable[[Sequence[ChatMessage]], Iterable[ChatMessage]]
"""What of the messages goes on, in order."""

S = TypeVar("S")


def exclude_history(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages that are not marked as loaded from history."""
    return [message for message in messages if message.source.type != CHAT_HISTORY]


class InvokingContext:
    """A run that is about to begin: the agent, the session and the messages for the model."""

    def __init__(
        self,
        agent: object,
        session: AgentSession | None,
        request_messages: Sequence[ChatMessage],
        *,
        turn_id: str | None = None,
    ) -> None:
        """`agent` is any object or None, for providers that care; `turn_id` names a run that may be a retry."""
        self.agent = agent
        self.session = check_session(session)
        self.turn_id = None if turn_id is None else check_turn_id(turn_id)
        self.request_messages = request_messages
        self.view: View | None = None
        """What the run was given of the conversation, and what not; a provider that leaves something out sets it."""

    @property
    def request_messages(self) -> Sequence[ChatMessage]:
        """The messages for the model; where several providers take part, each sees what those before it returned."""
        return self._request_messages

    @request_messages.setter
    def request_messages(self, value: Sequence[ChatMessage]) -> None:
        self._request_messages = check_messages("request_messages", value)

    def __repr__(self) -> str:
        return f"<InvokingContext, {len(self._request_messages)} messages>"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class InvokedContext:
    """A run that has ended: made by `succeeded` or `failed`."""

    agent: object
    session: AgentSession | None
    request_messages: Sequence[ChatMessage]
    """All that the model was given: history, the caller's messages, those of context providers."""
    response_messages: Sequence[ChatMessage] | None
    """What came of it; None where the run failed."""
    partial_messages: Sequence[ChatMessage] = ()
    """What had come of it when the run failed; empty where it succeeded."""
    invoke_exception: BaseException | None
    """Why the run failed; None where it succeeded."""
    turn_id: str
    """Names what is stored of the run, so that `invoked` again with this context, or one of this id, stores it once."""
    invoking: InvokingContext | None
    """How the run began: what tells a store to which state of the conversation the run is an answer."""

    @classmethod
    def succeeded(
        cls,
        agent: object,
        session: AgentSession | None,
        request_messages: Sequence[ChatMessage],
        response_messages: Sequence[ChatMessage],
        *,
        invoking: InvokingContext | None = None,
        turn_id: str | None = None,
    ) -> "InvokedContext":
        """A run that came to its end; the turn id is the one given, else that of `invoking`, else a new one."""
        return cls(
            agent=agent,
            session=check_session(session),
            request_messages=check_messages("request_messages", request_messages),
            response_messages=check_messages("response_messages", response_messages),
            invoke_exception=None,
            turn_id=_turn_id(turn_id, invoking),
            invoking=invoking,
        )

    @classmethod
    def failed(
        cls,
        agent: object,
        session: AgentSession | None,
        request_messages: Sequence[ChatMessage],
        invoke_exception: BaseException,
        *,
        partial_messages: Sequence[ChatMessage] = (),
        invoking: InvokingContext | None = None,
        turn_id: str | None = None,
    ) -> "InvokedContext":
        """A run that ended with an exception, was cancelled or broken off; the turn id is as in `succeeded`.

        `partial_messages` is what had come of it by then: what providers that keep incomplete answers take.
        """
        if not isinstance(invoke_exception, BaseException):
            raise TypeError(f"`invoke_exception` is an exception, not {type(invoke_exception).__name__}")
        return cls(
            agent=agent,
            session=check_session(session),
            request_messages=check_messages("request_messages", request_messages),
            response_messages=None,
            partial_messages=check_messages("partial_messages", partial_messages),
            invoke_exception=invoke_exception,
            turn_id=_turn_id(turn_id, invoking),
            invoking=invoking,
        )

    def __repr__(self) -> str:
        end = "succeeded" if self.invoke_exception is None else "failed"
        return f"<InvokedContext, {end}, turn {self.turn_id!r}>"


def _turn_id(turn_id: str | None, invoking: InvokingContext | None) -> str:
    if turn_id is not None:
        return check_turn_id(turn_id)
    return (invoking.turn_id if invoking is not None else None) or new_turn_id()


def check_messages(name: str, value: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The value itself, where it is a sequence other than text, else `TypeError`."""
    if not _is_sequence(value):
        raise TypeError(f"`{name}` is a sequence of messages, not {type(value).__name__}")
    return value


def _is_sequence(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


class ChatHistoryProvider:
    """Gives an agent the history of a conversation and takes what a run adds to it.

    An agent calls `invoking` before the model and `invoked` after it, whether the run succeeded or failed. One provider
    serves many sessions: what it keeps of one it keeps in the session's state, under its `state_keys`. Override
    `provide_chat_history` and `store_chat_history`; override the `…_core` methods to decide on filtering, merging,
    marking and failures too.

    What is loaded is as trustworthy as the store: a role or text that was changed there reaches the model as it is.
    Conversations hold personal data: access to the store and encryption in it are the implementer's.
    """

    def __init__(
        self,
        *,
        provide_output_filter: MessageFilter | None = None,
        store_request_filter: MessageFilter | None = exclude_history,
        store_response_filter: MessageFilter | None = None,
    ) -> None:
        """Filters see the history that was loaded, the request and the response to be stored; None lets all through."""
        self._provide_output_filter = _check_filter("provide_output_filter", provide_output_filter)
        self._store_request_filter = _check_filter("store_request_filter", store_request_filter)
        self._store_response_filter = _check_filter("store_response_filter", store_response_filter)
        cls = type(self)
        self._source_mark = SourceAttribution(CHAT_HISTORY, f"{cls.__module__}.{cls.__qualname__}")
        self._history_given = WeakKeyDictionary[InvokingContext, Sequence[ChatMessage]]()

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The keys of its state in a session; no other provider of that session may have one of them."""
        return (type(self).__name__,)

    @final
    async def invoking(self, context: InvokingContext) -> Sequence[ChatMessage]:
        """All messages for the model: history, oldest first, then the request."""
        if not isinstance(context, InvokingContext):
            raise TypeError(f"`invoking` takes an InvokingContext, not {type(context).__name__}")
        return await self.invoking_core(context)

    async def invoking_core(self, context: InvokingContext) -> Sequence[ChatMessage]:
        """What `invoking` returns: the filtered history, each message marked on a copy, then the request as it is."""
        history = await self.provide_chat_history(context)
        marked = await self._marked(context, _filtered(self._provide_output_filter, history))
        self._history_given[context] = marked
        return [*marked, *context.request_messages]

    async def _marked(self, context: InvokingContext, history: Sequence[ChatMessage]) -> Sequence[ChatMessage]:  # noqa: ARG002 - for those who remember
        return [message.with_source(self._source_mark) for message in history]

    async def provide_chat_history(self, context: InvokingContext) -> Sequence[ChatMessage]:  # noqa: ARG002 - for those who override
        """The history alone, oldest first, unfiltered and unmarked; none by default."""
        return ()

    @final
    async def invoked(self, context: InvokedContext) -> None:
        """Take the end of a run."""
        if not isinstance(context, InvokedContext):
            raise TypeError(f"`invoked` takes an InvokedContext, not {type(context).__name__}")
        try:
            await self.invoked_core(context)
        finally:
            if context.invoking is not None:  # a run that waits to be stored is not to hold all that it was given
                self._history_given.pop(context.invoking, None)

    async def invoked_core(self, context: InvokedContext) -> None:
        """What `invoked` does: nothing of a run that failed, else store what the filters leave."""
        if context.response_messages is None:
            return
        await self.store_chat_history(
            replace(
                context,
                request_messages=self._request_to_store(context.request_messages, context.invoking),
                response_messages=self._response_to_store(context.response_messages),
            )
        )

    async def store_chat_history(self, context: InvokedContext) -> None:
        """Store a run's request and response, in this order; nothing by default. Only runs that succeeded come here."""

    def get_service(self, kind: type[S], key: object = None) -> S | None:
        """The provider itself, or what it wraps, where it is of this kind; None under any `key` it does not know."""
        if not isinstance(kind, type):
            raise TypeError(f"a service is asked for by its type, not by {type(kind).__name__}")
        return self if key is None and isinstance(self, kind) else None

    def _request_to_store(
        self, messages: Sequence[ChatMessage], began: InvokingContext | None
    ) -> Sequence[ChatMessage]:
        history = () if began is None else self._history_given.get(began, ())
        if self._store_request_filter is exclude_history and begins_with(messages, history):
            messages = messages[len(history) :]  # all of which the filter would leave out, one by one
        return _filtered(self._store_request_filter, messages)

    def _response_to_store(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return _filtered(self._store_response_filter, messages)


def _check_filter(name: str, value: MessageFilter | None) -> MessageFilter | None:
    if value is not None and not callable(value):
        raise TypeError(f"`{name}` takes messages and returns messages: it is {type(value).__name__}")
    return value


def _filtered(chosen: MessageFilter | None, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    return messages if chosen is None else tuple(chosen(messages))


def check_state_keys(providers: Iterable[ChatHistoryProvider]) -> None:
    """Whether the providers may serve one session.

    Raises:
        ConfigurationError: two of them keep their state under one key.
    """
    owners: dict[str, str] = {}
    for provider in providers:
        name = type(provider).__name__
        for key in provider.state_keys:
            if key in owners:
                raise ConfigurationError(
                    f"{owners[key]} and {name} both keep their state under {key!r}: give one another `state_key`"
                )
            owners[key] = name
