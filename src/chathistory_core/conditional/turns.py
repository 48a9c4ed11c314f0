"""Which writes were committed, and what a turn got: kept in the log of a conversation's life.

Each write stages two blocks there beside its records: one named after its turn and its own revision, and one named
after the revision of the head that it read. The second, whatever becomes of the write, proves to everyone that the
write before was committed. So a staged block counts if its revision is the head's or is proved, and a turn is
remembered as long as its conversation lives.
"""

import json
from hashlib import blake2b
from typing import NamedTuple

from chathistory_core.conditional.blocks import bound, names
from chathistory_core.conditional.state import State
from chathistory_core.conditional.store import Block, ConditionalStore
from chathistory_core.records import Written


class Turn(NamedTuple):
    """A write as it was staged."""

    revision: str
    digest: str
    epoch: str
    first: int
    length: int

    @property
    def written(self) -> Written:
        """What its caller got, where it was committed."""
        return Written(self.revision, self.epoch, self.first)


def note(life: str, turn_id: str, turn: Turn) -> Block:
    """The block that a turn is found by."""
    return Block(life, f"{_prefix(turn_id)}{turn.revision}", json.dumps(turn[1:]).encode())


def proof(life: str, revision: str) -> Block:
    """The block that proves a revision, for who has read it in a head."""
    return Block(life, f"c{revision}", b"1")


async def is_committed(store: ConditionalStore, state: State, revision: str) -> bool:
    """Whether the revision is the state's or one before it."""
    name = proof(state.life, revision).name
    return revision == state.revision or bool(await store.scan(state.life, name, f"{name}."))


async def find(store: ConditionalStore, state: State, turn_id: str) -> tuple[Turn | None, list[Turn]]:
    """The turn, where it is stored; and what other tries to write it have left."""
    prefix = _prefix(turn_id)
    stored, leftovers = None, []
    for block in await store.scan(state.life, prefix, f"{prefix}~"):
        turn = Turn(block.name.removeprefix(prefix), *json.loads(block.body))
        if stored is None and await is_committed(store, state, turn.revision):
            stored = turn
        else:
            leftovers.append(turn)
    return stored, leftovers


async def sweep(store: ConditionalStore, life: str, turn_id: str, leftovers: list[Turn]) -> None:
    """Remove what was staged by tries that can no longer be committed, because the head that they read has changed."""
    for turn in leftovers:
        staged = await store.scan(turn.epoch, bound(turn.first), bound(turn.first + turn.length))
        await store.drop(turn.epoch, names(staged, turn.revision))
        await store.drop(life, [note(life, turn_id, turn).name])


def _prefix(turn_id: str) -> str:
    return f"t{blake2b(turn_id.encode(), digest_size=16).hexdigest()}."
