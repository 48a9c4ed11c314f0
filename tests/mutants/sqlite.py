"""Mutants of the SQLite backend."""

from .changed import Change
from .mutant import Mutant


def _mutant(what: str, obligation: int, test: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant("SQLite", what, obligation, test, [Change(*change) for change in changes])


MUTANTS = (
    _mutant(
        "records are read by time, then by turn id",
        1,
        "test_records_of_one_append_keep_their_order",
        ("statements.py", "order_by(_record.position.desc())", "order_by(_record.stored_at.desc(), _record.turn_id)"),
    ),
    _mutant(
        "the epoch is kept over a replace",
        2,
        "test_replacing_changes_the_epoch",
        ("transaction.py", "head._replace(epoch=new_revision(), ", "head._replace("),
    ),
    _mutant(
        "reads go on in a transaction that was begun long ago",
        3,
        "test_another_handle_sees_every_acknowledged_write",
        (
            "database.py",
            'return transact(connection, "BEGIN", lambda: function(self._transaction(connection)))',
            (
                'connection.in_transaction or connection.execute("BEGIN")\n'
                "            return function(self._transaction(connection))"
            ),
        ),
    ),
    _mutant(
        "a replace is two transactions",
        3,
        "test_a_replace_is_never_seen_half_done",
        (
            "backend.py",
            'return await self._put("replace", key, records, turn_id, expected_revision, None)',
            (
                "await self.clear(key, expected_revision=expected_revision)\n"
                '        return await self._put("replace", key, records, turn_id, None, None)'
            ),
        ),
    ),
    _mutant(
        "a write begins as a read",
        4,
        "test_sixteen_writers_begin_one_conversation",
        ("group.py", 'transact(connection, "BEGIN IMMEDIATE", apply)', 'transact(connection, "BEGIN", apply)'),
    ),
    _mutant(
        "an append is a transaction for each record",
        4,
        "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing",
        (
            "backend.py",
            'return await self._put("append", key, records, turn_id, expected_revision, expected_epoch)',
            (
                'first = await self._put("append", key, records[:1], turn_id, expected_revision, expected_epoch)\n'
                "        for index, record in enumerate(records[1:]):\n"
                '            await self._put("append", key, [record], f"{turn_id} {index}", None, None)\n'
                "        return first"
            ),
        ),
    ),
    _mutant(
        "turns are remembered in the memory of the process",
        5,
        "test_a_turn_is_remembered_by_another_handle_and_after_closing",
        ("transaction.py", "PURGED_AT_ONCE = 200", "PURGED_AT_ONCE = 200\nTURNS = {}"),
        (
            "transaction.py",
            "None if row[10] is None else row[10:]",
            "TURNS.get((self._connection, head.id, turn_id))",
        ),
        (
            "transaction.py",
            (
                "        self._connection.execute(\n            statements.INSERT_TURN, "
                "(conversation, turn_id, number, digest, revision, head.epoch, first)\n        )\n"
            ),
            "        TURNS[self._connection, conversation, turn_id] = (digest, revision, head.epoch, first)\n",
        ),
    ),
    _mutant(
        "a turn is found by its content",
        5,
        "test_equal_content_under_different_turns_is_stored_each_time",
        ("statements.py", '_turn.turn_id == bindparam("turn_id")', '_turn.digest == bindparam("turn_id")'),
        (
            "transaction.py",
            "head, turn = self._find(key, turn_id)\n        digest = turn_digest(operation, batch)",
            "digest = turn_digest(operation, batch)\n        head, turn = self._find(key, digest)",
        ),
    ),
    _mutant(
        "a turn of the same number of records is a replay",
        5,
        "test_a_turn_with_other_records_is_refused_and_writes_nothing",
        ("transaction.py", "if stored_digest != digest:", "if len(stored_digest) != len(digest):"),
    ),
    _mutant(
        "a fingerprint is not looked at",
        5,
        "test_a_retry_that_is_encrypted_anew_or_under_a_new_key_is_a_replay",
        (
            "transaction.py",
            "turn_digest(operation, batch)",
            "turn_digest(operation, [record._replace(fingerprint=None) for record in batch])",
        ),
    ),
    _mutant(
        "the newest hundred turns are remembered",
        5,
        "test_the_newest_turns_are_remembered",
        ("backend.py", "turns_kept=self.limits.turns_kept", "turns_kept=100"),
    ),
    _mutant(
        "the revision is a counter",
        6,
        "test_a_revision_never_comes_back",
        ("transaction.py", "head.turn_count + 1, new_revision()", "head.turn_count + 1, str(head.turn_count + 1)"),
    ),
    _mutant(
        "the revision is looked at in a transaction before the write's",
        6,
        "test_one_of_sixteen_appends_that_expect_a_revision_wins",
        ("backend.py", "    ConfigurationError,\n", "    ConfigurationError,\n    RevisionConflictError,\n"),
        (
            "backend.py",
            'return await self._put("append", key, records, turn_id, expected_revision, expected_epoch)',
            (
                "if expected_revision not in (None, (await self.get(key, limit=0)).revision):\n"
                "            raise RevisionConflictError(key)\n"
                '        return await self._put("append", key, records, turn_id, None, expected_epoch)'
            ),
        ),
    ),
    _mutant(
        "an expected epoch passes where the conversation is gone",
        6,
        "test_a_cleared_conversation_is_not_brought_back",
        (
            "transaction.py",
            "if expected_epoch is not None and expected_epoch",
            "if head and expected_epoch is not None and expected_epoch",
        ),
    ),
    _mutant(
        "a limit gives the oldest records",
        7,
        "test_without_after_the_newest_come_oldest_first",
        ("statements.py", "order_by(_record.position.desc())", "order_by(_record.position)"),
        ("transaction.py", "tuple(_stored(rows))[::-1]", "tuple(_stored(rows))"),
    ),
    _mutant(
        "no limit means a thousand records",
        7,
        "test_a_conversation_is_whole_without_a_limit",
        (
            "transaction.py",
            '"limit": _clamp(limit, -1)}\n        if after is None',
            '"limit": _clamp(limit, 1_000)}\n        if after is None',
        ),
    ),
    _mutant(
        "a conversation without records is removed",
        8,
        "test_replacing_with_nothing_leaves_an_empty_conversation",
        (
            "transaction.py",
            "        return Written(revision, head.epoch, first)\n",
            (
                "        if not batch:\n            self._delete(statements.DELETE_HEAD, conversation)\n"
                "        return Written(revision, head.epoch, first)\n"
            ),
        ),
    ),
    _mutant(
        "a clear leaves the head",
        9,
        "test_what_is_cleared_is_neither_read_nor_listed",
        (
            "transaction.py",
            "            self._delete(statements.DELETE_HEAD, head.id)\n        return",
            "        return",
        ),
    ),
    _mutant(
        "a clear looks at no revision",
        9,
        "test_clearing_at_another_revision_is_refused",
        (
            "transaction.py",
            "if live is not None and expected_revision is not None and",
            "if live is None and expected_revision is not None and",
        ),
    ),
    _mutant(
        "a replace does not renew the time to live",
        9,
        "test_appends_and_replaces_renew_the_time",
        (
            "transaction.py",
            "None if ttl is None else",
            'head.expires_at if operation == "replace" else None if ttl is None else',
        ),
    ),
    _mutant(
        "what has expired is listed until it is purged",
        9,
        "test_an_expired_conversation_is_invisible_at_once",
        (
            "statements.py",
            "_alive = or_(_head.expires_at.is_(None), _head.expires_at > _now)",
            "_alive = _head.id.is_not(None)",
        ),
    ),
    _mutant(
        "a prefix is a LIKE pattern without escapes",
        10,
        "test_pattern_characters_in_a_prefix_stand_for_themselves",
        (
            "statements.py",
            '_head.key < bindparam("end")',
            '_head.key.like(bindparam("prefix") + literal_column("\'%\'"))',
        ),
        ("transaction.py", '"start": prefix, "end"', '"start": prefix, "prefix": prefix, "end"'),
    ),
    _mutant(
        "keys are sorted whatever their case",
        10,
        "test_keys_are_listed_by_code_point",
        (
            "statements.py",
            "where(_prefixed).order_by(_head.key).limit",
            'where(_prefixed).order_by(_head.key.collate("NOCASE")).limit',
        ),
    ),
    _mutant(
        "a page of the recent under a prefix begins at the newest",
        10,
        "test_pages_of_a_prefix_together_are_its_listing",
        (
            "statements.py",
            "_sql(_recent.where(_prefixed))",
            "_sql(_page.where(_prefixed).order_by(_head.updated_at.desc()).limit(_limit).offset(_from_first))",
        ),
    ),
    _mutant(
        "keys are found whatever their case",
        11,
        "test_awkward_keys_never_collide",
        ("schema.py", 'Column("key", Text, unique', 'Column("key", Text(collation="NOCASE"), unique'),
    ),
    _mutant(
        "payloads are kept as text",
        12,
        "test_payloads_come_back_byte_for_byte",
        (
            "transaction.py",
            "(conversation, position, record.payload,",
            '(conversation, position, record.payload.decode("latin-1"),',
        ),
    ),
    _mutant(
        "what is stored is logged",
        13,
        "test_no_error_log_line_or_repr_shows_content",
        (
            "transaction.py",
            "        digest = turn_digest(operation, batch)",
            (
                "        __import__('logging').getLogger(__name__).debug('%s', batch[:1] and batch[0].payload)\n"
                "        digest = turn_digest(operation, batch)"
            ),
        ),
    ),
    _mutant(
        "any thread may use it",
        14,
        "test_another_thread_is_refused",
        ("backend.py", "        self._opened.check()", "        pass"),
    ),
)
