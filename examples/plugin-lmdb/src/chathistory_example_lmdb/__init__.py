"""Conversations in LMDB."""

from chathistory_example_lmdb.plugin import LMDBOptions

__all__ = ["LMDBOptions"]
