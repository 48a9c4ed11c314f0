"""Whatever others do meanwhile, a run is given what it is given by a provider that remembers nothing."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from chathistory_core import (
    ChatHistoryBackend,
    ChatHistoryError,
    ChatMessage,
    Record,
    StoredChatHistoryProvider,
    Window,
)
from chathistory_core.formats import note
from chathistory_core.messages import FunctionCallContent
from chathistory_core.saving.storing import OnFailure
from chathistory_core.views.repair import Repair
from chathistory_memory import MemoryBackend
from chathistory_sqlite import SQLiteBackend

TURNS = (None, "a", "b", "c")
CALL = ChatMessage(role="assistant", contents=[FunctionCallContent(call_id="c", name="f", arguments={})])
ANSWERS: Sequence[list[ChatMessage]] = (
    [ChatMessage.assistant("ok")],
    [CALL, ChatMessage.tool("c", 1)],
    [CALL],
    [ChatMessage.system("Be kind")],
    [],
)


class FailedError(Exception):
    """What a run fails with."""


class KeepLast:
    """A reducer."""

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return messages[-3:]


class Histories:
    """One that remembers, one beside it that writes, and new ones that remember nothing."""

    def __init__(self, backend: ChatHistoryBackend, random: Random) -> None:
        self.backend = backend
        self.random = random
        self._window = random.choice([None, None, Window(messages=4)])
        self._repair: Repair | None = random.choice([None, "drop", "answer"])
        self._trusted = random.choice([None, None, ["user", "assistant"]])
        self._on_failure: OnFailure = random.choice(["discard", "request", "partial"])
        self.remembering, self.other = self._made(random.choice([20_000, 2**20])), self._made(0)

    def _made(self, most: int) -> StoredChatHistoryProvider:
        return StoredChatHistoryProvider(
            self.backend,
            window=self._window,
            repair=self._repair,
            trusted_roles=self._trusted,
            on_failure=self._on_failure,
            max_remembered_bytes=most,
        )

    async def change(self, step: int) -> None:
        random = self.random
        history = random.choice([self.remembering, self.remembering, self.other])
        session = history.session("ann")
        match random.randrange(12):
            case 0:
                await history.set_messages(session, [ChatMessage.user(f"set {step}")] * random.randrange(3))
            case 1:
                await history.clear(session)
            case 2:
                await history.compact(session, KeepLast(), archive=False)
            case 3:
                await history.messages(session, limit=random.choice([None, 2]))
            case 4:
                said = Record(json.dumps(step).encode(), note.name)
                await self.backend.append("ann", [said], turn_id=f"note {step}")
            case _:
                turn_id = random.choice(TURNS)
                async with history.turn(session, [ChatMessage.user(f"{turn_id}?")], turn_id=turn_id) as turn:
                    if not turn.replayed:
                        turn.add(random.choice(ANSWERS))
                    if random.random() < 0.25:
                        raise FailedError

    async def check(self) -> None:
        for turn_id in TURNS:
            same = await given(self.remembering, turn_id) == await given(self._made(0), turn_id)
            assert same


async def given(history: StoredChatHistoryProvider, turn_id: str | None) -> object:
    """All that a run sees of the conversation, which it leaves as it is."""
    session = history.session("ann")
    stored = await history.messages(session)
    turn = history.turn(session, [ChatMessage.user(f"{turn_id}?")], turn_id=turn_id)
    try:
        await turn.__aenter__()  # never left: nothing is stored
    except ChatHistoryError as error:
        return [*stored], stored.revision, stored.epoch, type(error), str(error)
    return [*stored], stored.revision, stored.epoch, turn.messages, turn.view, turn.replayed, turn.answer


@pytest.mark.parametrize("seed", range(24))
def test_what_is_remembered_changes_nothing(seed: int, tmp_path: Path) -> None:
    random, now = Random(seed), [datetime(2026, 1, 1, tzinfo=UTC)]

    def clock() -> datetime:
        now[0] += timedelta(microseconds=1)
        return now[0]

    async def run() -> None:
        backend = (
            MemoryBackend(ttl=timedelta(hours=1), clock=clock)
            if seed % 3
            else SQLiteBackend.from_path(tmp_path / "history.db")
        )
        async with backend:
            histories = Histories(backend, random)
            for step in range(25):
                now[0] += timedelta(minutes=random.choice([0, 0, 0, 30]))
                with suppress(ChatHistoryError, FailedError):
                    await histories.change(step)
                await histories.check()

    asyncio.run(run())
