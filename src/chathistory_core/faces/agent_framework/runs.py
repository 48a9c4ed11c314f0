"""A run of an agent, from the loading of its history to its end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias
from weakref import WeakSet, ref

from agent_framework import (
    ChatResponse,
    ChatResponseUpdate,
    Message,
    ResponseStream,
    SessionContext,
    SupportsAgentRun,
)

from chathistory_core.faces.agent_framework.objects import messages
from chathistory_core.messages import ChatMessage
from chathistory_core.provider import InvokingContext
from chathistory_core.records import new_turn_id
from chathistory_core.session import AgentSession as Session

ModelStream: TypeAlias = ResponseStream[ChatResponseUpdate, ChatResponse]

Fail: TypeAlias = "Callable[[Run, BaseException], Awaitable[None]]"
"""Notes that a run failed."""


class Run:
    """A run: what it began with, what has come of it, and whether it has ended."""

    def __init__(self, agent: SupportsAgentRun, session: Session, context: SessionContext, key: str) -> None:
        self.agent = agent
        self.session = session
        self._context = ref(context)
        self.key = key
        """Of its conversation, inside the scope."""
        self.turn_id = new_turn_id()
        self.invoking: InvokingContext | None = None
        self.played_back = 0
        """With how many messages that are stored already its input begins."""
        self.ended = False
        """Whether its end is noted. Whoever asks the model again after a failure goes on."""
        self.closed = False
        """Whether its stream was closed before its end."""
        self.task: asyncio.Task[object] | None = None
        """Where it goes on: who reads its stream."""
        self.is_read = False
        """Whether somebody waits for the next piece of its stream just now."""
        self._given: Sequence[Message] = ()
        self._answered: Sequence[Message] = ()
        self._stream: ModelStream | None = None

    @property
    def context(self) -> SessionContext:
        """The framework's view of it, which lives as long as the framework or a list of open runs holds it."""
        context = self._context()
        if context is None:
            raise ReferenceError("the run is over and forgotten")
        return context

    def asked(self, given: Sequence[Message]) -> None:
        """Take what the model is given: all behind the first time's messages belongs to the answer."""
        if self._given:
            first = set(map(id, self._given))
            self._answered = [message for message in given if id(message) not in first]
        else:
            self._given = tuple(given)
        self._stream = None
        self.ended = False

    def answered(self, response: ChatResponse) -> None:
        """Take a whole answer of the model."""
        self._answered = [*self._answered, *response.messages]

    def streaming(self, stream: ModelStream) -> None:
        """Take an answer of the model that is coming."""
        self._stream = stream

    @property
    def streams(self) -> bool:
        """Whether its answer comes in pieces."""
        return self._stream is not None

    def answer(self) -> list[ChatMessage]:
        """What has come of the answer, behind the request."""
        updates = [] if self._stream is None else list(self._stream.updates)
        coming = ChatResponse.from_updates(updates).messages if updates else []
        return [
            message if message.author_name is not None else message.model_copy(update={"author_name": self.agent.name})
            for message in messages([*self._answered, *coming])
        ]


class OpenRuns:
    """The runs that have not ended, so that none is forgotten whose end nobody tells.

    Such are streams that are left, and errors where nothing of ours stands. A run is then over when the task that it is
    part of is over, or begins another run of the conversation.
    """

    def __init__(self, fail: Fail) -> None:
        self._fail = fail
        self._runs: dict[Run, SessionContext] = {}
        self._watched = WeakSet[asyncio.Task[object]]()
        self._noting = set[asyncio.Task[None]]()

    def add(self, run: Run) -> None:
        """Take a run that goes on in this task."""
        run.task = asyncio.current_task()
        self._runs.setdefault(run, run.context)
        if run.task is not None and run.task not in self._watched:
            self._watched.add(run.task)
            run.task.add_done_callback(self._task_ended)

    def discard(self, run: Run) -> None:
        """Forget a run that has ended."""
        self._runs.pop(run, None)

    async def leave(self, key: str, *, only_streams: bool) -> None:
        """Note that this task, which begins something new in the conversation, left the runs that it had in it."""
        task = asyncio.current_task()
        mine = [run for run in self._runs if run.key == key and run.task is task and not run.is_read]
        for run in mine:
            if run.streams or not only_streams:
                await self._left(run)

    async def close(self) -> None:
        """Note that all that are left were left, and wait until that is stored."""
        for run in list(self._runs):
            await self._left(run)
        while self._noting:
            await asyncio.wait(self._noting)

    def _task_ended(self, task: "asyncio.Task[object]") -> None:
        for run in [run for run in self._runs if run.task is task]:
            noting = task.get_loop().create_task(self._left(run))
            self._noting.add(noting)
            noting.add_done_callback(self._noting.discard)

    async def _left(self, run: Run) -> None:
        try:
            await self._fail(run, GeneratorExit("the run was left before its end"))
        finally:
            self.discard(run)
