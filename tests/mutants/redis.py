"""Mutants of the Redis backend, most of them in its scripts."""

from .changed import Change
from .mutant import Mutant


def _mutant(what: str, obligation: int, test: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant("Redis", what, obligation, test, [Change(*change) for change in changes])


MUTANTS = (
    _mutant(
        "the newest record stands in front",
        1,
        "test_records_come_back_oldest_first",
        ("lua/write.lua", "redis.call('RPUSH', records,", "redis.call('LPUSH', records,"),
    ),
    _mutant(
        "the epoch is kept over a replace",
        2,
        "test_replacing_changes_the_epoch",
        ("lua/write.lua", "head.epoch, head.count, head.bytes = epoch, 0, 0", "head.count, head.bytes = 0, 0"),
    ),
    _mutant(
        "head and records are read by two scripts",
        3,
        "test_head_and_records_are_one_snapshot_while_others_append",
        (
            "reading.py",
            '    status, *page = await _page(store, key, _text(limit), _text(before), _text(after), b"", "")\n',
            (
                '    _, *first = await _page(store, key, "0", "", "", b"", "")\n'
                '    status, *page = await _page(store, key, _text(limit), _text(before), _text(after), b"", "")\n'
                "    page[:1] = first[:1] or page[:1]\n"
            ),
        ),
    ),
    _mutant(
        "a replace is two scripts",
        3,
        "test_a_replace_is_never_seen_half_done",
        (
            "backend.py",
            'return await self._write("replace", key, records, turn_id, expected_revision, None)',
            (
                "await self.clear(key, expected_revision=expected_revision)\n"
                '        return await self._write("replace", key, records, turn_id, None, None)'
            ),
        ),
    ),
    _mutant(
        "an append is a script for each record",
        4,
        "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing",
        (
            "backend.py",
            'return await self._write("append", key, records, turn_id, expected_revision, expected_epoch)',
            (
                'first = await self._write("append", key, records[:1], turn_id, expected_revision, expected_epoch)\n'
                "        for index, record in enumerate(records[1:]):\n"
                '            await self._write("append", key, [record], f"{turn_id} {index}", None, None)\n'
                "        return first"
            ),
        ),
    ),
    _mutant(
        "a replace forgets the turns",
        5,
        "test_a_turn_is_remembered_after_a_replace",
        ("lua/write.lua", "redis.call('UNLINK', records, sizes)\n", "redis.call('UNLINK', records, sizes, turns)\n"),
    ),
    _mutant(
        "a turn is found by its content",
        5,
        "test_equal_content_under_different_turns_is_stored_each_time",
        ("lua/write.lua", "find(key, now, turn, turns_kept)", "find(key, now, digest, turns_kept)"),
        ("lua/write.lua", "redis.call('HSET', turns, turn, digest", "redis.call('HSET', turns, digest, digest"),
    ),
    _mutant(
        "a stored turn is a replay whatever it holds",
        5,
        "test_a_turn_with_other_records_is_refused_and_writes_nothing",
        ("lua/write.lua", "== digest and 'replayed' or 'taken'", "== digest and 'replayed' or 'replayed'"),
    ),
    _mutant(
        "the revision is a counter",
        6,
        "test_a_revision_never_comes_back",
        (
            "lua/write.lua",
            "head.turns = head.turns + 1\n",
            "head.turns = head.turns + 1\nrevision = string.format('%016d', head.turns)\n",
        ),
    ),
    _mutant(
        "an expected epoch is not looked at",
        6,
        "test_an_expected_epoch_is_refused_after_a_replace",
        ("lua/write.lua", "if expected_epoch ~= '*' and", "if expected_epoch == '' and"),
    ),
    _mutant(
        "a limit gives the oldest records",
        7,
        "test_without_after_the_newest_come_oldest_first",
        (
            "lua/read.lua",
            "first = limit and math.max(1, last - limit + 1) or 1",
            "last = limit and math.min(last, limit) or last",
        ),
    ),
    _mutant(
        "`after` is inclusive",
        7,
        "test_with_after_the_first_ones_behind_it_come",
        ("lua/read.lua", "  first = after + 1\n", "  first = math.max(1, after)\n"),
    ),
    _mutant(
        "a conversation without records is removed",
        8,
        "test_replacing_with_nothing_leaves_an_empty_conversation",
        (
            "lua/write.lua",
            "forget(dead)\nreturn",
            "if head.count == 0 then dead[#dead + 1] = key end\nforget(dead)\nreturn",
        ),
    ),
    _mutant(
        "a clear leaves the turns",
        9,
        "test_clearing_forgets_the_turns",
        ("lua/clear.lua", "redis.call('UNLINK', records, sizes, turns)\n", "redis.call('UNLINK', records, sizes)\n"),
        (
            "lua/write.lua",
            "  redis.call('UNLINK', records, sizes, turns)\n",
            "  redis.call('UNLINK', records, sizes)\n",
        ),
    ),
    _mutant(
        "a clear of what is not there says that it cleared",
        9,
        "test_clearing_says_whether_there_was_something",
        ("lua/clear.lua", "return {head and 'cleared' or 'none'}", "return {'cleared'}"),
    ),
    _mutant(
        "a clear whose reply is lost is made again",
        9,
        "test_a_clear_whose_reply_is_lost_says_so_and_is_not_made_again_by_itself",
        ("backend.py", 'action="clear conversation", once=True', 'action="clear conversation", once=False'),
    ),
    _mutant(
        "the time to live is kept with the records and not with the head",
        9,
        "test_an_expired_conversation_is_invisible_at_once",
        (
            "lua/write.lua",
            "  '%s%.0f %.0f %s %s %.0f', expires, head",
            "  '%s%.0f %.0f %s %s %.0f', NEVER, head",
        ),
    ),
    _mutant(
        "a prefix is where the listing begins, and nothing ends it",
        10,
        "test_a_prefix_lists_the_keys_that_begin_with_it",
        ("listing.py", 'stop = b"(%b\\xff" % prefix.encode() if prefix else b"+"', 'stop = b"+"'),
    ),
    _mutant(
        "a replace leaves the conversation where it was among the recent",
        10,
        "test_a_write_moves_its_conversation_to_the_front_of_recent",
        (
            "lua/write.lua",
            "redis.call('ZADD', recent, '-' .. head.updated, key)",
            "if operation ~= 'replace' or created then redis.call('ZADD', recent, '-' .. head.updated, key) end",
        ),
    ),
    _mutant(
        "keys are found whatever their case",
        11,
        "test_awkward_keys_never_collide",
        ("store.py", "name = key.encode()", "name = key.casefold().encode()"),
    ),
    _mutant(
        "turn ids end at a space",
        11,
        "test_awkward_turn_ids_never_collide",
        (
            "layout.py",
            'time, _, turn_id = stamp.decode().partition(" ")',
            'time, turn_id, *_ = stamp.decode().split(" ")',
        ),
    ),
    _mutant(
        "payloads end at a NUL",
        12,
        "test_payloads_come_back_byte_for_byte",
        (
            "layout.py",
            "_checked(record.format), record.payload)",
            '_checked(record.format), record.payload.partition(b"\\0")[0])',
        ),
    ),
    _mutant(
        "formats lose their encodings",
        12,
        "test_formats_come_back_as_they_were",
        ("layout.py", "return format_name.encode()", "return format_name.partition('+')[0].encode()"),
    ),
    _mutant(
        "the cause of an error has the content",
        13,
        "test_no_error_log_line_or_repr_shows_content",
        (
            "backend.py",
            "            raise EpochChangedError(key)\n",
            "            raise EpochChangedError(key) from ValueError(batch[0].payload)\n",
        ),
    ),
    _mutant(
        "the driver's errors go through",
        13,
        "test_a_server_that_is_gone_is_unavailable_and_the_call_works_when_it_is_back",
        ("server.py", "raise translate(error, action) from None", "raise"),
    ),
    _mutant(
        "it opens once",
        14,
        "test_a_closed_backend_opens_again_and_has_its_records",
        ("backend.py", "        self._opened.close()\n", ""),
    ),
)
