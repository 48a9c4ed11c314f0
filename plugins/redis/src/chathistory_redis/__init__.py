"""Conversations on a Redis or Valkey server."""

from typing import TYPE_CHECKING

from chathistory_redis.plugin import RedisOptions

if TYPE_CHECKING:
    from chathistory_redis.backend import RedisBackend

__all__ = ["RedisBackend", "RedisOptions"]


def __getattr__(name: str) -> object:
    """The backend, with the driver that it imports: whoever only looks for plugins needs neither."""
    if name == "RedisBackend":
        from chathistory_redis.backend import RedisBackend

        return RedisBackend
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
