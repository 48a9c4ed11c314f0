"""What a run was given of a conversation, and what not."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a run was given of a conversation, and what was left out of it. What is stored is as it was."""

    messages: int = 0
    """How many messages the run was given of the conversation."""
    records: int = 0
    """How many records the conversation had."""
    left_out: int = 0
    """How many records before the window nothing was given of; pinned ones are given."""
    summarized: int = 0
    """For how many records, the first ones, a summary was given."""
    untrusted: int = 0
    """How many messages were left out for their role, of those that were read."""
    unpaired: int = 0
    """How many calls and results without a counterpart were left out or answered."""
    reduced: int = 0
    """How many messages fewer the reducer left."""
    error: str | None = None
    """Why nothing could be loaded, as the name of the error's type, where the run began empty instead."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out or changed."""
        return self == View(messages=self.messages, records=self.records)
