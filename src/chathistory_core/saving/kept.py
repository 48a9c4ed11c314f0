"""What is kept of runs that failed: under which turn ids, and what a model sees of it.

A failed attempt at turn T stands under an id made of T's hash: the first one the request and what had come of the
answer, each later one its own part of an answer alone. So T itself stays free for the attempt that succeeds, which
stores its answer and not the request again.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import count, groupby

from chathistory_core.conversations import Loaded
from chathistory_core.messages import (
    ChatMessage,
    Content,
    TextContent,
    TextReasoningContent,
    as_incomplete,
    is_incomplete,
)
from chathistory_core.records import StoredRecord
from chathistory_core.views.repair import mended

_PREFIX = "kept-"


def kept_id(turn_id: str, attempt: int) -> str:
    """The turn id of what is kept of the turn's first, second, … failed attempt."""
    return f"{_family(turn_id)}.{attempt}"


def attempts(kept: Iterable[str], turn_id: str) -> set[int]:
    """Which attempts at this turn the turn ids of what is kept are of."""
    family = _family(turn_id) + "."
    return {int(each.removeprefix(family)) for each in kept if each.startswith(family)}


def is_kept(turn_id: str) -> bool:
    """Whether it is the turn id of what is kept of a failed attempt."""
    return _family_in(turn_id) is not None


def kept_among(records: Sequence[StoredRecord]) -> frozenset[str]:
    """The turn ids among the records that are of failed attempts."""
    return frozenset(filter(is_kept, {record.turn_id for record in records}))


def has_attempt(records: Iterable[StoredRecord], turn_id: str | None) -> bool:
    """Whether anything among the records is of this turn, or kept of an attempt at it."""
    family = None if turn_id is None else _family(turn_id)
    return family is not None and any(
        record.turn_id == turn_id or _family_in(record.turn_id) == family for record in records
    )


def incomplete(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages of an answer that broke off, marked as such; without those in which nothing is said yet."""
    return [
        as_incomplete(message) for message in messages if not all(_is_blank(content) for content in message.contents)
    ]


def shown(loaded: Loaded, turn_id: str | None = None, waiting: Collection[str] = ()) -> Sequence[Sequence[ChatMessage]]:
    """What a model sees of each record that was loaded.

    `waiting` are turns whose answers are still to be stored.

    Left out is what is kept of the turn that is being tried again, the incomplete answers of a turn that was answered
    since, and of other incomplete answers the calls that nobody will answer any more. Nothing else changes.
    """
    records, groups = loaded.conversation.records, loaded.groups
    if not loaded.among(kept_among):
        return groups
    families = [_family_in(record.turn_id) for record in records]
    own = None if turn_id is None else _family(turn_id)
    ended = {record.turn_id for record, family in zip(records, families, strict=True) if family is None}
    answered = {_family(each) for each in (*ended, *waiting)}
    seen = list(groups)
    for attempt in _stretches(records, families):
        family = families[attempt.start]
        for place in attempt:
            if family == own:
                seen[place] = ()
            elif family in answered:
                seen[place] = [message for message in groups[place] if not is_incomplete(message)]
        if family != own and family not in answered:
            seen[attempt.start : attempt.stop] = without_dangling(groups[attempt.start : attempt.stop])
    return seen


def _stretches(records: Sequence[StoredRecord], families: Sequence[str | None]) -> Iterator[range]:
    """Where the records of each failed attempt stand."""
    stop = 0
    for _, stretch in groupby(record.turn_id for record in records):
        start, stop = stop, stop + sum(1 for _ in stretch)
        if families[start] is not None:
            yield range(start, stop)


def without_dangling(groups: Sequence[Sequence[ChatMessage]]) -> list[Sequence[ChatMessage]]:
    """The groups without the calls of incomplete answers that have no result, and what holds nothing else."""
    answer = [message for group in groups for message in group if is_incomplete(message)]
    mend = mended(answer, "drop")
    left = dict(zip(mend.sources, mend.messages, strict=True))
    numbers = count()
    return [
        [
            shown
            for message in group
            if (shown := left.get(next(numbers)) if is_incomplete(message) else message) is not None
        ]
        for group in groups
    ]


def _family(turn_id: str) -> str:
    return _PREFIX + blake2b(turn_id.encode(), digest_size=16).hexdigest()


def _family_in(turn_id: str) -> str | None:
    """The part that all attempts at one turn share; None where the id is not one of a failed attempt."""
    if not turn_id.startswith(_PREFIX):
        return None
    family, dot, attempt = turn_id.rpartition(".")
    return family if dot and attempt.isdecimal() else None


def _is_blank(content: Content) -> bool:
    return isinstance(content, (TextContent, TextReasoningContent)) and not content.text
