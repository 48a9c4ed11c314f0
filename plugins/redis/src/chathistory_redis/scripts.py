"""The scripts that run in the server: each operation is one, so nobody sees or leaves half of it."""

from hashlib import sha1
from importlib.resources import files
from typing import NamedTuple


class Script(NamedTuple):
    """A script and the name under which a server knows it once it has run there."""

    text: bytes
    sha: str


def _script(*parts: str) -> Script:
    folder = files(__package__) / "lua"
    text = b"\n".join((folder / f"{part}.lua").read_bytes() for part in parts)
    return Script(text, sha1(text, usedforsecurity=False).hexdigest())


STORE = _script("store")
"""Note how a new store is laid out, and tell how this one is."""

WRITE = _script("common", "conversation", "write")
"""Append or replace."""

READ = _script("common", "read")
"""A page of a conversation's records, with its head."""

CLEAR = _script("common", "conversation", "clear")

PAGE = _script("common", "page")
"""A page of a shard's heads."""

SWEEP = _script("common", "conversation", "sweep")
"""Take some of what expired out of a shard's index."""

ALL = (STORE, WRITE, READ, CLEAR, PAGE, SWEEP)
