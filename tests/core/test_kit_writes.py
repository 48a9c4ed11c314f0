"""Each backend here breaks one promise of writing; the kit's test of that promise must fail on it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple, Self

import pytest

from chathistory_core import (
    BackendUnavailableError,
    Conversation,
    EpochChangedError,
    Limits,
    Operation,
    Record,
    RevisionConflictError,
    TooLargeError,
    TurnConflictError,
    Written,
    new_turn_id,
)
from chathistory_memory import MemoryBackend


class Write(NamedTuple):
    operation: Operation
    key: str
    records: Sequence[Record]
    turn_id: str
    expected_revision: str | None = None
    expected_epoch: str | None = None


class Seam(MemoryBackend):
    """A correct backend whose writes pass one method, which a broken one changes."""

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await self.write(Write("append", key, records, turn_id, expected_revision, expected_epoch))

    async def replace(
        self, key: str, records: Sequence[Record], *, turn_id: str, expected_revision: str | None = None
    ) -> Written:
        return await self.write(Write("replace", key, records, turn_id, expected_revision))

    async def write(self, call: Write) -> Written:
        if call.operation == "append":
            return await super().append(
                call.key,
                call.records,
                turn_id=call.turn_id,
                expected_revision=call.expected_revision,
                expected_epoch=call.expected_epoch,
            )
        return await super().replace(
            call.key, call.records, turn_id=call.turn_id, expected_revision=call.expected_revision
        )


class ReversesBatches(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(records=list(call.records)[::-1]))


class TellsTheLastPosition(Seam):
    async def write(self, call: Write) -> Written:
        written = await super().write(call)
        return written._replace(first_position=written.first_position + len(call.records))


class ReplacesInTwoSteps(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "append" or not call.records:
            return await super().write(call)
        await super().write(call._replace(records=[], turn_id=new_turn_id()))
        await asyncio.sleep(0)
        return await super().write(call)


class AppendsOneByOne(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "replace" or not call.records:
            return await super().write(call)
        written = []
        for index, record in enumerate(call.records):
            written.append(await super().write(call._replace(records=[record], turn_id=f"{call.turn_id}.{index}")))
            await asyncio.sleep(0)
        return written[-1]._replace(first_position=written[0].first_position)


class ReadsThenRewrites(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "replace":
            return await super().write(call)
        held = [record.record for record in (await self.get(call.key)).records]
        await asyncio.sleep(0)
        return await super().write(call._replace(operation="replace", records=[*held, *call.records]))


class RemembersNoTurn(Seam):
    async def write(self, call: Write) -> Written:
        written = await super().write(call._replace(turn_id=new_turn_id()))
        await asyncio.sleep(0)
        return written


class LooksBeforeItWrites(Seam):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type] # whatever the correct one takes
        self.turns: dict[tuple[str, str], Written] = {}

    async def write(self, call: Write) -> Written:
        known = self.turns.get((call.key, call.turn_id))
        if known is not None:
            return known._replace(replayed=True)
        await asyncio.sleep(0)
        self.turns[call.key, call.turn_id] = written = await super().write(call._replace(turn_id=new_turn_id()))
        return written


class RemembersTurnsForAllConversations(LooksBeforeItWrites):
    async def write(self, call: Write) -> Written:
        for (_, turn_id), written in self.turns.items():
            if turn_id == call.turn_id:
                return written._replace(replayed=True)
        return await super().write(call)


class ForgetsTurnsAfterAHundred(LooksBeforeItWrites):
    async def write(self, call: Write) -> Written:
        while len(self.turns) > 100:
            del self.turns[next(iter(self.turns))]
        return await super().write(call)


class DropsWhatItHolds(Seam):
    async def write(self, call: Write) -> Written:
        held = await self.get(call.key, limit=1)
        if held.records and call.operation == "append" and held.records[0].payload == call.records[-1].payload:
            return Written(held.revision, held.epoch, held.records[0].position, replayed=True)
        return await super().write(call)


class AnswersReplaysWithTheHead(Seam):
    async def write(self, call: Write) -> Written:
        written = await super().write(call)
        head = await self.get(call.key, limit=0)
        return written._replace(revision=head.revision, epoch=head.epoch)


class LooksAtExpectationsFirst(Seam):
    async def write(self, call: Write) -> Written:
        head = await self.get(call.key, limit=0)
        if call.expected_revision not in (None, head.revision):
            raise RevisionConflictError(call.key)
        if call.expected_epoch not in (None, head.epoch):
            raise EpochChangedError(call.key)
        return await super().write(call)


class ForgetsTurnsAtReplace(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "replace":
            await self.clear(call.key)
        return await super().write(call)


class ReplaysWhateverIsSent(Seam):
    async def write(self, call: Write) -> Written:
        try:
            return await super().write(call)
        except TurnConflictError as conflict:
            return conflict.written._replace(replayed=True)


class ConflictsWithoutTheResult(Seam):
    async def write(self, call: Write) -> Written:
        try:
            return await super().write(call)
        except TurnConflictError:
            raise TurnConflictError(call.key, call.turn_id, Written("", "", 0)) from None


class TakesAReplaceForAnAppend(Seam):
    async def write(self, call: Write) -> Written:
        try:
            return await super().write(call)
        except TurnConflictError:
            other: Operation = "replace" if call.operation == "append" else "append"
            return await super().write(call._replace(operation=other))


class JoinsPayloads(Seam):
    async def write(self, call: Write) -> Written:
        whole = b"".join(record.payload for record in call.records)
        return await super().write(call._replace(records=[each._replace(fingerprint=whole) for each in call.records]))


class IgnoresFingerprints(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(records=[each._replace(fingerprint=None) for each in call.records]))


class ComparesEncodings(Seam):
    async def write(self, call: Write) -> Written:
        batch = [
            each._replace(fingerprint=each.format.encode() + (each.fingerprint or each.payload))
            for each in call.records
        ]
        return await super().write(call._replace(records=batch))


class IgnoresFormats(Seam):
    async def write(self, call: Write) -> Written:
        batch = [each._replace(format="text+" + each.format) for each in call.records]
        return await super().write(call._replace(records=batch))


class IgnoresExpectedRevisions(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(expected_revision=None))


class IgnoresNoRevision(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(expected_revision=call.expected_revision or None))


class ChecksThenWrites(Seam):
    async def write(self, call: Write) -> Written:
        if call.expected_revision is not None:
            if (await self.get(call.key, limit=0)).revision != call.expected_revision:
                raise RevisionConflictError(call.key)
            await asyncio.sleep(0)
        return await super().write(call._replace(expected_revision=None))


class IgnoresExpectedEpochs(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(expected_epoch=None))


class BringsBackWhatWasCleared(Seam):
    async def write(self, call: Write) -> Written:
        if not (await self.get(call.key, limit=0)).revision:
            call = call._replace(expected_epoch=None)
        return await super().write(call)


class LooksAtOneExpectation(Seam):
    async def write(self, call: Write) -> Written:
        if call.expected_revision is not None:
            call = call._replace(expected_epoch=None)
        return await super().write(call)


class ClearsToReplaceWithNothing(Seam):
    async def write(self, call: Write) -> Written:
        written = await super().write(call)
        if not call.records and not written.replayed:
            await self.clear(call.key)
        return written


class AppendsNothing(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "append" and not call.records:
            return await super().write(call._replace(operation="replace", turn_id=new_turn_id()))
        return await super().write(call)


class PromisesFewRecords(Seam):
    limits = Limits(max_records=500)


class PromisesFewTurns(Seam):
    limits = Limits(turns_kept=100)


class TakesNoLargeRecord(Seam):
    async def write(self, call: Write) -> Written:
        if any(len(record.payload) > 2**23 for record in call.records):
            raise TooLargeError("a row has at most 8 MiB here")
        return await super().write(call)


class TakesNoManyRecords(Seam):
    async def write(self, call: Write) -> Written:
        if len(call.records) > 32_766:
            raise TooLargeError("a statement has at most 32,766 parameters here")
        return await super().write(call)


class SplitsWhatIsTooMuch(Seam):
    async def write(self, call: Write) -> Written:
        most = self.limits.max_records
        if len(call.records) > most:
            await super().write(call._replace(records=call.records[:most], turn_id=new_turn_id()))
            call = call._replace(records=call.records[most:])
        return await super().write(call)


class CutsWhatIsTooLarge(Seam):
    async def write(self, call: Write) -> Written:
        most = self.limits.max_record_bytes
        if any(len(record.payload) > most for record in call.records):
            call = call._replace(records=[record._replace(payload=record.payload[:most]) for record in call.records])
        return await super().write(call)


class KeepsText(Seam):
    async def write(self, call: Write) -> Written:
        batch = [each._replace(payload=each.payload.decode(errors="replace").encode()) for each in call.records]
        return await super().write(call._replace(records=batch))


class EndsAtNul(Seam):
    async def write(self, call: Write) -> Written:
        batch = [each._replace(payload=each.payload.partition(b"\0")[0]) for each in call.records]
        return await super().write(call._replace(records=batch))


class DropsEncodings(Seam):
    async def write(self, call: Write) -> Written:
        batch = [each._replace(format=each.format.partition("+")[0]) for each in call.records]
        return await super().write(call._replace(records=batch))


class LowersFormats(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(
            call._replace(records=[each._replace(format=each.format.lower()) for each in call.records])
        )


class KeepsTheCallersList(Seam):
    held: Sequence[Record] = ()

    async def write(self, call: Write) -> Written:
        self.held = call.records
        return await super().write(call)

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        found = await super().get(key, limit=limit, before=before, after=after)
        return found._replace(records=found.records[: len(self.held)])


class FoldsTurnIds(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(turn_id=call.turn_id.casefold()))


class TakesLongTurnIds(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(turn_id=call.turn_id[:50]))


class JoinsKeyAndTurnId(LooksBeforeItWrites):
    async def write(self, call: Write) -> Written:
        joined = f"{call.key}:{call.turn_id}"
        for (key, turn_id), written in self.turns.items():
            if f"{key}:{turn_id}" == joined:
                return written._replace(replayed=True)
        return await super().write(call)


class ShowsContent(Seam):
    async def write(self, call: Write) -> Written:
        try:
            return await super().write(call)
        except RevisionConflictError as error:
            error.add_note(f"while writing {[record.payload for record in call.records]}")
            raise


class ChainsContent(Seam):
    async def write(self, call: Write) -> Written:
        try:
            return await super().write(call)
        except EpochChangedError as error:
            raise error from RuntimeError(f"parameters: {[record.payload for record in call.records]}")


class BreaksAfterAnError(Seam):
    broken = False

    async def write(self, call: Write) -> Written:
        if self.broken:
            raise RevisionConflictError(call.key)
        try:
            return await super().write(call)
        except BaseException:
            self.broken = True
            raise


class ChecksWhileItWrites(Seam):
    async def write(self, call: Write) -> Written:
        for index, record in enumerate(call.records):
            await super().write(call._replace(records=[record], turn_id=f"{call.turn_id[:190]}.{index}"))
        return await super().write(call)


class LosesRepliesOfReplaces(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "replace":
            call = call._replace(turn_id=new_turn_id())
        return await super().write(call)


class SplitsRepliesOfAppends(Seam):
    async def __aenter__(self) -> Self:
        self.lock = asyncio.Lock()
        return await super().__aenter__()

    async def write(self, call: Write) -> Written:
        async with self.lock:
            if call.operation == "replace" or len(call.records) < 2:
                return await super().write(call)
            first = await super().write(call._replace(records=call.records[:1], turn_id=new_turn_id()))
            await asyncio.sleep(0)
            rest = await super().write(call._replace(records=call.records[1:], turn_id=new_turn_id()))
            return rest._replace(first_position=first.first_position)


class TellsOneEpoch(Seam):
    async def write(self, call: Write) -> Written:
        return (await super().write(call))._replace(epoch="epoch")


class RefusesEveryExpectation(Seam):
    async def write(self, call: Write) -> Written:
        if call.expected_revision is not None:
            raise RevisionConflictError(call.key)
        if call.expected_epoch is not None:
            raise EpochChangedError(call.key)
        return await super().write(call)


class TakesAnyNumberOfBytes(Seam):
    async def write(self, call: Write) -> Written:
        if sum(len(record.payload) for record in call.records) > self.limits.max_bytes:
            call = call._replace(records=call.records[1:])
        return await super().write(call)


class ReplacesOnlyWhatIsThere(Seam):
    async def write(self, call: Write) -> Written:
        known = (await self.get(call.key, limit=0)).revision
        written = await super().write(call)
        if call.operation == "replace" and not known:
            await self.clear(call.key)
        return written


class ReplacesEverybodys(Seam):
    async def write(self, call: Write) -> Written:
        if call.operation == "replace":
            for summary in await self.summaries():
                await self.clear(summary.key)
        return await super().write(call)


class ReplaceAppends(Seam):
    async def write(self, call: Write) -> Written:
        return await super().write(call._replace(operation="append"))


class StaysLockedAfterABadBatch(Seam):
    locked: ClassVar[set[int]] = set()

    async def write(self, call: Write) -> Written:
        if id(self._store) in self.locked:
            raise BackendUnavailableError("the store is locked")
        try:
            return await super().write(call)
        except TypeError:
            self.locked.add(id(self._store))
            raise


class TellsWhereItMeantToWrite(Seam):
    async def write(self, call: Write) -> Written:
        place = (await self.get(call.key, limit=0)).record_count + 1
        await asyncio.sleep(0)
        return (await super().write(call))._replace(first_position=place)


MUTANTS: list[tuple[type[MemoryBackend], str]] = [
    (ReversesBatches, "test_records_of_one_append_keep_their_order"),
    (TellsTheLastPosition, "test_the_first_position_of_a_write_is_that_of_its_first_record"),
    (ReplacesInTwoSteps, "test_a_replace_is_never_seen_half_done"),
    (ReplacesInTwoSteps, "test_a_cancelled_replace_leaves_the_old_or_the_new"),
    (AppendsOneByOne, "test_head_and_records_are_one_snapshot_while_others_append"),
    (AppendsOneByOne, "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing"),
    (AppendsOneByOne, "test_large_writes_of_two_handles_at_once_stay_whole"),
    (AppendsOneByOne, "test_every_record_tells_its_turn"),
    (ReadsThenRewrites, "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing"),
    (ReadsThenRewrites, "test_sixteen_writers_begin_one_conversation"),
    (ReadsThenRewrites, "test_appending_keeps_the_epoch"),
    (SplitsRepliesOfAppends, "test_cancelled_appends_are_stored_once_when_they_are_tried_again"),
    (RemembersNoTurn, "test_cancelled_appends_are_stored_once_when_they_are_tried_again"),
    (RemembersNoTurn, "test_many_appends_cancelled_at_once_are_stored_once_when_they_are_tried_again"),
    (RemembersNoTurn, "test_a_repeated_append_returns_the_first_result"),
    (RemembersNoTurn, "test_a_replay_changes_nothing"),
    (LosesRepliesOfReplaces, "test_a_repeated_replace_returns_the_first_result"),
    (LosesRepliesOfReplaces, "test_a_repeated_replace_with_nothing_returns_position_1"),
    (LosesRepliesOfReplaces, "test_one_of_sixteen_replaces_with_one_turn_writes"),
    (LooksBeforeItWrites, "test_one_of_sixteen_calls_with_one_turn_begins_the_conversation"),
    (LooksBeforeItWrites, "test_one_of_sixteen_calls_with_one_turn_goes_on"),
    (LooksBeforeItWrites, "test_of_sixteen_different_writes_under_one_turn_one_is_stored"),
    (LooksBeforeItWrites, "test_a_turn_is_remembered_by_another_handle_and_after_closing"),
    (RemembersTurnsForAllConversations, "test_turns_belong_to_their_conversation"),
    (ForgetsTurnsAfterAHundred, "test_the_newest_turns_are_remembered"),
    (PromisesFewTurns, "test_the_newest_turns_are_remembered"),
    (DropsWhatItHolds, "test_equal_content_under_different_turns_is_stored_each_time"),
    (AnswersReplaysWithTheHead, "test_a_replay_after_other_appends_returns_the_first_result"),
    (LooksAtExpectationsFirst, "test_a_replay_is_answered_before_any_expectation_is_looked_at"),
    (LooksAtExpectationsFirst, "test_a_turn_conflict_comes_before_any_expectation"),
    (ForgetsTurnsAtReplace, "test_a_turn_is_remembered_after_a_replace"),
    (ForgetsTurnsAtReplace, "test_a_turn_conflict_is_found_after_a_replace"),
    (ForgetsTurnsAtReplace, "test_appends_and_replaces_keep_created_at"),
    (ReplaysWhateverIsSent, "test_a_turn_with_other_records_is_refused_and_writes_nothing"),
    (ConflictsWithoutTheResult, "test_a_turn_with_other_records_is_refused_and_writes_nothing"),
    (TakesAReplaceForAnAppend, "test_a_turn_of_the_other_operation_is_refused"),
    (JoinsPayloads, "test_a_turn_with_other_records_is_refused_and_writes_nothing"),
    (IgnoresFingerprints, "test_a_fingerprint_stands_for_the_payload"),
    (ComparesEncodings, "test_the_base_format_decides_and_its_encodings_do_not"),
    (IgnoresFormats, "test_the_base_format_decides_and_its_encodings_do_not"),
    (IgnoresExpectedRevisions, "test_a_stale_revision_is_refused"),
    (IgnoresExpectedRevisions, "test_a_refused_expectation_writes_nothing"),
    (IgnoresExpectedRevisions, "test_a_revision_is_refused_where_nothing_exists"),
    (IgnoresNoRevision, "test_no_revision_means_only_if_new"),
    (IgnoresNoRevision, "test_one_of_sixteen_writes_that_expect_nothing_wins"),
    (ChecksThenWrites, "test_one_of_sixteen_appends_that_expect_a_revision_wins"),
    (ChecksThenWrites, "test_one_of_sixteen_replaces_that_expect_a_revision_wins"),
    (IgnoresExpectedEpochs, "test_an_expected_epoch_is_refused_after_a_replace"),
    (BringsBackWhatWasCleared, "test_a_cleared_conversation_is_not_brought_back"),
    (LooksAtOneExpectation, "test_both_expectations_are_looked_at"),
    (ClearsToReplaceWithNothing, "test_replacing_with_nothing_leaves_an_empty_conversation"),
    (ClearsToReplaceWithNothing, "test_an_empty_conversation_is_listed_with_count_0"),
    (ClearsToReplaceWithNothing, "test_an_empty_conversation_goes_on"),
    (ClearsToReplaceWithNothing, "test_replacing_with_nothing_changes_the_epoch"),
    (AppendsNothing, "test_appending_nothing_is_refused"),
    (PromisesFewRecords, "test_limits_are_no_smaller_than_every_backends"),
    (PromisesFewRecords, "test_a_thousand_records_of_a_mebibyte_in_all_are_taken_at_once"),
    (TakesNoLargeRecord, "test_a_record_of_16_mebibytes_is_taken"),
    (TakesNoLargeRecord, "test_a_write_of_exactly_max_bytes_is_taken"),
    (TakesNoManyRecords, "test_a_write_of_exactly_max_records_is_taken"),
    (SplitsWhatIsTooMuch, "test_more_records_than_max_records_are_refused"),
    (CutsWhatIsTooLarge, "test_a_record_above_max_record_bytes_is_refused"),
    (KeepsText, "test_payloads_come_back_byte_for_byte"),
    (EndsAtNul, "test_payloads_come_back_byte_for_byte"),
    (DropsEncodings, "test_formats_come_back_as_they_were"),
    (LowersFormats, "test_formats_come_back_as_they_were"),
    (KeepsTheCallersList, "test_what_a_caller_does_to_its_list_later_is_not_stored"),
    (FoldsTurnIds, "test_awkward_turn_ids_never_collide"),
    (TakesLongTurnIds, "test_invalid_turn_ids_are_refused"),
    (JoinsKeyAndTurnId, "test_no_join_of_key_and_turn_id_collides"),
    (ShowsContent, "test_no_error_log_line_or_repr_shows_content"),
    (ChainsContent, "test_no_error_log_line_or_repr_shows_content"),
    (BreaksAfterAnError, "test_after_any_error_the_next_call_works"),
    (TellsOneEpoch, "test_a_new_start_after_a_clear_has_another_epoch"),
    (TellsOneEpoch, "test_two_conversations_have_different_epochs"),
    (RefusesEveryExpectation, "test_a_write_at_the_expected_revision_passes"),
    (RefusesEveryExpectation, "test_an_expected_epoch_lets_other_appends_pass"),
    (RefusesEveryExpectation, "test_the_epoch_of_an_unknown_key_can_be_expected"),
    (TakesAnyNumberOfBytes, "test_more_bytes_than_max_bytes_are_refused"),
    (ReplacesOnlyWhatIsThere, "test_replacing_an_unknown_key_begins_a_conversation"),
    (ReplacesEverybodys, "test_replacing_one_conversation_leaves_the_others"),
    (ReplaceAppends, "test_replacing_takes_the_old_records_away"),
    (KeepsText, "test_records_that_were_read_can_be_written_again"),
    (StaysLockedAfterABadBatch, "test_after_a_refused_batch_another_handle_writes_at_once"),
    (TellsWhereItMeantToWrite, "test_eight_writers_are_told_the_places_that_their_records_have"),
    (ReversesBatches, "test_a_batch_and_what_follows_it_at_once_keep_their_order"),
    (ChecksWhileItWrites, "test_a_batch_with_one_bad_record_writes_nothing"),
]


@pytest.mark.parametrize(("broken", "test"), MUTANTS, ids=lambda value: getattr(value, "__name__", value))
def test_the_kit_catches_a_backend_that(
    broken: type[MemoryBackend], test: str, kit_catches: Callable[[type[MemoryBackend], str], None]
) -> None:
    kit_catches(broken, test)


@pytest.mark.parametrize("test", sorted({test for _, test in MUTANTS}))
def test_the_correct_backend_passes(test: str, kit_catches: Callable[[type[MemoryBackend], str], None]) -> None:
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        kit_catches(Seam, test)
