"""Obligation 13: an error is one of ours, shows no content, and the next call works."""

import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeAlias

import pytest

from chathistory_core.backend import ChatHistoryBackend
from chathistory_core.errors import (
    EpochChangedError,
    InvalidKeyError,
    RevisionConflictError,
    TooLargeError,
    TurnConflictError,
)
from chathistory_core.records import Record
from chathistory_core.testing.scenario import say, texts_of, with_backend

CANARY = "the-content-nobody-may-see"

Call: TypeAlias = Callable[[ChatHistoryBackend], Awaitable[object]]


def _secret(count: int = 1) -> list[Record]:
    return [Record(CANARY.encode(), "text")] * count


FAILURES: tuple[tuple[type[Exception], Call], ...] = (
    (TurnConflictError, lambda backend: backend.append("k", _secret(2), turn_id="t")),
    (TurnConflictError, lambda backend: backend.replace("k", _secret(), turn_id="t")),
    (RevisionConflictError, lambda backend: backend.append("k", _secret(), turn_id="u", expected_revision="x")),
    (RevisionConflictError, lambda backend: backend.replace("k", _secret(), turn_id="u", expected_revision="x")),
    (RevisionConflictError, lambda backend: backend.clear("k", expected_revision="x")),
    (EpochChangedError, lambda backend: backend.append("k", _secret(), turn_id="u", expected_epoch="x")),
    (TooLargeError, lambda backend: backend.append("k", _secret(backend.limits.max_records + 1), turn_id="u")),
    (ValueError, lambda backend: backend.append("k", [], turn_id="u")),
    (InvalidKeyError, lambda backend: backend.append("", _secret(), turn_id="u")),
    (InvalidKeyError, lambda backend: backend.append("k", _secret(), turn_id="\0")),
    (InvalidKeyError, lambda backend: backend.summaries(prefix="\ud800")),
    (ValueError, lambda backend: backend.get("k", limit=-1)),
    (ValueError, lambda backend: backend.summaries(limit=-1)),
)


class FailureTests:
    """Wrong use and lost races leave the backend as it was."""

    @with_backend
    async def test_after_any_error_the_next_call_works(self, backend: ChatHistoryBackend) -> None:
        await backend.append("k", _secret(), turn_id="t")
        for number, (error, call) in enumerate(FAILURES):
            before = await backend.get("k")
            with pytest.raises(error):
                await call(backend)
            assert await backend.get("k") == before
            await say(backend, "k", str(number))
        assert texts_of(await backend.get("k"))[1:] == [str(number) for number in range(len(FAILURES))]

    @with_backend
    async def test_no_error_log_line_or_repr_shows_content(self, backend: ChatHistoryBackend) -> None:
        lines = _Lines()
        root = logging.getLogger()
        level = root.level
        root.addHandler(lines)
        root.setLevel(logging.DEBUG)
        try:
            written = await backend.append("k", _secret(), turn_id="t")
            found = await backend.get("k")
            shown = [repr(written), repr(found), repr(found.records), repr(await backend.summaries())]
            for error, call in FAILURES:
                with pytest.raises(error) as caught:
                    await call(backend)
                shown += [repr(caught.value), *traceback.format_exception(caught.value)]
            await backend.clear("k")
        finally:
            root.setLevel(level)
            root.removeHandler(lines)
        for text in [*shown, *lines.seen, repr(backend)]:
            assert CANARY not in text
            assert CANARY.encode().hex() not in text


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(f"{record.getMessage()} {record.exc_text} {record.exc_info}")
