"""Runs that wait for a store that cannot be reached: none is lost, none is stored twice, their order stays."""

# ruff: noqa: PT012 - what raises is the end of a block

import asyncio
import gc
import logging
import tracemalloc
from random import Random
from typing import Any

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    InvokedContext,
    StoredChatHistoryProvider,
    Turn,
    TurnConflictError,
    blocking,
    is_incomplete,
    open_backend,
    open_history,
)
from chathistory_core.messages import ChatMessage
from chathistory_core.plugin import BackendOptions
from chathistory_core.saving import outbox

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


def waiting(backend: Any, **more: Any) -> StoredChatHistoryProvider:
    return StoredChatHistoryProvider(backend, on_save_error="outbox", **more)


async def ask(
    history: StoredChatHistoryProvider, question: str, answer: str, *, key: str = "k", turn_id: str | None = None
) -> tuple[Turn, list[str]]:
    """A run that succeeds, and what its model was sent."""
    async with history.turn(history.session(key), [USER(question)], turn_id=turn_id) as turn:
        sent = [message.text for message in turn.messages]
        if not turn.replayed:
            turn.add(ASSISTANT(answer))
    return turn, sent


async def texts(history: StoredChatHistoryProvider, key: str = "k") -> list[str]:
    return [message.text for message in await history.messages(history.session(key))]


def test_a_run_that_cannot_be_saved_waits_and_the_next_run_sees_it_and_saves_it_first(
    open_store: Any, before: Any
) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = waiting(backend)
            await ask(history, "q0", "a0")
            backend.down = {"append"}
            for number in (1, 2):
                _, sent = await ask(history, f"q{number}", f"a{number}")
                assert sent == [f"{kind}{each}" for each in range(number) for kind in "qa"] + [f"q{number}"]
            assert [run.turn_id for run in history.unsaved] != []
            assert await texts(history) == ["q0", "a0"]
            backend.down = set()
            _, sent = await ask(history, "q3", "a3")
            assert sent == ["q0", "a0", "q1", "a1", "q2", "a2", "q3"]
            assert history.unsaved == ()
            assert await texts(history) == [f"{kind}{number}" for number in range(4) for kind in "qa"]

    asyncio.run(run())


def test_a_reply_that_was_lost_is_no_second_message(open_store: Any, before: Any) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = waiting(backend)
            backend.lost_replies = 2
            await ask(history, "q", "a")
            assert len(history.unsaved) == 1
            with pytest.raises(BackendUnavailableError):
                await history.save_unsaved()
            await history.save_unsaved()
            assert history.unsaved == ()
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_a_run_that_is_stored_takes_one_of_another_conversation_along(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            for key in ("a", "b", "c"):
                await ask(history, f"q {key}", "answer", key=key)
            backend.down = set()
            for left in (2, 1, 0, 0):
                await ask(history, "q", "a")
                assert len(history.unsaved) == left
            assert [await texts(history, key) for key in "abc"] == [[f"q {key}", "answer"] for key in "abc"]

    asyncio.run(run())


def test_a_conversation_that_cannot_be_saved_does_not_keep_the_others_waiting(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down_keys = {"bad"}
            backend.down = {"append"}
            for key in ("bad", "a", "bad", "b"):
                await ask(history, "q", "a", key=key)
            backend.down = set()
            for _ in range(3):
                await ask(history, "q", "a")
            assert [len(await texts(history, key)) for key in ("bad", "a", "b")] == [0, 2, 2]
            assert len(history.unsaved) == 2
            backend.down_keys = set()
            await history.save_unsaved()
            assert await texts(history, "bad") == ["q", "a", "q", "a"]

    asyncio.run(run())


def test_the_store_is_asked_no_more_than_once_for_what_waits_in_a_load_that_finds_it_down(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            for key in ("a", "b", "c", "k", "k"):
                await ask(history, "q", "a", key=key)
            backend.calls.clear()
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                assert backend.calls == ["append", "get"]
                turn.add(ASSISTANT("a"))
            assert backend.calls == ["append", "get", "append"]

    asyncio.run(run())


def test_while_nothing_can_be_read_either_a_run_goes_on_from_what_waits(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend, on_load_error="empty")
            await ask(history, "q0", "a0")
            backend.down = {"append", "get"}
            await ask(history, "q1", "a1")
            _, sent = await ask(history, "q2", "a2")
            assert sent == ["q1", "a1", "q2"]
            backend.down = set()
            _, sent = await ask(history, "q3", "a3")
            assert sent == ["q0", "a0", "q1", "a1", "q2", "a2", "q3"]
            assert len(await texts(history)) == 8

    asyncio.run(run())


def test_a_turn_that_waits_is_replayed(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend, on_load_error="empty")
            for down in ({"append"}, {"append", "get"}):
                backend.down = down
                await ask(history, "q", "a", turn_id="T")
                turn, sent = await ask(history, "q", "never", turn_id="T")
                assert turn.replayed
                assert sent == ["q", "a"]
                assert len(history.unsaved) == 1
            backend.down = set()
            turn, _ = await ask(history, "q", "never", turn_id="T")
            assert turn.replayed
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_another_request_under_the_id_of_a_turn_that_waits_conflicts_when_it_is_saved(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            await ask(history, "q", "a", turn_id="T")
            backend.down = set()
            with pytest.raises(TurnConflictError):
                await ask(history, "another", "b", turn_id="T")
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_a_run_that_is_told_twice_waits_once(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            ended = InvokedContext.succeeded(None, history.session("k"), [USER("q")], [ASSISTANT("a")])
            for _ in range(3):
                await history.invoked(ended)
            assert [run.turn_id for run in history.unsaved] == [ended.turn_id]
            backend.down = set()
            await history.invoked(ended)
            assert history.unsaved == ()
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_a_turn_that_somebody_else_answered_meanwhile_is_given_up_and_those_behind_it_are_stored(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            await ask(history, "q", "canary", turn_id="T")
            await ask(history, "q2", "a2")
            await ask(StoredChatHistoryProvider(backend.backend), "q", "a", turn_id="T")
            backend.down = set()
            await history.save_unsaved()
            assert history.unsaved == ()
            assert await texts(history) == ["q", "a", "q2", "a2"]

    asyncio.run(run())
    assert "a run that waited is not stored: turn 'T' of conversation 'k'" in caplog.text
    assert "canary" not in caplog.text


def test_what_is_kept_of_a_run_that_failed_waits_too_and_is_left_out_when_it_is_tried_again(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend, on_failure="partial", on_load_error="empty")
            await ask(history, "q0", "a0")
            backend.down = {"append"}
            for half in ("half", "another half"):
                with pytest.raises(LookupError):
                    async with history.turn(history.session("k"), [USER("q")], turn_id="T") as turn:
                        turn.add(ASSISTANT(half))
                        raise LookupError
            assert len(history.unsaved) == 2
            async with history.turn(history.session("k"), [USER("next")]) as turn:
                sent = [message.text for message in turn.messages]
                assert sent == ["q0", "a0", "q", "half", "another half", "next"]
                turn.add(ASSISTANT("ok"))
            _, sent = await ask(history, "q", "a", turn_id="T")
            assert sent == ["q0", "a0", "next", "ok", "q"]
            _, sent = await ask(history, "last", "ok")
            assert sent == ["q0", "a0", "q", "next", "ok", "a", "last"]
            backend.down = set()
            await history.save_unsaved()
            assert (await texts(history))[:-2] == ["q0", "a0", "q", "half", "another half", "next", "ok", "a"]
            found = await history.messages(history.session("k"))
            assert [message.text for message in found if is_incomplete(message)] == ["half", "another half"]

    asyncio.run(run())


def test_a_conversation_that_was_cleared_is_not_brought_back_by_what_waited(
    open_store: Any, before: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with before(open_store()) as backend:
            history = waiting(backend)
            backend.down = {"append"}
            await ask(history, "q", "canary", key="new")
            await history.clear(history.session("new"))
            assert history.unsaved == ()
            backend.down = set()
            await ask(history, "q", "a", key="old")
            backend.down = {"append"}
            await ask(history, "q", "canary", key="old")
            await backend.backend.clear("old")  # by somebody else
            backend.down = set()
            await history.save_unsaved()
            assert history.unsaved == ()
            assert not await history.exists("new")
            assert not await history.exists("old")

    asyncio.run(run())
    assert "a run that waited is not stored: conversation 'old': it was cleared" in caplog.text
    assert "canary" not in caplog.text


@pytest.mark.parametrize("bound", ["MAX_RUNS", "MAX_BYTES"])
def test_where_no_more_may_wait_the_error_is_raised_and_holds_the_run(
    faulty: Any, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(outbox, bound, 2 if bound == "MAX_RUNS" else 1_000)

    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            backend.down = {"append"}
            answer = "a" * 300
            for _ in range(2):
                await ask(history, "q", answer)
            with pytest.raises(BackendUnavailableError) as full:
                await ask(history, "q", answer)
            [unsaved] = full.value.unsaved
            assert len(history.unsaved) == 2
            backend.down = set()
            await history.invoked(unsaved)
            assert len(await texts(history)) == 6

    asyncio.run(run())


def test_runs_that_wait_hold_nothing_of_the_history_that_they_were_given(before: Any, tmp_path: Any) -> None:
    async def run() -> int:
        async with before(open_backend(f"sqlite:///{tmp_path}/history.db")) as backend:
            history = waiting(backend)
            await ask(history, "q" * 2**21, "a")
            backend.down = {"append"}
            tracemalloc.start()
            try:
                for _ in range(8):
                    await ask(history, "q", "a")
                gc.collect()
                return tracemalloc.get_traced_memory()[0]
            finally:
                tracemalloc.stop()

    assert asyncio.run(run()) < 8 * 2**20


def test_a_save_that_is_given_up_while_its_task_is_cancelled_waits(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend, save_timeout=0.02)
            backend.hangs = True
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await ask(history, "q", "a")
            assert len(history.unsaved) == 1
            backend.hangs = False
            await history.save_unsaved()
            assert await texts(history) == ["q", "a"]

    asyncio.run(run())


def test_an_error_that_no_later_attempt_mends_is_raised(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            await ask(history, "q", "a", turn_id="T")
            with pytest.raises(TurnConflictError) as refused:
                async with history.turn(history.session("k"), [USER("q")], turn_id="T") as turn:
                    turn.add(ASSISTANT("another"))
            assert len(refused.value.unsaved) == 1
            assert history.unsaved == ()

    asyncio.run(run())


def test_a_scope_sees_its_own_runs_alone(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = waiting(backend)
            ann, bob = history.scoped("ann"), history.scoped("bob")
            backend.down = {"append"}
            await ask(ann, "q", "a")
            await ask(bob, "q", "b")
            await ask(bob, "q", "c")
            assert [len(each.unsaved) for each in (ann, bob, history)] == [1, 2, 3]
            backend.down = set()
            await ann.save_unsaved()
            assert [len(each.unsaved) for each in (ann, bob, history)] == [0, 2, 2]

    asyncio.run(run())


class Options(BackendOptions):
    """Names a store that is there already."""

    def open(self) -> ChatHistoryBackend:
        return opened[-1]


opened: list[ChatHistoryBackend] = []


def test_leaving_open_history_saves_what_waits(faulty: Any, caplog: pytest.LogCaptureFixture) -> None:
    opened.append(faulty)

    async def run() -> None:
        async with open_history(Options(), on_save_error="outbox") as history:
            faulty.down = {"append"}
            await ask(history, "q", "a")
            faulty.down = set()
        async with open_history(Options()) as history:
            assert await texts(history) == ["q", "a"]

        with pytest.raises(BackendUnavailableError) as left:
            async with open_history(Options(), on_save_error="outbox") as history:
                faulty.down = {"append"}
                await ask(history, "q2", "a2")
                await ask(history, "q3", "a3")
        assert [run.request_messages[-1].text for run in left.value.unsaved] == ["q2", "q3"]

        with pytest.raises(LookupError):
            async with open_history(Options(), on_save_error="outbox") as history:
                await ask(history, "q2", "canary")
                raise LookupError

    asyncio.run(run())
    told = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert told == [f"runs that waited and are not stored: {number}" for number in (2, 1)]
    assert "canary" not in caplog.text


def test_the_blocking_face_has_the_outbox(tmp_path: Any) -> None:
    with blocking.open_history(f"sqlite:///{tmp_path}/h.db", on_save_error="outbox") as history:
        with history.turn(history.session("k"), [USER("q")]) as turn:
            turn.add(ASSISTANT("a"))
        assert history.unsaved == ()
        history.save_unsaved()
        assert len(history.messages(history.session("k"))) == 2


def test_an_exclusive_history_has_no_outbox_and_an_unknown_choice_is_refused(faulty: Any) -> None:
    with pytest.raises(ValueError, match="`exclusive` run is told at its end"):
        waiting(faulty, exclusive=True)
    with pytest.raises(ValueError, match="`on_save_error` is one of 'raise', 'outbox', not 'ignore'"):
        StoredChatHistoryProvider(faulty, on_save_error="ignore")  # type: ignore[arg-type] # as a caller without types


def test_whenever_the_store_comes_and_goes_every_run_is_stored_once_in_its_order(
    open_store: Any, before: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def outage(backend: Any, seed: int) -> None:
        random = Random(seed)
        history = waiting(backend, on_load_error="empty")

        async def conversation(key: str) -> None:
            for number in range(8):
                backend.down = random.choice([set(), {"append"}, {"append", "get"}])
                backend.lost_replies = random.randrange(2)
                _, sent = await ask(history, f"q{number}", f"a{number}", key=key)
                assert sent[-1] == f"q{number}"
                await asyncio.sleep(0)

        await asyncio.gather(*(conversation(key) for key in "abc"))
        backend.down, backend.lost_replies = set(), 0
        await history.save_unsaved()
        for key in "abc":
            assert await texts(history, key) == [f"{kind}{number}" for number in range(8) for kind in "qa"], seed
            await history.clear(history.session(key))

    async def run() -> None:
        async with before(open_store()) as backend:
            for seed in range(8):
                await outage(backend, seed)

    with caplog.at_level(logging.ERROR, "chathistory"):
        asyncio.run(run())
    assert caplog.text == ""


def test_a_history_that_nobody_closes_ends_with_its_loop(tmp_path: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        history = await opening.__aenter__()
        async with history.turn(history.session("k"), [ChatMessage.user("Hi")]):
            pass

    opening = open_history(f"sqlite:///{tmp_path}/history.db")
    asyncio.run(run())
    assert caplog.record_tuples == []
