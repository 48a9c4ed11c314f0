"""The summaries that a conversation keeps of itself, as notes among its records.

A summary stands for the conversation's first so many records. Its note stands behind them, so who reads back from the
newest record meets the note first, and reads no further than to the end of what it stands for. The note counts records
from the first and names no position, so it holds in a copy too; it knows the digest of the last record that it stands
for, so it is not believed where something else stands there.

Of several the one that stands for most records counts. It is kept under a turn id that is a hash of what it stands for:
of two processes that make one at once, one keeps it, and the other is told which.
"""

from chathistory_core.summaries.found import Found, found_in, read_back
from chathistory_core.summaries.kept import KeptSummaries
from chathistory_core.summaries.summary import Summary, is_summary_note

__all__ = ["Found", "KeptSummaries", "Summary", "found_in", "is_summary_note", "read_back"]
