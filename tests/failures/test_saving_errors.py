"""A store that cannot take a run: the error holds it, and nobody sees it by looking at the error."""

import asyncio
import copy
import logging
import pickle
import traceback
from typing import Any

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryError,
    EncodeError,
    EpochChangedError,
    InvokedContext,
    InvokingContext,
    RevisionConflictError,
    StoredChatHistoryProvider,
    TurnConflictError,
)
from chathistory_core.messages import ChatMessage

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant
CANARY = "canary-42"


async def texts(history: StoredChatHistoryProvider) -> list[str]:
    return [message.text for message in await history.messages(history.session("k"))]


async def save_in_vain(history: StoredChatHistoryProvider, turn_id: str | None = "T") -> ChatHistoryError:
    with pytest.raises(ChatHistoryError) as failed:
        async with history.turn(history.session("k"), [USER(CANARY)], turn_id=turn_id) as turn:
            turn.add(ASSISTANT(CANARY))
    return failed.value


def test_the_error_holds_the_run_and_invoked_with_it_stores_it_once(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            for down, lost in ((True, 0), (False, 1)):
                backend.down, backend.lost_replies = {"append"} if down else set(), lost
                error = await save_in_vain(history, f"T{lost}")
                assert type(error) is BackendUnavailableError
                assert error.retryable
                backend.down = set()
                [unsaved] = error.unsaved
                assert [message.text for message in unsaved.response_messages or ()] == [CANARY]
                for _ in range(2):
                    await history.invoked(unsaved)
            assert await texts(history) == [CANARY] * 4

    asyncio.run(run())


def test_nothing_of_the_run_shows_in_the_error_its_copies_or_the_log(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            backend.down = {"append"}
            error = await save_in_vain(history)
            error.add_note("a note")
            shown = [str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)]
            assert CANARY not in "".join(shown)
            logging.getLogger("chathistory").error("failed", exc_info=error)
            for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
                assert type(twin) is type(error)
                assert (str(twin), twin.unsaved, twin.__notes__) == (str(error), (), ["a note"])
                assert CANARY.encode() not in pickle.dumps(twin)
            assert CANARY.encode() not in pickle.dumps(error)

    with caplog.at_level(logging.DEBUG):
        asyncio.run(run())
    assert CANARY not in caplog.text


def test_every_error_of_saving_holds_the_run(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            exclusive = StoredChatHistoryProvider(backend, exclusive=True)
            session = history.session("k")
            bad = ASSISTANT("x").model_copy(update={"role": "\ud800"})

            async def fails(provider: StoredChatHistoryProvider, answer: ChatMessage, meanwhile: Any) -> Any:
                began = InvokingContext(None, session, [USER("q")])
                given = await provider.invoking(began)
                await meanwhile()
                ended = InvokedContext.succeeded(None, session, given, [answer], invoking=began, turn_id="E")
                with pytest.raises(ChatHistoryError) as failed:
                    await provider.invoked(ended)
                assert failed.value.unsaved == (ended,)
                return type(failed.value)

            async def nothing() -> None:
                pass

            async def put() -> None:
                async with history.turn(session, [USER("other")]):
                    pass

            async def take() -> None:
                await history.invoked(InvokedContext.succeeded(None, session, [USER("q")], [], turn_id="E"))

            await put()
            assert await fails(history, bad, nothing) is EncodeError
            assert await fails(exclusive, ASSISTANT("a"), put) is RevisionConflictError
            assert await fails(history, ASSISTANT("a"), lambda: history.clear(session)) is EpochChangedError
            assert await fails(history, ASSISTANT("a"), take) is TurnConflictError

    asyncio.run(run())


def test_an_error_of_loading_holds_nothing(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            backend.down = {"get"}
            assert (await save_in_vain(StoredChatHistoryProvider(backend))).unsaved == ()

    asyncio.run(run())


def test_a_turn_whose_saving_failed_is_saved_again_under_its_own_id(open_store: Any, before: Any) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = StoredChatHistoryProvider(backend)
            turn = history.turn(history.session("k"), [USER("q")])
            for attempt in range(3):
                backend.down, backend.lost_replies = ({"append"}, 0) if attempt == 0 else (set(), 1)
                if attempt == 0:
                    with pytest.raises(BackendUnavailableError):
                        async with turn:
                            turn.add(ASSISTANT("a"))
                elif attempt == 1:
                    with pytest.raises(BackendUnavailableError, match="lost"):
                        await turn.save()
                else:
                    backend.lost_replies = 0
                    await turn.save()
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())
