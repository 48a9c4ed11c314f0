"""The names under which this distribution offers its backend."""

from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pydantic import field_validator
from pydantic_core import PydanticCustomError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration, hookimpl

if TYPE_CHECKING:
    from chathistory_memory.store import MemoryStore

_SCHEME = "memory://"

_shared: "dict[str, MemoryStore]" = {}
_lock = Lock()


class MemoryOptions(BackendOptions):
    """`memory://` is a store of its own; `memory://name` is one store for the whole process, kept until it ends."""

    url: str = _SCHEME
    ttl: Duration | None = None
    """How long a conversation stays after its last write; for ever without it."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        if not url.startswith(_SCHEME):
            raise PydanticCustomError("memory_url", "should be memory:// or memory://name")
        return url

    def open(self) -> ChatHistoryBackend:
        """A backend over a new store, or over the one of this name."""
        from chathistory_memory.backend import MemoryBackend
        from chathistory_memory.store import MemoryStore

        name = unquote(self.url.removeprefix(_SCHEME))
        if not name:
            return MemoryBackend(ttl=self.ttl)
        with _lock:
            store = _shared.setdefault(name, MemoryStore())
        return MemoryBackend(store, ttl=self.ttl)


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The memory backend."""
    return BackendPlugin(contract=1, options=MemoryOptions)
