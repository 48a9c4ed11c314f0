"""Ctrl-C while a call waits."""

import asyncio
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType, TracebackType

import pytest

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    Conversation,
    Record,
    StoredChatHistoryProvider,
    Written,
    blocking,
)
from chathistory_core.messages import ChatMessage
from chathistory_core.plugin import BackendOptions
from chathistory_memory import MemoryBackend

USER, ASSISTANT = ChatMessage.user, ChatMessage.assistant
A_RECORD = [Record(b"one", "chat-message")]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows sends no signal to a thread")


class StandingStill(MemoryBackend):
    """Each `get` of records and each `append` calls `arrived` and stands still until it is let go."""

    def __init__(self, arrived: Callable[[], object]) -> None:
        super().__init__()
        self.cancelled = threading.Event()
        self.failure: Exception | None = None
        self._arrived = arrived
        self._go = asyncio.Event()
        self._reads_go = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def let_go(self) -> None:
        """Go on from now on; from any thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._go.set)

    def let_reads_go(self) -> None:
        """Stand still in writes alone."""
        self._reads_go = True

    async def _stand_still(self) -> None:
        self._loop = asyncio.get_running_loop()
        if not self._go.is_set():
            self._arrived()
        try:
            await self._go.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.failure is not None:
            raise self.failure

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        if limit != 0 and not self._reads_go:
            await self._stand_still()
        return await super().get(key, limit=limit, before=before, after=after)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        await self._stand_still()
        return await super().append(
            key, records, turn_id=turn_id, expected_revision=expected_revision, expected_epoch=expected_epoch
        )


INTERRUPTED: list[FrameType | None] = [None]
"""Where the last interrupt found the main thread."""


def interrupt_when_waiting() -> None:
    """Ctrl-C, once the main thread waits, and not where it was interrupted already; called in another thread."""
    main = threading.main_thread().ident
    assert main is not None
    while True:
        frame = sys._current_frames()[main]
        if frame.f_code is threading.Condition.wait.__code__ and frame is not INTERRUPTED[0]:
            break
    signal.pthread_kill(main, signal.SIGINT)


@pytest.fixture
def on_interrupt() -> Iterator[list[Callable[[], object]]]:
    """What the interrupts do before each raises: the first of the list, then the next."""
    steps: list[Callable[[], object]] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        INTERRUPTED[0] = frame
        if steps:
            steps.pop(0)()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    yield steps
    signal.signal(signal.SIGINT, before)
    INTERRUPTED[0] = None


def test_a_read_is_left_at_once_and_cancelled(on_interrupt: list[Callable[[], object]]) -> None:
    with blocking.BlockingBackend(asynchronous := StandingStill(interrupt_when_waiting)) as backend:
        with pytest.raises(KeyboardInterrupt):
            backend.get("k")
        assert asynchronous.cancelled.wait(10)
        assert backend.get("k", limit=0).record_count == 0


def test_entering_a_turn_is_left_at_once_and_stores_nothing(on_interrupt: list[Callable[[], object]]) -> None:
    with blocking.BlockingBackend(StandingStill(interrupt_when_waiting)) as backend:
        history = blocking.BlockingProvider(StoredChatHistoryProvider(backend.target))
        with pytest.raises(KeyboardInterrupt), history.turn(history.session("k"), [USER("q")]):
            pass
        assert not history.exists("k")


def test_a_write_is_waited_for(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    on_interrupt.append(asynchronous.let_go)
    with blocking.BlockingBackend(asynchronous, save_timeout=3_600) as backend:
        with pytest.raises(KeyboardInterrupt):
            backend.append("k", A_RECORD, turn_id="1")
        assert backend.get("k").record_count == 1
        assert not asynchronous.cancelled.is_set()


def interrupt_twice(on_interrupt: list[Callable[[], object]]) -> None:
    """Follow the next interrupt by another one."""
    first = threading.Event()
    on_interrupt.append(first.set)

    def interrupt_again() -> None:
        first.wait()
        interrupt_when_waiting()

    threading.Thread(target=interrupt_again).start()


def test_a_second_interrupt_leaves_a_write_at_once(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    interrupt_twice(on_interrupt)
    with blocking.BlockingBackend(asynchronous, save_timeout=3_600) as backend:
        with pytest.raises(KeyboardInterrupt):
            backend.append("k", A_RECORD, turn_id="1")
        assert asynchronous.cancelled.wait(10)
        assert on_interrupt == []
        assert backend.get("k", limit=0).record_count == 0


def test_a_second_interrupt_leaves_the_save_of_a_turn_at_once(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    asynchronous.let_reads_go()
    interrupt_twice(on_interrupt)

    class Options(BackendOptions):
        def open(self) -> ChatHistoryBackend:
            return asynchronous

    with blocking.open_history(Options(), save_timeout=3_600) as history:
        with pytest.raises(KeyboardInterrupt), history.turn(history.session("k"), [USER("q")]):
            pass
        assert asynchronous.cancelled.wait(10)
        assert history.count("k") == 0


def test_a_write_is_left_when_its_time_is_up(
    on_interrupt: list[Callable[[], object]], caplog: pytest.LogCaptureFixture
) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    with blocking.BlockingBackend(asynchronous, save_timeout=0.01) as backend:
        with pytest.raises(KeyboardInterrupt):
            backend.append("k", A_RECORD, turn_id="1")
        assert asynchronous.cancelled.wait(10)
        assert "a write was not done within 0.01 s of being interrupted: the outcome is unknown" in caplog.messages


def test_a_turn_is_saved_although_it_is_interrupted(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    on_interrupt.append(asynchronous.let_go)
    with blocking.BlockingBackend(asynchronous) as backend:
        history = blocking.BlockingProvider(StoredChatHistoryProvider(backend.target), save_timeout=3_600)
        turn = history.turn(history.session("k"), [USER("q")])
        asynchronous.let_reads_go()
        with pytest.raises(KeyboardInterrupt), turn:
            turn.add(ASSISTANT("a"))
        assert [message.text for message in history.messages(history.session("k"))] == ["q", "a"]


def test_a_save_that_fails_while_it_is_interrupted_is_logged_and_can_be_repeated(
    on_interrupt: list[Callable[[], object]], caplog: pytest.LogCaptureFixture
) -> None:
    asynchronous = StandingStill(interrupt_when_waiting)
    asynchronous.failure = BackendUnavailableError("the store is gone")
    on_interrupt.append(asynchronous.let_go)
    with blocking.BlockingBackend(asynchronous) as backend:
        history = blocking.BlockingProvider(StoredChatHistoryProvider(backend.target), save_timeout=3_600)
        turn = history.turn(history.session("k"), [USER("q")])
        asynchronous.let_reads_go()
        with pytest.raises(KeyboardInterrupt), turn:
            turn.add(ASSISTANT("a"))
        assert "a write failed while being interrupted: BackendUnavailableError" in caplog.messages
        asynchronous.failure = None
        turn.save()
        assert history.count("k") == 2


def test_an_interrupt_inside_the_block_is_a_failure_of_the_turn() -> None:
    with blocking.open_history("memory://") as history:
        with pytest.raises(KeyboardInterrupt), history.turn(history.session("k"), [USER("q")]):
            signal.raise_signal(signal.SIGINT)
        assert not history.exists("k")


def test_another_exception_of_a_signal_handler_ends_a_read_too(on_interrupt: list[Callable[[], object]]) -> None:
    def time_is_up() -> None:
        raise TimeoutError("the application's")

    on_interrupt.append(time_is_up)
    with blocking.BlockingBackend(asynchronous := StandingStill(interrupt_when_waiting)) as backend:
        with pytest.raises(TimeoutError, match="the application's"):
            backend.get("k")
        assert asynchronous.cancelled.wait(10)


class SlowToClose(MemoryBackend):
    """Interrupts the main thread while it closes."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self.closed = threading.Event()

    def let_go(self) -> None:
        assert self.loop is not None
        self.loop.call_soon_threadsafe(self.go.set)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.loop = asyncio.get_running_loop()
        interrupt_when_waiting()
        await self.go.wait()
        await super().__aexit__(kind, error, traceback)
        self.closed.set()


def test_a_closing_that_takes_its_time_is_waited_for(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = SlowToClose()
    on_interrupt.append(asynchronous.let_go)
    with pytest.raises(KeyboardInterrupt), blocking.BlockingBackend(asynchronous, save_timeout=3_600):
        pass
    assert asynchronous.closed.is_set()


def test_a_closing_after_an_interrupt_is_left_by_the_next_one(on_interrupt: list[Callable[[], object]]) -> None:
    asynchronous = SlowToClose()
    with pytest.raises(KeyboardInterrupt), blocking.BlockingBackend(asynchronous, save_timeout=3_600):
        raise KeyboardInterrupt
    assert not asynchronous.closed.is_set()
