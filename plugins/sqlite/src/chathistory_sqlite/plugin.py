"""The name under which this distribution offers its backend."""

from datetime import timedelta
from typing import Literal
from urllib.parse import unquote

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration, hookimpl

_PREFIX = "sqlite:///"


class SQLiteOptions(BackendOptions):
    """One file: `sqlite:///relative.db`, `sqlite:////absolute.db`, `sqlite:///C:/absolute.db`."""

    url: str
    """Three slashes and the path, percent-encoded; a relative path begins in the working directory."""
    ttl: Duration | None = None
    """How long a conversation stays after its last write; for ever without it."""
    synchronous: Literal["FULL", "NORMAL"] = "FULL"
    """Whether an acknowledged write survives a power cut (FULL) or only the death of the process (NORMAL, faster)."""
    busy_timeout: Duration = timedelta(seconds=30)
    """How long a write waits for another process that is writing."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        path = unquote(url.removeprefix(_PREFIX))
        if path in {":memory:", "sqlite://", "sqlite:"}:
            raise PydanticCustomError("sqlite_url", "names no file: use memory:// for what no other process shall see")
        if not url.startswith(_PREFIX) or not path or "\0" in path:
            raise PydanticCustomError(
                "sqlite_url", "should be sqlite:///relative.db, sqlite:////absolute.db or sqlite:///C:/absolute.db"
            )
        return url

    def open(self) -> ChatHistoryBackend:
        """A backend on the file; the file is made when it is opened."""
        from chathistory_sqlite.backend import SQLiteBackend

        return SQLiteBackend.from_path(
            unquote(self.url.removeprefix(_PREFIX)),
            ttl=self.ttl,
            synchronous=self.synchronous,
            busy_timeout=self.busy_timeout,
        )


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The SQLite backend."""
    return BackendPlugin(contract=1, options=SQLiteOptions)
