"""What a caller may do, drawn at random: in words that say it whatever revisions and positions a store gives."""

from typing import Literal, NamedTuple, TypeAlias

from hypothesis.strategies import SearchStrategy, builds, integers, one_of, sampled_from

from chathistory_core.backend import Order

Token: TypeAlias = Literal["current", "earlier", "none", "unknown"]


class Write(NamedTuple):
    """Write; a clear has no turn and no records, and only an append may expect an epoch."""

    key: str
    operation: Literal["append", "replace", "clear"]
    turn: str
    text: str
    size: int
    encoding: str
    revision: Token | None
    epoch: Token | None


class Repeat(NamedTuple):
    """Send a write again: as a caller does who got no answer, or one who was refused and has read what there is now."""

    back: int
    revision: Literal["the same", "current"]


class Read(NamedTuple):
    """Read with every limit; a cursor is at the record with this index, or one before or behind it."""

    key: str
    cursor: Literal["before", "after"] | None
    at: int
    by: int


class Follow(NamedTuple):
    """Read what came behind the records that a follower holds."""

    key: str
    limit: int | None


class List(NamedTuple):
    """List everything, and pages behind each conversation that is listed or was once."""

    prefix: str
    order: Order


class Reopen(NamedTuple):
    """Close the handle and open it, or another one, again."""

    which: Literal["same", "another"]


Action: TypeAlias = Write | Repeat | Read | Follow | List | Reopen

# what is drawn more often stands there more than once
_KEYS = sampled_from(["a", "a", "a/b", "b"])
_TOKENS: SearchStrategy[Token | None] = sampled_from([*[None] * 6, "current", "current", "earlier", "none", "unknown"])


def _writes(operation: Literal["append", "replace", "clear"], *, least: int) -> SearchStrategy[Action]:
    return builds(
        Write,
        key=_KEYS,
        operation=sampled_from([operation]),
        turn=sampled_from(["new", "new", "t0", "t1"]),
        text=sampled_from(["x", "y"]),
        size=integers(least, 3),
        encoding=sampled_from(["", "k1", "k2"]),
        revision=_TOKENS,
        epoch=_TOKENS,
    )


ACTIONS: SearchStrategy[Action] = one_of(
    *(_writes("append", least=1) for _ in range(6)),
    *(_writes("replace", least=0) for _ in range(2)),
    *(_writes("clear", least=0) for _ in range(2)),
    *(builds(Repeat, back=integers(0, 5), revision=sampled_from(["the same", "current"])) for _ in range(3)),
    *(
        builds(Read, key=_KEYS, cursor=sampled_from([None, "before", "after"]), at=integers(0, 5), by=integers(-1, 1))
        for _ in range(3)
    ),
    *(builds(Follow, key=_KEYS, limit=sampled_from([None, 0, 1, 2])) for _ in range(2)),
    *(
        builds(List, prefix=sampled_from(["", "a", "a/", "b", "c"]), order=sampled_from(["key", "recent"]))
        for _ in range(2)
    ),
    builds(Reopen, which=sampled_from(["same", "another"])),
)
