"""Mutants of the memory backend."""

from .changed import Change
from .mutant import Mutant


def _mutant(what: str, obligation: int, test: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant("memory", what, obligation, test, [Change(*change) for change in changes])


MUTANTS = (
    _mutant(
        "records are sorted by a clock of seconds, then by turn id",
        1,
        "test_a_batch_and_what_follows_it_at_once_keep_their_order",
        ("backend.py", "return datetime.now(UTC)", "return datetime.now(UTC).replace(microsecond=0)"),
        (
            "log.py",
            "        self._updated_at = max(",
            (
                "        self._records.sort(key=lambda each: (each.stored_at, each.turn_id))\n"
                "        self._updated_at = max("
            ),
        ),
    ),
    _mutant(
        "a write is told the position of its last record",
        1,
        "test_the_first_position_of_a_write_is_that_of_its_first_record",
        (
            "log.py",
            "Written(self.revision, self.epoch, first)",
            "Written(self.revision, self.epoch, first + len(batch) - 1)",
        ),
    ),
    _mutant(
        "the epoch is kept over a replace",
        2,
        "test_replacing_changes_the_epoch",
        ("log.py", "        self._records = []\n        self.epoch = new_revision()", "        self._records = []"),
    ),
    _mutant(
        "a replace is two steps",
        3,
        "test_a_replace_is_never_seen_half_done",
        ("backend.py", "from collections.abc", "import asyncio\nfrom collections.abc"),
        (
            "backend.py",
            'return self._write("replace", key, records, turn_id, expected_revision, None)',
            (
                'self._write("replace", key, [], f"{turn_id} 1", expected_revision, None)\n'
                "        await asyncio.sleep(0)\n"
                '        return self._write("replace", key, records, turn_id, None, None)'
            ),
        ),
    ),
    _mutant(
        "an append is stored record by record",
        4,
        "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing",
        ("backend.py", "from collections.abc", "import asyncio\nfrom collections.abc"),
        (
            "backend.py",
            'return self._write("append", key, records, turn_id, expected_revision, expected_epoch)',
            (
                'first = self._write("append", key, records[:1], turn_id, expected_revision, expected_epoch)\n'
                "        for index, record in enumerate(records[1:]):\n"
                "            await asyncio.sleep(0)\n"
                '            self._write("append", key, [record], f"{turn_id} {index}", None, None)\n'
                "        return first"
            ),
        ),
    ),
    _mutant(
        "only the newest turn is remembered",
        5,
        "test_a_replay_after_other_appends_returns_the_first_result",
        (
            "log.py",
            "        self.turns[turn_id] = Turn(",
            "        self.turns.clear()\n        self.turns[turn_id] = Turn(",
        ),
    ),
    _mutant(
        "equal content is stored once",
        5,
        "test_equal_content_under_different_turns_is_stored_each_time",
        (
            "log.py",
            "        first = self._records[-1]",
            (
                "        held = {record.payload for record in self._records}\n"
                "        batch = [record for record in batch if record.payload not in held]\n"
                "        first = self._records[-1]"
            ),
        ),
    ),
    _mutant(
        "an expectation is looked at before the turn",
        5,
        "test_a_replay_is_answered_before_any_expectation_is_looked_at",
        (
            "backend.py",
            "            if log is not None and (stored :=",
            (
                "            if expected_revision not in (None, log.revision if log else NO_REVISION):\n"
                "                raise RevisionConflictError(key)\n"
                "            if log is not None and (stored :="
            ),
        ),
    ),
    _mutant(
        "the revision is a counter",
        6,
        "test_a_revision_never_comes_back",
        ("log.py", "self.revision = new_revision()", 'self.revision = str(int(self.revision or "0") + 1)'),
    ),
    _mutant(
        "created_at begins anew with a replace",
        6,
        "test_appends_and_replaces_keep_created_at",
        (
            "log.py",
            "        self._updated_at = max(",
            "        self._created_at = self._created_at if first > 1 else now\n        self._updated_at = max(",
        ),
    ),
    _mutant(
        "a limit gives the oldest records",
        7,
        "test_without_after_the_newest_come_oldest_first",
        (
            "log.py",
            "start = start if limit is None else max(0, stop - limit)",
            "stop = stop if limit is None else min(stop, limit)",
        ),
    ),
    _mutant(
        "`before` is inclusive",
        7,
        "test_without_after_the_newest_come_oldest_first",
        ("log.py", "bisect_left(self._records, before,", "bisect_right(self._records, before,"),
    ),
    _mutant(
        "a conversation without records is removed",
        8,
        "test_replacing_with_nothing_leaves_an_empty_conversation",
        (
            "backend.py",
            "            return written\n",
            "            if not batch:\n                self._store.drop(key)\n            return written\n",
        ),
    ),
    _mutant(
        "a clear takes the records and leaves the conversation",
        9,
        "test_what_is_cleared_is_neither_read_nor_listed",
        (
            "backend.py",
            "            self._store.drop(key)\n            return True",
            "            log.take_away()\n            return True",
        ),
    ),
    _mutant(
        "reading renews the time to live",
        9,
        "test_reads_and_refused_writes_renew_nothing",
        (
            "backend.py",
            "            return Conversation(*log.summary,",
            (
                "            log.expires_at = None if self._ttl is None else self._clock() + self._ttl\n"
                "            return Conversation(*log.summary,"
            ),
        ),
    ),
    _mutant(
        "what begins anew is listed beside what expired",
        9,
        "test_what_begins_anew_beside_many_that_expired_is_listed_once",
        ("store.py", "        self.drop(key)\n        insort", "        insort"),
    ),
    _mutant(
        "a prefix is a pattern",
        10,
        "test_pattern_characters_in_a_prefix_stand_for_themselves",
        ("store.py", "from bisect", "from fnmatch import fnmatchcase\nfrom bisect"),
        ("store.py", "bisect_left(self._keys, start)", 'bisect_left(self._keys, start if start != prefix else "")'),
        (
            "store.py",
            "            if not key.startswith(prefix):\n                return",
            '            if not fnmatchcase(key, f"{prefix}*"):\n                continue',
        ),
    ),
    _mutant(
        "the newest conversations come last",
        10,
        "test_a_write_moves_its_conversation_to_the_front_of_recent",
        ("store.py", "return -summary.updated_at.timestamp()", "return summary.updated_at.timestamp()"),
    ),
    _mutant(
        "keys are found whatever their case",
        11,
        "test_awkward_keys_never_collide",
        ("store.py", "log = self._logs.get(key)", "log = self._logs.get(key.casefold())"),
        (
            "store.py",
            "        self.drop(key)\n        insort",
            "        self.drop(key := key.casefold())\n        insort",
        ),
    ),
    _mutant(
        "payloads are kept as text",
        12,
        "test_payloads_come_back_byte_for_byte",
        ("log.py", "StoredRecord(record.payload,", 'StoredRecord(record.payload.decode(errors="replace").encode(),'),
    ),
    _mutant(
        "formats end before the id of a key",
        12,
        "test_records_of_an_old_and_a_new_key_stand_beside_each_other",
        ("log.py", "record.payload, record.format,", 'record.payload, record.format.partition(".")[0],'),
    ),
    _mutant(
        "a write is cut at the limit",
        12,
        "test_more_records_than_max_records_are_refused",
        (
            "backend.py",
            "batch = check_write(operation, key, records,",
            "batch = check_write(operation, key, records[: self.limits.max_records],",
        ),
    ),
    _mutant(
        "the cause of an error has the content",
        13,
        "test_no_error_log_line_or_repr_shows_content",
        (
            "backend.py",
            "raise TurnConflictError(key, turn_id, stored.written)",
            "raise TurnConflictError(key, turn_id, stored.written) from ValueError(batch[0].payload)",
        ),
    ),
    _mutant(
        "a closed backend goes on",
        14,
        "test_a_closed_backend_refuses_every_call",
        ("backend.py", "        self._opened.close()", "        pass"),
    ),
)
