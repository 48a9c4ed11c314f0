"""Rewriting what is stored, on purpose: the view of a reducer in its place, and before that a copy."""

from chathistory_core.compaction.compaction import Compacted, compact

__all__ = ["Compacted", "compact"]
