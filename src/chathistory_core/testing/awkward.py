"""Obligation 11: every key works and is its own."""

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import InvalidKeyError
from chathistory_core.keys import scope
from chathistory_core.reading import erase
from chathistory_core.testing.scenario import keys_of, records, say, texts_of, with_backend

AWKWARD = sorted(
    {
        *"/:{}*?[]\\%._-#&=+;,|~^$!@'\"`()<> \t\n\r\x01\x7f\x85\xa0",
        *("..", "//", "a", "A", "a ", " a", "a/", "/a", "a//b", "a/b", "a:b", "a.b", "a\\b", "a\nb", "a\r\nb", "a\tb"),
        *("{a}", "{a", "a}", "[a]", "a*", "a?", "a%", "%61", "%25", "%2F", "%2f", "%00", "\\0", "\\x00", "$1", "${a}"),
        *("./a", "../a", "a/.", "a/..", "~/a", "C:\\a", "con", "nul", "a'--", "';drop table", "NULL", "None", "true"),
        *("0", "00", "1", "1.0", "+1", "-1", "1e3", "inf", "nan", "keys", "meta", "chathistory"),
        *("é", "e\u0301", "É", "ß", "ss", "ẞ", "ı", "I", "i", "İ", "ﬁ", "fi", "Å", "\u212b", "K", "\u212a"),  # noqa: RUF001
        *("😀", "👩‍👩‍👧", "👩", "🏳️‍🌈", "שלום", "مرحبا", "\u202eabc", "abc\u202c", "日本語", "ｱ", "ア"),
        *("\u200b", "a\u200b", "\ufeff", "\ufeffa", "\u2028", "\ud7ff", "\ue000", "\ufffd", "\ufffe", "\uffff"),
        *("\U00010000", "\U0010ffff", "k" * 512, "k" * 511, "k" * 511 + "l", "é" * 256, "😀" * 128, "/" * 512),
    }
)
"""Keys that trip separators, patterns, quoting, case folding, normalisation, trimming, paths and UTF-16."""

INVALID = ("", "\0", "a\0", "\0a", "\ud800", "a\udfff", "\ud83d\ude00", "k" * 513, "é" * 257, "😀" * 128 + "a")

JOINED = [(f"a{mark}b", "c") for mark in ":/|\\-_.,; %#\x1f"] + [("a", f"b{mark}c") for mark in ":/|\\-_.,; %#\x1f"]
"""Keys and turn ids that a careless join makes equal."""


class KeyTests:
    """Keys, prefixes and turn ids are text in which no character has a meaning."""

    @with_backend
    async def test_awkward_keys_never_collide(self, backend: ChatHistoryBackend) -> None:
        for key in AWKWARD:
            assert not (await say(backend, key, key, turn_id="t")).replayed, key
        for key in AWKWARD:
            found = await backend.get(key)
            assert (found.key, texts_of(found)) == (key, [key])

    @with_backend
    async def test_awkward_keys_are_listed_as_they_are(self, backend: ChatHistoryBackend) -> None:
        for key in AWKWARD:
            await say(backend, key, "a")
        assert keys_of(await backend.summaries()) == AWKWARD

    @with_backend
    async def test_clearing_an_awkward_key_leaves_the_others(self, backend: ChatHistoryBackend) -> None:
        for key in AWKWARD:
            await say(backend, key, key)
        for number, key in enumerate(AWKWARD[::2]):
            assert await backend.clear(key), key
            rest = [other for other in AWKWARD if other not in AWKWARD[: 2 * number + 1 : 2]]
            if number % 16 == 0:
                assert keys_of(await backend.summaries()) == rest
        for key in AWKWARD[1::2]:
            assert texts_of(await backend.get(key)) == [key]

    @with_backend
    async def test_awkward_turn_ids_never_collide(self, backend: ChatHistoryBackend) -> None:
        turn_ids = [key for key in AWKWARD if len(key.encode()) <= 200] + ["t" * 200, "é" * 100, "😀" * 50]
        for turn_id in turn_ids:
            assert not (await say(backend, "k", turn_id, turn_id=turn_id)).replayed, turn_id
        for turn_id in turn_ids:
            assert (await say(backend, "k", turn_id, turn_id=turn_id)).replayed, turn_id
        found = await backend.get("k")
        assert [record.turn_id for record in found.records] == texts_of(found) == turn_ids

    @with_backend
    async def test_no_join_of_key_and_turn_id_collides(self, backend: ChatHistoryBackend) -> None:
        for key, turn_id in JOINED:
            assert not (await say(backend, key, turn_id, turn_id=turn_id)).replayed, (key, turn_id)
        for key in {key for key, _ in JOINED}:
            assert texts_of(await backend.get(key)) == [turn_id for each, turn_id in JOINED if each == key]

    @with_backend
    async def test_invalid_keys_are_refused_by_every_operation(self, backend: ChatHistoryBackend) -> None:
        for key in INVALID:
            with pytest.raises(InvalidKeyError):
                await backend.get(key)
            with pytest.raises(InvalidKeyError):
                await backend.append(key, records("a"), turn_id="t")
            with pytest.raises(InvalidKeyError):
                await backend.replace(key, records("a"), turn_id="t")
            with pytest.raises(InvalidKeyError):
                await backend.clear(key)
        assert keys_of(await backend.summaries()) == []

    @with_backend
    async def test_invalid_turn_ids_are_refused(self, backend: ChatHistoryBackend) -> None:
        for turn_id in (*INVALID, "t" * 201, "é" * 101):
            with pytest.raises(InvalidKeyError):
                await backend.append("k", records("a"), turn_id=turn_id)
            with pytest.raises(InvalidKeyError):
                await backend.replace("k", records("a"), turn_id=turn_id)
        assert keys_of(await backend.summaries()) == []

    @with_backend
    async def test_invalid_prefixes_are_refused(self, backend: ChatHistoryBackend) -> None:
        for prefix in INVALID[1:]:
            with pytest.raises(InvalidKeyError):
                await backend.summaries(prefix=prefix)

    @with_backend
    async def test_one_scope_never_covers_another(self, backend: ChatHistoryBackend) -> None:
        scopes = [
            scope(*parts) for parts in (["ann"], ["anna"], ["an", "n"], ["an/n"], ["an%2Fn"], ["%"], ["_"], ["*"])
        ]
        for each in scopes:
            await say(backend, each + "1", "a")
        for each in scopes:
            assert keys_of(await backend.summaries(prefix=each)) == [each + "1"]
        assert await erase(backend, scopes[0]) == 1
        assert sorted(keys_of(await backend.summaries())) == sorted(each + "1" for each in scopes[1:])
