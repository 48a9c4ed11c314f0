"""Each backend here breaks one promise of reading, listing or clearing; the kit's test of it must fail."""

import asyncio
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from operator import attrgetter
from typing import NamedTuple

import pytest

from chathistory_core import (
    Conversation,
    ConversationSummary,
    Order,
    Record,
    RevisionConflictError,
    Written,
    new_turn_id,
)
from chathistory_memory import MemoryBackend


class Read(NamedTuple):
    key: str
    limit: int | None = None
    before: int | None = None
    after: int | None = None


class Page(NamedTuple):
    prefix: str = ""
    after: ConversationSummary | None = None
    limit: int | None = None
    order: Order = "key"


class Seam(MemoryBackend):
    """A correct backend whose reads and pages pass one method each, which a broken one changes."""

    async def get(
        self, key: str, *, limit: int | None = None, before: int | None = None, after: int | None = None
    ) -> Conversation:
        return await self.read(Read(key, limit, before, after))

    async def read(self, call: Read) -> Conversation:
        return await super().get(call.key, limit=call.limit, before=call.before, after=call.after)

    async def summaries(
        self,
        *,
        prefix: str = "",
        after: ConversationSummary | None = None,
        limit: int | None = None,
        order: Order = "key",
    ) -> Sequence[ConversationSummary]:
        return await self.page(Page(prefix, after, limit, order))

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return await super().summaries(prefix=call.prefix, after=call.after, limit=call.limit, order=call.order)


class NewestFirst(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(records=found.records[::-1])


class OrdersByTurnId(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(records=tuple(sorted(found.records, key=attrgetter("turn_id"))))


class CountsFromZero(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(records=tuple(each._replace(position=each.position - 1) for each in found.records))


class GivesRecordsOfOneWriteOnePosition(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        first = {each.turn_id: each.position for each in reversed(found.records)}
        return found._replace(records=tuple(each._replace(position=first[each.turn_id]) for each in found.records))


class TellsLocalTimes(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(created_at=found.created_at and found.created_at.replace(tzinfo=None))


class TellsTheTimeOfReading(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(records=tuple(each._replace(stored_at=datetime.now(UTC)) for each in found.records))


class NewEpochAtEachWrite(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(epoch=found.revision)


class KeepsTheEpoch(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        moment = datetime(2026, 1, 1, tzinfo=UTC)
        same = tuple(each._replace(turn_id="turn", stored_at=moment) for each in found.records)
        return found._replace(epoch=found.epoch and "epoch", records=same)


class CountsRevisions(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(revision=found.revision and f"revision {found.record_count}")

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        written = await super().append(key, records, turn_id=turn_id)
        return written._replace(revision=(await self.get(key, limit=0)).revision)


class CachesReads(Seam):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type] # whatever the correct one takes
        self.reads: dict[Read, Conversation] = {}
        self.pages: dict[Page, Sequence[ConversationSummary]] = {}

    async def read(self, call: Read) -> Conversation:
        if call not in self.reads:
            self.reads[call] = await super().read(call)
        return self.reads[call]

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        if call not in self.pages:
            self.pages[call] = await super().page(call)
        return self.pages[call]


class ReadsHeadAndRecordsApart(Seam):
    async def read(self, call: Read) -> Conversation:
        head = await super().read(call._replace(limit=0))
        await asyncio.sleep(0)
        return head._replace(records=(await super().read(call)).records)


class LimitGivesTheOldest(Seam):
    async def read(self, call: Read) -> Conversation:
        if call.limit is None or call.after is not None:
            return await super().read(call)
        found = await super().read(call._replace(limit=None))
        return found._replace(records=found.records[: call.limit])


class AfterGivesTheNewest(Seam):
    async def read(self, call: Read) -> Conversation:
        if call.after is None or call.limit is None:
            return await super().read(call)
        found = await super().read(call._replace(limit=None))
        return found._replace(records=found.records[max(0, len(found.records) - call.limit) :])


class BeforeIsInclusive(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(call._replace(before=None if call.before is None else call.before + 1))


class AfterIsInclusive(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(call._replace(after=call.after and call.after - 1))


class LimitOfZeroIsNone(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(call._replace(limit=call.limit or None))

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return await super().page(call._replace(limit=call.limit or None))


class CapsReads(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(call._replace(limit=1_000 if call.limit is None else call.limit))


class CountsThePage(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(record_count=len(found.records))


class TakesNegatives(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(Read(call.key, *(None if each is None else abs(each) for each in call[1:])))

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return await super().page(call._replace(limit=None if call.limit is None else abs(call.limit)))


class TakesBothCursors(Seam):
    async def read(self, call: Read) -> Conversation:
        return await super().read(call._replace(before=None if call.after is not None else call.before))


class BindsNumbersOf63Bits(Seam):
    async def read(self, call: Read) -> Conversation:
        if any(each is not None and each >= 2**63 for each in call[1:]):
            raise OverflowError
        return await super().read(call)

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        if call.limit is not None and call.limit >= 2**63:
            raise OverflowError
        return await super().page(call)


class MakesWhatItReads(Seam):
    async def read(self, call: Read) -> Conversation:
        if not (await super().read(call)).revision:
            await self.replace(call.key, [], turn_id=new_turn_id())
        return await super().read(call)


class WritesAtReading(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        if found.records:
            await self.append(call.key, [found.records[0].record], turn_id=new_turn_id())
        return found


class ClearAlwaysSaysYes(Seam):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        await super().clear(key, expected_revision=expected_revision)
        return True


class ClearEmpties(Seam):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        found = await super().read(Read(key, limit=0))
        if expected_revision is not None and found.revision not in ("", expected_revision):
            raise RevisionConflictError(key)
        if found.revision:
            await self.replace(key, [], turn_id=new_turn_id())
        return bool(found.record_count)

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return [each for each in await super().page(call) if each.record_count]

    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found if found.record_count else Conversation(call.key)


class ClearTakesThePrefix(Seam):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        cleared = await super().clear(key, expected_revision=expected_revision)
        for summary in await super().page(Page(prefix=key)):
            await super().clear(summary.key)
        return cleared


class ClearIgnoresTheRevision(Seam):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        return await super().clear(key)


class ClearExpectsOfNothing(Seam):
    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        if expected_revision and not (await super().read(Read(key, limit=0))).revision:
            raise RevisionConflictError(key)
        return await super().clear(key, expected_revision=expected_revision)


class ClearLeavesTheListing(Seam):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type] # whatever the correct one takes
        self.listed: dict[str, ConversationSummary] = {}

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        self.listed |= {each.key: each for each in await super().page(Page())}
        return sorted(self.listed.values())

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        await self.page(Page())
        return await super().clear(key, expected_revision=expected_revision)


class ClearHides(Seam):
    """The next append brings everything back."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type] # whatever the correct one takes
        self.hidden: set[str] = set()

    async def read(self, call: Read) -> Conversation:
        return Conversation(call.key) if call.key in self.hidden else await super().read(call)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        self.hidden.discard(key)
        return await super().append(key, records, turn_id=turn_id)

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        self.hidden.add(key)
        return True


class NotesNoUpdate(Seam):
    async def read(self, call: Read) -> Conversation:
        found = await super().read(call)
        return found._replace(updated_at=found.created_at)


class Unordered(Seam):
    """All pages cut from one list that `listing` makes."""

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        await super().page(call)
        whole = self.listing(call, await super().page(call._replace(after=None, limit=None)))
        keys = [each.key for each in whole]
        start = keys.index(call.after.key) + 1 if call.after is not None and call.after.key in keys else 0
        return whole[start:][: call.limit]

    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        return found


class ListsByUtf16(Unordered):
    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        return sorted(found, key=lambda each: each.key.encode("utf-16-be"))


class ListsCaseBlind(Unordered):
    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        return sorted(found, key=lambda each: each.key.casefold())


class RecentIsByKey(Unordered):
    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        return sorted(found)


class RecentIsOldestFirst(Unordered):
    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        return found[::-1] if call.order == "recent" else found


class RecentIsByCreation(Unordered):
    def listing(self, call: Page, found: Sequence[ConversationSummary]) -> Sequence[ConversationSummary]:
        newest_first = sorted(found, key=attrgetter("created_at"), reverse=True)
        return newest_first if call.order == "recent" else found


class PageRepeatsItsStart(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        if call.after is None:
            return await super().page(call)
        return [call.after, *await super().page(call)][: call.limit]


class PageCountsFromTheStart(Seam):
    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type] # whatever the correct one takes
        self.seen = 0

    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        self.seen = 0 if call.after is None else self.seen
        found = (await super().page(call._replace(after=None, limit=None)))[self.seen :][: call.limit]
        self.seen += len(found)
        return found


class PageCutsBeforeItFilters(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        found = await super().page(call._replace(prefix=""))
        return [each for each in found if each.key.startswith(call.prefix)]


class PrefixIsAPattern(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        found = await super().page(call._replace(prefix="", limit=None))
        pattern = call.prefix.replace("%", "*").replace("_", "?") + "*"
        return [each for each in found if fnmatchcase(each.key, pattern)][: call.limit]


class PrefixIsCaseBlind(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        found = await super().page(call._replace(prefix="", limit=None))
        return [each for each in found if each.key.lower().startswith(call.prefix.lower())][: call.limit]


class PrefixEndsAtFFFF(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        found = await super().page(call._replace(limit=None))
        return [each for each in found if not call.prefix or each.key < call.prefix + "\uffff"][: call.limit]


class PrefixLeavesItselfOut(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        found = await super().page(call._replace(limit=None))
        return [each for each in found if each.key != call.prefix][: call.limit]


class ListsOtherHeads(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return [each._replace(record_count=each.record_count + 1) for each in await super().page(call)]


class Renamed(Seam):
    """Keys pass through `name` on the way to the store."""

    def name(self, key: str) -> str:
        return key

    async def read(self, call: Read) -> Conversation:
        return (await super().read(call._replace(key=self.name(call.key))))._replace(key=call.key)

    async def append(
        self,
        key: str,
        records: Sequence[Record],
        *,
        turn_id: str,
        expected_revision: str | None = None,
        expected_epoch: str | None = None,
    ) -> Written:
        return await super().append(
            self.name(key),
            records,
            turn_id=turn_id,
            expected_revision=expected_revision,
            expected_epoch=expected_epoch,
        )

    async def clear(self, key: str, *, expected_revision: str | None = None) -> bool:
        return await super().clear(self.name(key), expected_revision=expected_revision)


class FoldsKeys(Renamed):
    def name(self, key: str) -> str:
        return key.casefold()


class NormalisesKeys(Renamed):
    def name(self, key: str) -> str:
        return unicodedata.normalize("NFC", key)


class StripsKeys(Renamed):
    def name(self, key: str) -> str:
        return key.strip() or key


class TakesPercentsForEscapes(Renamed):
    def name(self, key: str) -> str:
        return key.replace("%2F", "/")


class CutsKeys(Renamed):
    def name(self, key: str) -> str:
        return key[:255]


class TakesEmptyKeys(Renamed):
    def name(self, key: str) -> str:
        return key or "default"


class TakesNul(Renamed):
    def name(self, key: str) -> str:
        return key.replace("\0", "0")


class EscapesKeysOneWay(Renamed):
    def name(self, key: str) -> str:
        return key.encode("ascii", "backslashreplace").decode() if key == "é" else key


class TakesAnyPrefix(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return await super().page(call._replace(prefix=call.prefix.encode(errors="ignore").decode()[:512]))


class TakesAnyOrder(Seam):
    async def page(self, call: Page) -> Sequence[ConversationSummary]:
        return await super().page(call._replace(order="recent" if call.order == "recent" else "key"))


MUTANTS: list[tuple[type[MemoryBackend], str]] = [
    (NewestFirst, "test_records_come_back_oldest_first"),
    (OrdersByTurnId, "test_a_hundred_appends_in_a_hurry_keep_their_order"),
    (OrdersByTurnId, "test_an_acknowledged_append_stands_before_one_begun_after_it"),
    (CountsFromZero, "test_positions_begin_at_1_or_later_and_rise_below_2_to_the_53"),
    (CountsFromZero, "test_positions_rise_after_a_replace_too"),
    (GivesRecordsOfOneWriteOnePosition, "test_positions_begin_at_1_or_later_and_rise_below_2_to_the_53"),
    (TellsLocalTimes, "test_times_are_aware_and_in_utc"),
    (TellsTheTimeOfReading, "test_a_record_keeps_its_time"),
    (NewEpochAtEachWrite, "test_appending_keeps_the_epoch"),
    (NewEpochAtEachWrite, "test_get_summaries_and_writes_tell_the_same_epoch"),
    (NewEpochAtEachWrite, "test_reading_on_gives_what_is_new"),
    (KeepsTheEpoch, "test_replacing_changes_the_epoch"),
    (KeepsTheEpoch, "test_reading_on_starts_over_after_a_replace"),
    (KeepsTheEpoch, "test_reading_on_starts_over_after_a_clear"),
    (KeepsTheEpoch, "test_followers_at_any_limit_miss_repeat_and_reorder_nothing"),
    (CountsRevisions, "test_a_revision_never_comes_back"),
    (CountsRevisions, "test_every_write_makes_a_new_revision"),
    (CachesReads, "test_another_handle_sees_every_acknowledged_write"),
    (CachesReads, "test_summaries_of_another_handle_see_every_acknowledged_write"),
    (CachesReads, "test_what_is_cleared_is_gone_for_every_handle_and_after_closing"),
    (ReadsHeadAndRecordsApart, "test_head_and_records_are_one_snapshot_while_others_append"),
    (LimitGivesTheOldest, "test_without_after_the_newest_come_oldest_first"),
    (AfterGivesTheNewest, "test_with_after_the_first_ones_behind_it_come"),
    (AfterGivesTheNewest, "test_followers_at_any_limit_miss_repeat_and_reorder_nothing"),
    (AfterGivesTheNewest, "test_walking_gives_every_record_at_any_page"),
    (BeforeIsInclusive, "test_without_after_the_newest_come_oldest_first"),
    (AfterIsInclusive, "test_with_after_the_first_ones_behind_it_come"),
    (LimitOfZeroIsNone, "test_without_after_the_newest_come_oldest_first"),
    (LimitOfZeroIsNone, "test_every_read_tells_the_whole_head"),
    (LimitOfZeroIsNone, "test_a_limit_of_0_lists_nothing_and_a_huge_one_everything"),
    (CapsReads, "test_a_conversation_is_whole_without_a_limit"),
    (CountsThePage, "test_every_read_tells_the_whole_head"),
    (TakesNegatives, "test_negative_numbers_are_refused"),
    (TakesNegatives, "test_a_negative_limit_is_refused"),
    (TakesBothCursors, "test_both_cursors_at_once_are_refused"),
    (BindsNumbersOf63Bits, "test_cursors_and_limits_may_be_huge"),
    (BindsNumbersOf63Bits, "test_a_limit_of_0_lists_nothing_and_a_huge_one_everything"),
    (MakesWhatItReads, "test_an_unknown_key_reads_as_a_conversation_without_revision"),
    (MakesWhatItReads, "test_reading_changes_nothing"),
    (WritesAtReading, "test_reading_changes_nothing"),
    (ClearAlwaysSaysYes, "test_clearing_says_whether_there_was_something"),
    (ClearAlwaysSaysYes, "test_one_of_sixteen_clears_that_expect_a_revision_wins"),
    (ClearEmpties, "test_clearing_forgets_the_turns"),
    (ClearEmpties, "test_a_new_start_has_another_created_at"),
    (ClearTakesThePrefix, "test_clearing_one_conversation_leaves_its_neighbours"),
    (ClearHides, "test_a_new_start_holds_nothing_that_was_cleared"),
    (NotesNoUpdate, "test_updated_at_goes_with_the_writes"),
    (AfterGivesTheNewest, "test_walking_ends_at_the_head_that_was_first_seen"),
    (KeepsTheEpoch, "test_walking_ends_with_an_error_where_records_are_taken_away"),
    (ClearIgnoresTheRevision, "test_clearing_at_another_revision_is_refused"),
    (ClearExpectsOfNothing, "test_clearing_what_does_not_exist_is_false_whatever_was_expected"),
    (ClearLeavesTheListing, "test_what_is_cleared_is_neither_read_nor_listed"),
    (ListsByUtf16, "test_keys_are_listed_by_code_point"),
    (ListsCaseBlind, "test_keys_are_listed_by_code_point"),
    (RecentIsByKey, "test_recent_lists_the_newest_update_first_and_equal_ones_by_key"),
    (RecentIsOldestFirst, "test_recent_lists_the_newest_update_first_and_equal_ones_by_key"),
    (RecentIsByCreation, "test_a_write_moves_its_conversation_to_the_front_of_recent"),
    (Unordered, "test_a_page_goes_on_behind_a_conversation_that_was_cleared"),
    (Unordered, "test_a_page_goes_on_behind_a_key_outside_its_prefix"),
    (PageRepeatsItsStart, "test_pages_together_are_the_whole_listing"),
    (PageCountsFromTheStart, "test_conversations_that_stay_are_listed_once_while_others_come_and_go"),
    (PageCutsBeforeItFilters, "test_pages_of_a_prefix_together_are_its_listing"),
    (PrefixIsAPattern, "test_pattern_characters_in_a_prefix_stand_for_themselves"),
    (PrefixIsAPattern, "test_erasing_takes_pattern_characters_as_they_are"),
    (PrefixIsAPattern, "test_one_scope_never_covers_another"),
    (PrefixIsCaseBlind, "test_a_prefix_lists_the_keys_that_begin_with_it"),
    (PrefixIsCaseBlind, "test_erasing_a_prefix_clears_and_counts_all_under_it"),
    (PrefixEndsAtFFFF, "test_a_prefix_lists_the_keys_that_begin_with_it"),
    (PrefixLeavesItselfOut, "test_a_prefix_may_be_as_long_as_a_key"),
    (ListsOtherHeads, "test_a_summary_is_the_head_that_get_tells"),
    (FoldsKeys, "test_awkward_keys_never_collide"),
    (FoldsKeys, "test_awkward_keys_are_listed_as_they_are"),
    (FoldsKeys, "test_clearing_an_awkward_key_leaves_the_others"),
    (NormalisesKeys, "test_awkward_keys_never_collide"),
    (StripsKeys, "test_awkward_keys_never_collide"),
    (TakesPercentsForEscapes, "test_awkward_keys_never_collide"),
    (CutsKeys, "test_awkward_keys_never_collide"),
    (EscapesKeysOneWay, "test_awkward_keys_are_listed_as_they_are"),
    (CutsKeys, "test_invalid_keys_are_refused_by_every_operation"),
    (TakesEmptyKeys, "test_invalid_keys_are_refused_by_every_operation"),
    (TakesNul, "test_invalid_keys_are_refused_by_every_operation"),
    (TakesAnyPrefix, "test_invalid_prefixes_are_refused"),
    (TakesAnyOrder, "test_an_unknown_order_is_refused"),
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
