"""The same histories and backends for people without asyncio: every call returns when it is done.

All calls of a process run on one event loop, in a thread that the first of them starts. They may come from any number
of threads, also from one that runs a loop of its own, which then stands still meanwhile. A call from the loop's own
thread, as from a codec or a filter, would wait for itself and raises `BackendStateError`; so does an object that a
parent process opened.

Ctrl-C, or any exception that a signal's handler raises, ends a read at once. A write is waited for first, for at most
`save_timeout` seconds; a second Ctrl-C leaves at once. Either way a write is whole or absent.
"""

from chathistory_core.blocking.backend import BlockingBackend, erase, iter_records, open_backend, read_on
from chathistory_core.blocking.history import BlockingProvider, BlockingTurn, open_history
from chathistory_core.stream import BlockingStream

__all__ = [
    "BlockingBackend",
    "BlockingProvider",
    "BlockingStream",
    "BlockingTurn",
    "erase",
    "iter_records",
    "open_backend",
    "open_history",
    "read_on",
]
