"""The provider over any backend."""

import logging
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import replace
from typing import Self, TypeGuard, TypeVar
from uuid import uuid4
from weakref import WeakKeyDictionary

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.codec import Codec, MessageCodec
from chathistory_core.compaction import Compacted, compact
from chathistory_core.conversations import MAX_REMEMBERED_BYTES, Conversations, History, Loaded, Marking
from chathistory_core.errors import BackendUnavailableError, ChatHistoryError
from chathistory_core.loading import Asked, Loading, OnLoadError
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
from chathistory_core.reducers import Reducer, check_reducer
from chathistory_core.saving.outbox import OnSaveError, Outbox
from chathistory_core.saving.replays import Replay, find_replay
from chathistory_core.saving.runs import Run, Seen
from chathistory_core.saving.storing import OnFailure, Storing
from chathistory_core.scoping import Scope, SessionKeys
from chathistory_core.session import AgentSession
from chathistory_core.turn import Turn
from chathistory_core.views.repair import Repair
from chathistory_core.views.windows import Window

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
    ) -> None:
        """`scope` are the parts of its prefix, as in `("tenant", "user")`; the provider opens and closes no backend.

        `new_key` names the conversation of a session that has none.
        `save_timeout` is how many seconds a run is still being saved once its task is cancelled.
        `window` is how much of the conversation a run is given, `reducer` what makes that shorter still, `repair` what
        becomes of tool calls that have no result and of results that have no call, `trusted_roles` are the roles whose
        messages are believed from storage (without it, all). None of them changes what is stored: they go in the order
        trust, repair, window, reducer (one that makes summaries before the window), and what they left out is in
        `Turn.view`.
        `max_load_bytes` is how many bytes of records a run may load.
        `max_remembered_bytes` is how much memory what was read before may take, of all conversations and narrower
        scopes together: a run reads only what is new. 0 for none.
        `on_load_error` is what becomes of a run whose history cannot be loaded: the error is raised, or the run begins
        without history, and the log says so.
        `on_failure` is what is stored of a run that fails, is cancelled or broken off: nothing, its request, or the
        request and what had come of the answer, marked as incomplete (`is_incomplete`).
        `on_save_error` is what becomes of a run when the store cannot be reached: the error is raised and holds it
        (`unsaved`), or it waits in memory, is tried again, and the run goes on.
        `exclusive` lets a run be stored only if no other wrote to the conversation while it ran, else it raises
        `RevisionConflictError`; without it, whole runs follow one another in the order in which they end.
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
        if exclusive and on_save_error == "outbox":
            raise ValueError(
                "an `exclusive` run is told at its end whether it is stored, one in the outbox is not: choose one"
            )
        if exclusive and on_load_error == "empty":
            raise ValueError(
                "an `exclusive` run knows what it is an answer to, one that begins without history does not: choose one"
            )
        self._conversations = Conversations(
            backend, MessageCodec() if codec is None else codec, max_remembered_bytes=max_remembered_bytes
        )
        self._loading = Loading(
            self._conversations,
            window=window,
            reducer=reducer,
            repair=repair,
            trusted_roles=trusted_roles,
            max_load_bytes=max_load_bytes,
            on_load_error=on_load_error,
        )
        self._storing = Storing(self._conversations, on_failure=on_failure, exclusive=exclusive)
        self._outbox = Outbox(self._storing, on_save_error=on_save_error, save_timeout=save_timeout)
        self._state_key = state_key
        self._new_key = new_key
        self._enter(Scope(scope))

    def _enter(self, scope: Scope) -> None:
        self._scope = scope
        self._keys = SessionKeys(scope, self._state_key, self._new_key)
        self._loaded = WeakKeyDictionary[InvokingContext, Loaded]()  # as long as it may be asked whether it is a replay
        self._seen = WeakKeyDictionary[InvokingContext, Seen]()

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
        """What a run is shown of what is stored, oldest first; of a turn that is stored already, what is before it."""
        session = context.session
        if not self._keeps(session):
            return ()
        key = self._keys.made(session)
        unsaved = await self._outbox.shown(key, context.turn_id)
        answered = {run.turn_id for run in self._outbox.waiting(key) if not run.failed}
        given = await self._loading.load(key, Asked(context.request_messages, context.turn_id, unsaved, answered))
        if given.loaded is not None:
            self._seen[context] = Seen.of(given.loaded)
            if context.turn_id is not None:
                self._loaded[context] = given.loaded
        context.view = given.view
        return given.messages

    async def _marked(self, context: InvokingContext, history: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        seen = self._seen.get(context)
        marking = Marking() if seen is None else self._conversations.marking(seen.conversation.key)
        return await marking.marked(history, self._source_mark)

    async def invoked_core(self, context: InvokedContext) -> None:
        """Store the run, or of one that failed what `on_failure` says, also while its task is being cancelled.

        An error of storing a run that failed is in the log alone: why it failed is what is to be seen.
        """
        if context.invoking is not None:
            self._loaded.pop(context.invoking, None)  # it was for who asks whether the turn is stored
        if context.response_messages is None:
            try:
                await self._store_failure(context)
            except Exception as error:  # noqa: BLE001 - see above
                logger.warning("nothing is kept of turn %r, which failed: %s", context.turn_id, type(error).__name__)
            return
        try:
            await super().invoked_core(context)
        except ChatHistoryError as error:
            error.unsaved = (context,)
            raise

    async def _store_failure(self, context: InvokedContext) -> None:
        if self._storing.on_failure != "discard":
            request = self._request_to_store(context.request_messages, context.invoking)
            await self._store(
                replace(
                    context,
                    request_messages=request,
                    partial_messages=self._response_to_store(context.partial_messages),
                )
            )

    async def store_chat_history(self, context: InvokedContext) -> None:
        """Store the run as one append, also while its task is being cancelled."""
        if context.request_messages or context.response_messages:
            await self._store(context)
            if self._keeps(context.session):
                await self._loading.summarize(self._keys.made(context.session))

    async def _store(self, context: InvokedContext) -> None:
        session, began = context.session, context.invoking
        if not self._keeps(session):
            return
        seen = self._seen.get(began) if began is not None and began.session is session else None
        if self._storing.exclusive and began is None:
            raise ValueError("an `exclusive` run ends with its `invoking`, which tells what it is an answer to")
        key = self._keys.made(session) if seen is None else seen.conversation.key
        await self._outbox.store(Run(key, context, seen))

    @property
    def unsaved(self) -> Sequence[InvokedContext]:
        """The runs that wait in the outbox, each conversation's in their order, as they are to be stored."""
        return tuple(run.context for run in self._outbox.waiting(prefix=self._scope.prefix))

    async def save_unsaved(self) -> None:
        """Store the runs that wait in the outbox now.

        Raises:
            BackendUnavailableError: the store still does not take them; they wait on.
        """
        await self._outbox.save(prefix=self._scope.prefix)

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
        if context.turn_id is None or not self._keeps(context.session):
            return None
        request, loaded = self._request_to_store(given, context), self._loaded.pop(context, None)
        answer = self._outbox.answer(self._keys.made(context.session), context.turn_id, request)
        if answer is not None or loaded is None:
            return None if answer is None else Replay(answer)
        try:
            return await find_replay(
                self._conversations, loaded, request, turn_id=context.turn_id, max_bytes=self._loading.max_bytes
            )
        except BackendUnavailableError:
            if self._loading.on_error == "raise":
                raise
            logger.warning("whether turn %r is stored already cannot be asked: the run goes on", context.turn_id)
            return None

    async def messages(self, session: AgentSession | None, *, limit: int | None = None) -> History:
        """What is stored of the session's conversation, or of its newest `limit` records: unfiltered, unmarked."""
        key = self._keys.known(session)
        if key is None:
            return History((), NO_REVISION, "", limit=limit)
        loaded = await self._conversations.load(key, limit=limit)
        return History(loaded.messages, loaded.conversation.revision, loaded.conversation.epoch, limit=limit)

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

    async def compact(self, session: AgentSession | None, reducer: Reducer, *, archive: str | bool = True) -> Compacted:
        """Put the reducer's view of the session's conversation in the place of what is stored, for good.

        Before that a copy is made, a conversation of its own at `<key>.archive.1`, `.2` and so on, or at the key that
        `archive` names, in the same scope; with `archive=False`, none. Messages that the reducer leaves as they are
        keep their records, byte for byte. Where others write meanwhile it begins anew; broken off, it can be repeated.

        Raises:
            InvalidKeyError: the copy's key is none.
            RevisionConflictError: others wrote each of the many times that it was tried.
            ValueError: the key that `archive` names is another conversation's.
        """
        key = self.key_of(session)
        check_reducer(reducer)
        if key is None:
            return Compacted(0, 0)
        return await compact(self._conversations, key, reducer, full=self._scope.full, archive=archive)

    async def clear(self, session: AgentSession | None, *, expected_revision: str | None = None) -> bool:
        """Remove the session's conversation; whether there was one. The session keeps its key."""
        key = self._keys.known(session)
        if key is None:
            return False
        cleared = await self._conversations.backend.clear(key, expected_revision=expected_revision)
        self._conversations.forget(key)
        self._outbox.clear(key)
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
