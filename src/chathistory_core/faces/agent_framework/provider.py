"""The framework's history provider over ours."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias
from weakref import WeakKeyDictionary

from agent_framework import (
    AgentSession,
    HistoryProvider,
    Message,
    SessionContext,
    SupportsAgentRun,
)

from chathistory_core.errors import BackendStateError
from chathistory_core.faces.agent_framework.agents import check_source_id, is_kept_elsewhere, takes_middleware
from chathistory_core.faces.agent_framework.objects import messages as ours
from chathistory_core.faces.agent_framework.objects import objects
from chathistory_core.faces.agent_framework.runs import OpenRuns, Run
from chathistory_core.faces.agent_framework.transcripts import new_messages
from chathistory_core.faces.agent_framework.watching import WatchedModel, WatchedTools
from chathistory_core.keys import check_key
from chathistory_core.messages import AI_CONTEXT_PROVIDER, ChatMessage, SourceAttribution
from chathistory_core.opening import open_history
from chathistory_core.provider import InvokedContext, InvokingContext
from chathistory_core.scoping import KEY_MEMBER
from chathistory_core.session import AgentSession as Session
from chathistory_core.stored import STATE_KEY, StoredChatHistoryProvider

logger = logging.getLogger("chathistory")

if TYPE_CHECKING:
    from chathistory_core.plugin import BackendOptions


_running: ContextVar["tuple[StoredHistoryProvider, Run] | None"] = ContextVar("running", default=None)
"""The run that a provider loads or stores just now: what the framework's own steps call back for."""

Opening: TypeAlias = AbstractAsyncContextManager[StoredChatHistoryProvider]
"""What `open_history` returns."""


class StoredHistoryProvider(HistoryProvider):
    """Keeps an agent's conversations in a backend of ours, as the framework's own objects.

    A session's conversation is the one whose key stands in its state under the `source_id` (see `attach`), else the one
    of its session id. A run is one append under one turn id. Windows, repair, trust and what becomes of runs that fail
    are those of the `StoredChatHistoryProvider`. Where the model's service keeps a conversation, one that loads neither
    loads nor stores.
    """

    def __init__(
        self,
        history: "StoredChatHistoryProvider | Opening | BackendOptions | str | None" = None,
        *,
        source_id: str = STATE_KEY,
        load_messages: bool = True,
        store_inputs: bool = True,
        store_context_messages: bool = False,
        store_context_from: set[str] | None = None,
        store_outputs: bool = True,
    ) -> None:
        """`history` is a provider that somebody else opens and closes, or what `async with` is to open and close.

        That is what `open_history` takes, or what it returns: `StoredHistoryProvider(open_history(url, window=…))`.
        `source_id` is where sessions keep the conversation's key. The flags are the framework's: whether history is
        loaded, and which messages of a run are stored.
        """
        super().__init__(
            source_id,
            load_messages=load_messages,
            store_inputs=store_inputs,
            store_context_messages=store_context_messages,
            store_context_from=store_context_from,
            store_outputs=store_outputs,
        )
        self._given = history
        self._opening: Opening | None = None
        self._opened = history if isinstance(history, StoredChatHistoryProvider) else None
        self._runs = WeakKeyDictionary[SessionContext, Run]()
        self._open_runs = OpenRuns(self._fail)

    @property
    def history(self) -> StoredChatHistoryProvider:
        """Ours, which it stands before.

        Raises:
            BackendStateError: it is not open.
        """
        if self._opened is None:
            raise BackendStateError("the history is closed: use the provider inside `async with`")
        return self._opened

    async def __aenter__(self) -> Self:
        given = self._given
        if not isinstance(given, StoredChatHistoryProvider):
            opening = given if isinstance(given, AbstractAsyncContextManager) else open_history(given)
            self._opened = await opening.__aenter__()
            self._opening = opening
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        opening, self._opening = self._opening, None
        try:
            await self._open_runs.close()
        finally:
            if opening is not None:
                self._opened = None
                await opening.__aexit__(kind, error, traceback)

    def attach(self, session: AgentSession, key: str) -> None:
        """Make the session one of the conversation of this key, whichever it was of before."""
        session.state[self.source_id] = {KEY_MEMBER: check_key(key)}

    def key_of(self, session: AgentSession) -> str:
        """The key of the session's conversation, inside the scope."""
        return self._key(session.session_id, session.state.get(self.source_id))

    async def get_messages(
        self,
        session_id: str | None,
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002 - the framework's
    ) -> list[Message]:
        """The conversation, oldest first, as a model is to see it; none where there is no session id."""
        if (run := self._running) is not None:
            return await self._load(run)
        session = await self._session(session_id, state)
        return objects(await self.history.invoking(InvokingContext(None, session, ())))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,  # noqa: ARG002 - the framework's
    ) -> None:
        """Put the messages behind the conversation's, as one turn; where they play it back, those that are new."""
        if (run := self._running) is not None:
            await self._save(run, messages)
            return
        session = await self._session(session_id, state)
        new = await new_messages(ours(messages), lambda: self.history.messages(session))
        if new:
            await self.history.invoked(InvokedContext.succeeded(None, session, new, ()))

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Load the conversation into the context, unless the model's service keeps it."""
        check_source_id(self, agent)
        if self.load_messages and is_kept_elsewhere(agent, session, context):
            return
        run = self._run(agent, context, state)
        await self._open_runs.leave(run.key, only_streams=False)
        with self._as(run):
            await super().before_run(agent=agent, session=session, context=context, state=state)
        self._open_runs.add(run)
        if takes_middleware(agent):
            context.extend_middleware(
                self.source_id, (WatchedModel(run, self._open_runs, self._fail), WatchedTools(run, self._fail))
            )

    async def after_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Store what the flags choose of the run as one turn, unless the model's service keeps the conversation."""
        run = self._runs.get(context) or self._run(agent, context, state)
        run.ended = True
        self._open_runs.discard(run)
        # Of a stream that was closed, only telemetry takes what came of it for the whole.
        if run.closed or (self.load_messages and is_kept_elsewhere(agent, session, context)):
            return
        with self._as(run):
            await super().after_run(agent=agent, session=session, context=context, state=state)

    async def _load(self, run: Run) -> list[Message]:
        request = ours(run.context.input_messages) if self.store_inputs else []
        run.invoking = InvokingContext(run.agent, run.session, request)
        given = await self.history.invoking(run.invoking)
        new = await new_messages(request, lambda: self.history.messages(run.session))
        run.played_back = len(request) - len(new)
        return [] if run.played_back else objects(given[: len(given) - len(request)])

    async def _save(self, run: Run, given: Sequence[Message]) -> None:
        asked = {id(message) for message in run.context.get_messages(include_input=True)}
        request = [message for message in given if id(message) in asked]
        response = [message for message in given if id(message) not in asked]
        await self.history.invoked(
            InvokedContext.succeeded(
                run.agent,
                run.session,
                self._request(run, request),
                ours(response),
                invoking=run.invoking,
                turn_id=run.turn_id,
            )
        )

    async def _fail(self, run: Run, error: BaseException) -> None:
        """Tell the history of a run that failed; what goes wrong there must not hide why."""
        if run.ended:
            return
        run.ended = True
        try:
            inputs = run.context.input_messages if self.store_inputs else []
            failed = InvokedContext.failed(
                run.agent,
                run.session,
                self._request(run, [*self._get_context_messages_to_store(run.context), *inputs]),
                error,
                partial_messages=run.answer() if self.store_outputs else (),
                invoking=run.invoking,
                turn_id=run.turn_id,
            )
            await self.history.invoked(failed)
        except Exception as failure:  # noqa: BLE001 - whatever it is, the first error is the one to be seen
            logger.warning("noting the failure of turn %r failed: %s", run.turn_id, type(failure).__name__)
        finally:
            self._open_runs.discard(run)

    def _request(self, run: Run, given: Sequence[Message]) -> list[ChatMessage]:
        """What the run was asked with, without what it played back, each message marked where a provider added it."""
        added = {id(message): source for source, several in run.context.context_messages.items() for message in several}
        inputs = {id(message): place for place, message in enumerate(run.context.input_messages)}
        kept = [message for message in given if inputs.get(id(message), run.played_back) >= run.played_back]
        return [
            message.with_source(SourceAttribution(AI_CONTEXT_PROVIDER, added[id(one)])) if id(one) in added else message
            for one, message in zip(kept, ours(kept), strict=True)
        ]

    @contextmanager
    def _as(self, run: Run) -> Iterator[None]:
        token = _running.set((self, run))
        try:
            yield
        finally:
            _running.reset(token)

    @property
    def _running(self) -> Run | None:
        found = _running.get()
        return found[1] if found is not None and found[0] is self else None

    def _run(self, agent: SupportsAgentRun, context: SessionContext, state: Mapping[str, Any]) -> Run:
        key = self._key(context.session_id, state)
        run = self._runs[context] = Run(agent, self.history.session(key), context, key)
        return run

    async def _session(self, session_id: str | None, state: Mapping[str, Any] | None) -> Session | None:
        if session_id is None:
            return None
        key = self._key(session_id, state)
        await self._open_runs.leave(key, only_streams=True)
        return self.history.session(key)

    def _key(self, session_id: str | None, state: Mapping[str, Any] | None) -> str:
        if state is not None and not isinstance(state, Mapping):
            raise TypeError(f"the state under {self.source_id!r} is {type(state).__name__}, not a dict")
        key = None if state is None else state.get(KEY_MEMBER)
        return check_key(session_id if key is None else key)  # type: ignore[arg-type] # it refuses what is no text
