"""A whole backend over a store that can do little more than put a value if nobody else did."""

from chathistory_core.conditional.backend import ConditionalBackend
from chathistory_core.conditional.store import Block, ConditionalStore, Head

__all__ = ["Block", "ConditionalBackend", "ConditionalStore", "Head"]
