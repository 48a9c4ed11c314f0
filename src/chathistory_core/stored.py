"""The provider over any backend."""

import logging
from collections.abc import Callable, Sequence
from copy import copy
from typing import Self, TypeGuard, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.codec import Codec, MessageCodec
from chathistory_core.conversations import Conversations, History, Loaded, Replay
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import (
    ChatHistoryProvider,
    InvokedContext,
    InvokingContext,
    MessageFilter,
    check_messages,
    exclude_history,
)
from chathistory_core.records import NO_REVISION, ConversationSummary, Written, new_turn_id
from chathistory_core.saving import finish
from chathistory_core.scoping import Scope, SessionKeys
from chathistory_core.session import AgentSession
from chathistory_core.turn import Turn

logger = logging.getLogger("chathistory")

STATE_KEY = "RemoteChatHistoryProvider"
"""Where a session keeps its conversation's key, whatever the backend and the language."""

_PAGE = 100
"""How many keys are asked for at once to get past those of narrower scopes."""

S = TypeVar("S")


def random_key(session: AgentSession) -> str:  # noqa: ARG001 - a key of chance
    """32 hexadecimal digits, by chance: a key that nobody guesses."""
    return uuid4().hex


class StoredChatHistoryProvider(ChatHistoryProvider):
    """Keeps conversations in a backend; a session holds nothing but its conversation's key.

    A run is one append, under one turn id. It is made against the state of the conversation that the run was given,
    where the `InvokedContext` names its `invoking`: then a conversation that was cleared meanwhile is not brought back
    (`EpochChangedError`). Without a session, and where the model's service keeps the history, nothing is read or
    stored.

    With a scope, a session can name no conversation outside it, whatever key it holds. A provider without one stores
    keys as they are and must not share a store with those that have one.
    """

    def __init__(
        self,
        backend: ChatHistoryBackend,
        *,
        codec: Codec | None = None,
        scope: Sequence[str] = (),
        state_key: str = STATE_KEY,
        new_key: Callable[[AgentSession], str] = random_key,
        save_timeout: float = 10,
        provide_output_filter: MessageFilter | None = None,
        store_request_filter: MessageFilter | None = exclude_history,
        store_response_filter: MessageFilter | None = None,
    ) -> None:
        """`scope` are the parts of its prefix, as in `("tenant", "user")`; the provider opens and closes no backend.

        `new_key` names the conversation of a session that has none.
        `save_timeout` is how many seconds a run is still being saved once its task is cancelled.
        """
        super().__init__(
            provide_output_filter=provide_output_filter,
            store_request_filter=store_request_filter,
            store_response_filter=store_response_filter,
        )
        if isinstance(backend, (str, type(None), type)):
            raise TypeError(
                f"`backend` is an object, not {type(backend).__name__}: `open_history` takes names and URLs"
            )
        if not callable(new_key):
            raise TypeError(f"`new_key` is called with a session: it is {type(new_key).__name__}")
        if not save_timeout >= 0:
            raise ValueError(f"`save_timeout` is a number of seconds, not {save_timeout!r}")
        self._conversations = Conversations(backend, MessageCodec() if codec is None else codec)
        self._state_key = state_key
        self._new_key = new_key
        self._save_timeout = save_timeout
        self._enter(Scope(scope))

    def _enter(self, scope: Scope) -> None:
        self._scope = scope
        self._keys = SessionKeys(scope, self._state_key, self._new_key)
        self._loaded = WeakKeyDictionary[InvokingContext, Loaded]()

    def scoped(self, *parts: str) -> Self:
        """The provider of a narrower scope, over the same backend."""
        if not parts:
            raise ValueError("a narrower scope has at least one part more")
        narrower = copy(self)
        narrower._enter(Scope((*self._scope.parts, *parts)))  # noqa: SLF001 - its own
        return narrower

    @property
    def state_keys(self) -> tuple[str, ...]:
        """The one key of its state."""
        return (self._state_key,)

    def get_service(self, kind: type[S], key: object = None) -> S | None:
        """The provider itself or its backend, where it is of this kind; `ChatHistoryBackend` stands for any backend."""
        backend: object = self._conversations.backend
        if kind is ChatHistoryBackend and key is None:
            return backend  # type: ignore[return-value] # the protocol stands for what fulfils it
        found = super().get_service(kind, key)
        return backend if found is None and key is None and isinstance(backend, kind) else found

    def session(self, key: str | None = None) -> AgentSession:
        """A new session of the conversation of this key; without one, of a new conversation."""
        session = AgentSession()
        if key is not None:
            self.attach(session, key)
        return session

    def attach(self, session: AgentSession, key: str) -> None:
        """Make the session one of the conversation of this key, whichever it was of before."""
        self._keys.set(session, key)

    def key_of(self, session: AgentSession | None) -> str | None:
        """The key of the session's conversation, inside the scope; None where it has none yet.

        Raises:
            InvalidKeyError, TypeError: what the session holds is no key.
        """
        return self._keys.get(session)

    async def provide_chat_history(self, context: InvokingContext) -> Sequence[ChatMessage]:
        """What is stored, oldest first; where the context names a turn that is among it, what is before that turn."""
        session = context.session
        if not self._keeps(session):
            return ()
        loaded = await self._conversations.load(self._keys.made(session), turn_id=context.turn_id)
        self._loaded[context] = loaded
        place = None if context.turn_id is None else loaded.turn(context.turn_id)
        return loaded.messages(None if place is None else range(place.start))

    async def store_chat_history(self, context: InvokedContext) -> None:
        """Store the run as one append, also while its task is being cancelled."""
        session = context.session
        messages = (*context.request_messages, *(context.response_messages or ()))
        if not self._keeps(session) or not messages:
            return
        began = context.invoking
        loaded = self._loaded.get(began) if began is not None and began.session is session else None
        conversation = None if loaded is None else loaded.conversation
        key = self._keys.made(session) if conversation is None else conversation.key
        turn_id = context.turn_id
        await finish(
            lambda: self._conversations.append(key, messages, turn_id=turn_id, loaded=conversation),
            f"turn {turn_id!r} of conversation {key!r}",
            timeout=self._save_timeout,
        )

    def _keeps(self, session: AgentSession | None) -> TypeGuard[AgentSession]:
        if session is None and not self._conversations.warned:
            self._conversations.warned = True
            logger.warning("a run has no session: nothing is read or stored, for nobody could find its key again")
        return session is not None and session.conversation_id is None

    def turn(
        self,
        session: AgentSession | None,
        messages: Sequence[ChatMessage],
        *,
        agent: object = None,
        turn_id: str | None = None,
    ) -> Turn:
        """A run without a framework: `async with history.turn(session, [request]) as turn`.

        A `turn_id` of your own, such as the id of a web request, makes the request one that may be sent again: entering
        the block looks whether the turn is stored (`Turn.replayed`), and raises `TurnConflictError` where it is stored
        with another request.
        """
        return Turn(self, InvokingContext(agent, session, _checked(messages), turn_id=turn_id), self._replay)

    async def _replay(self, context: InvokingContext, given: Sequence[ChatMessage]) -> Replay | None:
        loaded = self._loaded.get(context)
        if loaded is None or context.turn_id is None:
            return None
        return await self._conversations.replay(loaded, self._request_to_store(given), turn_id=context.turn_id)

    async def messages(self, session: AgentSession | None, *, limit: int | None = None) -> History:
        """What is stored of the session's conversation, or of its newest `limit` records: unfiltered, unmarked."""
        key = self._keys.known(session)
        if key is None:
            return History((), NO_REVISION, "", limit=limit)
        loaded = await self._conversations.load(key, limit=limit)
        return History(loaded.messages(), loaded.conversation.revision, loaded.conversation.epoch, limit=limit)

    async def set_messages(
        self,
        session: AgentSession,
        messages: Sequence[ChatMessage],
        *,
        expected_revision: str | None = None,
        turn_id: str | None = None,
    ) -> Written:
        """Put the messages in the place of what is stored; a session without a conversation gets one.

        Raises:
            RevisionConflictError: the conversation is not at the expected revision.
            ValueError: no session, or a `History` that was read with a limit and would cut off what stands before it.
        """
        if session is None:
            raise ValueError("messages are set in a session's conversation: without a session nobody finds them again")
        if isinstance(messages, History) and messages.limit is not None:
            raise ValueError(
                f"this history was read with a limit of {messages.limit}, and what is before it would be lost: read it "
                "without a limit, or pass a list of the messages where that is meant"
            )
        return await self._conversations.replace(
            self._keys.made(session),
            _checked(messages),
            turn_id=new_turn_id() if turn_id is None else turn_id,
            expected_revision=expected_revision,
        )

    async def clear(self, session: AgentSession | None, *, expected_revision: str | None = None) -> bool:
        """Remove the session's conversation; whether there was one. The session keeps its key."""
        key = self._keys.known(session)
        if key is None:
            return False
        cleared = await self._conversations.backend.clear(key, expected_revision=expected_revision)
        logger.info("clear %r: %s", key, "gone" if cleared else "there was nothing")
        return cleared

    async def count(self, key_or_session: str | AgentSession | None) -> int:
        """How many records are stored; none of an unknown key."""
        key = self._scope.full(key_or_session) if isinstance(key_or_session, str) else self._keys.known(key_or_session)
        return 0 if key is None else (await self._conversations.backend.get(key, limit=0)).record_count

    async def exists(self, key: str) -> bool:
        """Whether there is a conversation of this key, be it empty."""
        return (await self._conversations.backend.get(self._scope.full(key), limit=0)).revision != NO_REVISION

    async def summaries(
        self, *, after: ConversationSummary | None = None, limit: int | None = None, order: Order = "key"
    ) -> Sequence[ConversationSummary]:
        """The conversations of its scope, with their keys inside it; those of narrower scopes are not among them.

        As in the backend, `after` is the last summary of the page before, and a page shorter than `limit` is the last.
        """
        found: list[ConversationSummary] = []
        last = None if after is None else after._replace(key=self._scope.full(after.key))
        size = limit
        while True:
            page = await self._conversations.backend.summaries(
                prefix=self._scope.prefix, after=last, limit=size, order=order
            )
            for summary in page:
                key = self._scope.inside(summary.key)
                if key is not None:
                    found.append(summary._replace(key=key))
            if limit is None or len(found) >= limit or size is None or len(page) < size:
                return tuple(found[:limit])
            last, size = page[-1], max(limit, _PAGE)


def _checked(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    for index, message in enumerate(check_messages("messages", messages)):
        if not isinstance(message, ChatMessage):
            raise TypeError(f"message {index} is {type(message).__name__}: use the `load` of its format")
    return messages
