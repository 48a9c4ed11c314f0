"""Answers that come in pieces: stored when all have come; else the policy decides, when the block is left."""

# ruff: noqa: PT012 - what raises is the end of a block

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import pytest

from chathistory_core import StoredChatHistoryProvider, blocking, is_incomplete
from chathistory_core.messages import ChatMessage

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant


class Source:
    """Gives pieces, and says when it was closed and how often it was asked."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.asked = 0
        self.events: list[str] = []

    async def pieces(self) -> AsyncIterator[str]:
        try:
            for text in self.texts:
                self.asked += 1
                yield text
        finally:
            self.events.append("closed")

    def blocking(self) -> Iterator[str]:
        try:
            for text in self.texts:
                self.asked += 1
                yield text
        finally:
            self.events.append("closed")


class Response:
    """As a client's response: its iterator is an asynchronous generator that knows nothing of the connection."""

    def __init__(self) -> None:
        self.open = True

    async def __aiter__(self) -> AsyncIterator[str]:
        yield "Once "
        yield "upon"

    async def close(self) -> None:
        self.open = False


def joined(texts: Sequence[str]) -> ChatMessage:
    return ASSISTANT("".join(texts))


async def stored(history: StoredChatHistoryProvider) -> list[tuple[str, bool]]:
    return [(message.text, is_incomplete(message)) for message in await history.messages(history.session("k"))]


def partial(backend: Any) -> StoredChatHistoryProvider:
    return StoredChatHistoryProvider(backend, on_failure="partial")


def test_the_answer_is_stored_when_all_its_pieces_have_come(open_store: Any) -> None:
    async def run() -> None:
        async with open_store() as backend:
            history = partial(backend)
            source = Source("Once ", "upon ", "a time")
            seen = []
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for piece in turn.stream(source.pieces(), joined):
                    seen.append(piece)
                    assert await stored(history) == []
                    assert [message.text for message in turn.messages] == ["q"]
                assert [message.text for message in turn.messages] == ["q", "Once upon a time"]
                assert await stored(history) == []
            assert seen == source.texts
            assert await stored(history) == [("q", False), ("Once upon a time", False)]

    asyncio.run(run())


def test_a_stream_without_pieces_is_an_answer_of_what_load_makes_of_none(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for _ in turn.stream(Source().pieces(), lambda texts: []):
                    pass
            assert await stored(history) == [("q", False)]

    asyncio.run(run())


def test_breaking_off_stores_and_closes_at_once_in_the_same_task(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            source = Source("Once ", "upon ", "a time")
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for _ in turn.stream(source.pieces(), joined):
                    if source.asked == 2:
                        break
                assert source.events == []
            assert source.events == ["closed"]
            assert source.asked == 2
            assert asyncio.all_tasks() == {asyncio.current_task()}
            assert await stored(history) == [("q", False), ("Once upon ", True)]

    asyncio.run(run())


def test_an_abandoned_generator_around_the_turn_changes_nothing_of_what_is_stored(faulty: Any) -> None:
    """As a web framework leaves one whose client has gone: its end comes later, in another task."""

    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            source = Source("Once ", "upon ", "a time")

            async def answer() -> AsyncIterator[str]:
                async with history.turn(history.session("k"), [USER("q")]) as turn:
                    async for piece in turn.stream(source.pieces(), joined):
                        yield piece

            body = answer()
            assert [await anext(body), await anext(body)] == ["Once ", "upon "]
            await asyncio.create_task(body.aclose())  # type: ignore[attr-defined] # a generator, as its user knows not
            assert source.events == ["closed"]
            assert await stored(history) == [("q", False), ("Once upon ", True)]

    asyncio.run(run())


def test_a_stream_that_was_never_read_has_not_come_to_its_end(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                turn.stream(Source("Once").pieces(), joined)
            assert await stored(history) == [("q", False)]
            async with StoredChatHistoryProvider(backend).turn(history.session("k"), [USER("q")]) as turn:
                turn.stream(Source("Once").pieces(), joined)
            assert await stored(history) == [("q", False)]

    asyncio.run(run())


def test_what_is_added_after_breaking_off_is_the_answer(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            source = Source("Once ", "upon ", "a time")
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                seen = []
                stream = turn.stream(source.pieces(), joined)
                async for piece in stream:
                    seen.append(piece)
                    if len(seen) == 2:
                        break
                turn.add(joined(seen))
                with pytest.raises(RuntimeError, match="went on without"):
                    await anext(stream)
            assert source.events == ["closed"]
            assert await stored(history) == [("q", False), ("Once upon ", False)]

    asyncio.run(run())


def test_the_last_stream_counts_and_one_that_broke_before_it_is_no_part_of_the_answer(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            first, second = Source("Once ", "upon"), Source("It ", "was")
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for _ in turn.stream(first.pieces(), joined):
                    break
                async for _ in turn.stream(second.pieces(), joined):
                    pass
            assert first.events == second.events == ["closed"]
            assert await stored(history) == [("q", False), ("It was", False)]

    asyncio.run(run())


def test_what_was_added_before_a_stream_that_broke_off_is_part_of_the_incomplete_answer(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for _ in turn.stream(Source("I look.").pieces(), joined):
                    pass
                turn.add(ChatMessage.tool("c", "12:00"))
                async for _ in turn.stream(Source("It ", "is").pieces(), joined):
                    break
            assert await stored(history) == [("q", False), ("I look.", True), ("", True), ("It ", True)]

    asyncio.run(run())


def test_an_end_that_comes_before_the_answers_end_is_an_error(faulty: Any) -> None:
    def load(texts: Sequence[str]) -> ChatMessage:
        marks = {} if texts and texts[-1].endswith(".") else {"additional_properties": {"_incomplete": True}}
        return joined(texts).model_copy(update=marks)

    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            with pytest.raises(EOFError, match="before the answer did"):
                async with history.turn(history.session("k"), [USER("q")]) as turn:
                    async for _ in turn.stream(Source("Once ", "upon").pieces(), load):
                        pass
            assert await stored(history) == [("q", False), ("Once upon", True)]
            async with history.turn(history.session("k"), [USER("q2")]) as turn:
                async for _ in turn.stream(Source("It ", "was.").pieces(), load):
                    pass
            assert (await stored(history))[2:] == [("q2", False), ("It was.", False)]

    asyncio.run(run())


def test_pieces_that_make_no_message_leave_the_request_and_the_first_error(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def load(texts: Sequence[str]) -> ChatMessage:
        raise ValueError("canary")

    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            with pytest.raises(LookupError, match="first"):
                async with history.turn(history.session("k"), [USER("q")]) as turn:
                    async for _ in turn.stream(Source("a").pieces(), load):
                        raise LookupError("first")
            assert await stored(history) == [("q", False)]
            with pytest.raises(ValueError, match="canary"):
                async with history.turn(history.session("k"), [USER("q2")]) as turn:
                    async for _ in turn.stream(Source("a").pieces(), load):
                        pass
            assert await stored(history) == [("q", False), ("q2", False)]

    asyncio.run(run())
    assert "makes no message: ValueError" in caplog.text
    assert "canary" not in caplog.text


def test_a_clients_response_is_closed_and_one_that_cannot_be_hides_no_error(
    faulty: Any, caplog: pytest.LogCaptureFixture
) -> None:
    class Stuck(Response):
        async def close(self) -> None:
            raise OSError("canary")

    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            response = Response()
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                async for _ in turn.stream(response, joined):
                    break
            assert not response.open
            with pytest.raises(LookupError):
                async with history.turn(history.session("k"), [USER("q")]) as turn:
                    async for _ in turn.stream(Stuck(), joined):
                        raise LookupError

    asyncio.run(run())
    assert "closing a stream that was left failed: OSError" in caplog.text
    assert "canary" not in caplog.text


def test_a_stream_is_begun_inside_the_block_and_read_there(faulty: Any) -> None:
    async def run() -> None:
        async with faulty as backend:
            history = StoredChatHistoryProvider(backend)
            turn = history.turn(history.session("k"), [USER("q")])
            with pytest.raises(RuntimeError, match="inside its block"):
                turn.stream(Response(), joined)
            async with turn:
                stream = turn.stream(Response(), joined)
            with pytest.raises(RuntimeError, match="the turn is over"):
                await anext(stream)
            async with history.turn(history.session("k"), [USER("q")]) as turn:
                stream = turn.stream(Response(), joined)
                assert [piece async for piece in stream] == ["Once ", "upon"]
            with pytest.raises(StopAsyncIteration):
                await anext(stream)

    asyncio.run(run())


def test_cancelled_at_any_await_the_stream_is_kept_as_far_as_it_came(faulty: Any) -> None:
    async def cancelled_after(steps: int, history: StoredChatHistoryProvider) -> str:
        session = history.session(f"k{steps}")
        seen: list[str] = []

        async def slow() -> AsyncIterator[str]:
            for text in ("Once ", "upon ", "a time"):
                await asyncio.sleep(0)
                yield text

        async def job() -> None:
            async with history.turn(session, [USER("q")]) as turn:
                async for piece in turn.stream(slow(), joined):
                    seen.append(piece)
                    await asyncio.sleep(0)

        task = asyncio.create_task(job())
        for _ in range(steps):
            await asyncio.sleep(0)
        begun = "get" in faulty.calls
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        found = [(message.text, is_incomplete(message)) for message in await history.messages(session)]
        said = "".join(seen)
        if not found:
            assert not seen
            return "nothing"
        if said == "Once upon a time" and not found[-1][1]:
            return "whole"
        assert found == [("q", False), *([(said, True)] if said else [])], (steps, begun)
        return "partial"

    async def run() -> None:
        async with faulty as backend:
            history = partial(backend)
            backend.steps = 3
            ends = [await cancelled_after(steps, history) for steps in range(12)]
            assert {"nothing", "partial", "whole"} == set(ends), ends

    asyncio.run(run())


@pytest.mark.parametrize("way", ["end", "break", "raise"])
def test_the_blocking_face_streams_alike(way: str) -> None:
    source = Source("Once ", "upon ", "a time")
    with blocking.open_history("memory://", on_failure="partial") as history:
        session = history.session("k")
        failure = pytest.raises(LookupError) if way == "raise" else nullcontext()
        with failure, history.turn(session, [USER("q")]) as turn:
            for piece in turn.stream(source.blocking(), joined):
                if piece == "upon " and way == "raise":
                    raise LookupError
                if piece == "upon " and way == "break":
                    break
        assert source.events == ["closed"]
        found = [(message.text, is_incomplete(message)) for message in history.messages(session)]
        answer = ("Once upon a time", False) if way == "end" else ("Once upon ", True)
        assert found == [("q", False), answer]
