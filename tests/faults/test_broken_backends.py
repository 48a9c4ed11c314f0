"""Each backend here breaks one promise that only a fault shows; the kit's test of that fault must fail on it."""

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Self

import pytest

from chathistory_core import (
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryBackend,
    Conversation,
    Record,
    Written,
    new_revision,
    new_turn_id,
)
from chathistory_core.testing.cancellation import CancellationTests
from chathistory_core.testing.crashes import CrashTests
from chathistory_core.testing.network import NetworkStore, NetworkTests
from chathistory_core.testing.proxy import Address
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_redis import RedisBackend, RedisOptions
from chathistory_sqlite import SQLiteBackend


class AppendsInPieces(MemoryBackend):
    """Each piece is a write of its own, and another task may come in between."""

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written = await super().append(key, records[:1], turn_id=turn_id)
        for number, record in enumerate(records[1:]):
            await asyncio.sleep(0)
            await super().append(key, [record], turn_id=f"{turn_id} {number}")
        return written


class ReplacesInTwoSteps(MemoryBackend):
    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        await super().replace(key, [], turn_id=f"{turn_id} first")
        await asyncio.sleep(0)
        return await super().replace(key, records, turn_id=turn_id)


class ForgetsTheTurnOfACancelledAppend(MemoryBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written = await super().append(key, records, turn_id=new_turn_id())
        await asyncio.sleep(0)
        return written


class ClearsInTwoSteps(MemoryBackend):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        found = await self.get(key)
        if found.records:
            await super().replace(key, [record.record for record in found.records[1:]], turn_id=new_turn_id())
            await asyncio.sleep(0)
        return await super().clear(key)


class AnswersTheNextReadWithACancelledOne(MemoryBackend):
    late: Conversation | None = None

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        if self.late is not None:
            late, self.late = self.late, None
            return late
        found = await super().get(key, limit=limit, before=before, after=after)
        self.late = found
        await asyncio.sleep(0)
        self.late = None
        return found


class StaysOpenWhenItsOpeningWasCancelled(MemoryBackend):
    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await asyncio.sleep(0)
        return self


class LocksForGood(MemoryBackend):
    """A lock that is not let go under cancellation."""

    locked = False

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        if self.locked:
            raise BackendUnavailableError("locked")
        self.locked = True
        await asyncio.sleep(0)
        self.locked = False
        return await super().append(key, records, turn_id=turn_id)


APPEND = CancellationTests.test_an_append_cancelled_at_any_await_is_whole_or_absent_and_stored_once_when_repeated
REPLACE = CancellationTests.test_a_replace_cancelled_at_any_await_leaves_the_old_or_the_new
CLEAR = CancellationTests.test_a_clear_cancelled_at_any_await_leaves_everything_or_nothing
READ = CancellationTests.test_after_a_read_cancelled_at_any_await_each_call_gets_its_own_answer
OPEN = CancellationTests.test_an_opening_cancelled_at_any_await_can_be_made_again


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (AppendsInPieces, APPEND),
        (ForgetsTheTurnOfACancelledAppend, APPEND),
        (LocksForGood, APPEND),
        (ReplacesInTwoSteps, REPLACE),
        (ClearsInTwoSteps, CLEAR),
        (AnswersTheNextReadWithACancelledOne, READ),
        (StaysOpenWhenItsOpeningWasCancelled, OPEN),
    ],
)
def test_a_backend_that_a_cancellation_breaks_is_caught(
    broken: type[MemoryBackend], test: Callable[[CancellationTests, Callable[[], ChatHistoryBackend]], None]
) -> None:
    with pytest.raises((AssertionError, BackendUnavailableError, BackendStateError)):
        test(CancellationTests(), partial(broken, MemoryStore()))


later: set["asyncio.Future[Written]"] = set()


class AcknowledgesBeforeItWrites(SQLiteBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        asyncio.get_running_loop().call_later(0.05, self._later, key, records, turn_id)
        await asyncio.sleep(0)
        return Written(new_revision(), new_revision(), 1)

    def _later(self, key: str, records: Sequence[Record], turn_id: str) -> None:
        later.add(asyncio.ensure_future(super().append(key, records, turn_id=turn_id)))


class WritesEachRecordByItself(SQLiteBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written = await super().append(key, records[:1], turn_id=turn_id)
        for number, record in enumerate(records[1:]):
            await super().append(key, [record], turn_id=f"{turn_id} {number}")
        return written


_LONG = pytest.mark.skipif("LONG" not in os.environ, reason="kills processes; LONG in the environment asks for it")


@pytest.mark.parametrize("broken", [AcknowledgesBeforeItWrites, pytest.param(WritesEachRecordByItself, marks=_LONG)])
def test_a_backend_that_a_kill_breaks_is_caught(broken: type[SQLiteBackend], tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"was lost|in part"):
        CrashTests().test_what_a_killed_writer_was_told_is_stored_and_nothing_is_stored_in_part(
            partial(broken.from_path, tmp_path / "history.db")
        )


class ForgetsTurns(RedisBackend):
    """What is repeated is written again."""

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await super().append(key, records, turn_id=new_turn_id())


class ClearsAgainAfterALostReply(RedisBackend):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        try:
            return await super().clear(key, expected_revision=expected_revision)
        except BackendUnavailableError:
            return await super().clear(key, expected_revision=expected_revision)


class TellsAnErrorOfTheDriver(RedisBackend):
    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        try:
            return await super().get(key, limit=limit, before=before, after=after)
        except BackendUnavailableError:
            raise ConnectionError("the driver's") from None


class SplitsAppends(RedisBackend):
    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        if len(records) < 3:
            return await super().append(key, records, turn_id=turn_id)
        written = await super().append(key, records[:1], turn_id=turn_id)
        await super().append(key, records[1:], turn_id=f"{turn_id} more")
        return written


NetworkTest = Callable[[NetworkTests, NetworkStore], None]


def _append_cut(tests: NetworkTests, store: NetworkStore) -> None:
    tests.test_an_append_cut_at_any_byte_is_whole_or_absent_and_stored_once_when_repeated(store, "reply")


@pytest.mark.parametrize(
    ("broken", "test"),
    [
        (ForgetsTurns, NetworkTests.test_writes_whose_replies_are_lost_are_stored_once_when_repeated),
        (
            ClearsAgainAfterALostReply,
            NetworkTests.test_a_clear_whose_reply_is_lost_says_so_and_is_not_made_again_by_itself,
        ),
        (
            TellsAnErrorOfTheDriver,
            NetworkTests.test_a_server_that_is_gone_is_unavailable_and_the_call_works_when_it_is_back,
        ),
        (SplitsAppends, _append_cut),
    ],
)
def test_a_backend_that_a_network_breaks_is_caught(
    broken: type[RedisBackend], test: NetworkTest, socket_path: str, namespace: str
) -> None:
    def make_backend(address: Address) -> ChatHistoryBackend:
        options = RedisOptions(url=f"unix://{address}", namespace=namespace)
        return broken(options._client, namespace=namespace)

    with pytest.raises((AssertionError, pytest.fail.Exception, ConnectionError)):
        test(NetworkTests(), NetworkStore(socket_path, make_backend))
