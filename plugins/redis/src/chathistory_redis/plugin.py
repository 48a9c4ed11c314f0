"""The names under which this distribution offers its backend."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import PydanticCustomError

from chathistory_core import ChatHistoryBackend
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration, hookimpl
from chathistory_redis.layout import MAX_SHARDS, NAMESPACE

if TYPE_CHECKING:
    from chathistory_redis.server import Client

_SCHEMES = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss", "unix": "unix"}
_RETRIES = 2
_CONNECT_SECONDS = 5.0


class RedisOptions(BackendOptions):
    """`redis://host:6379/0`, `rediss://…` (TLS), the same as `valkey` and `valkeys`, or `unix:///path/of/socket`."""

    url: str
    """Where the server is; never by default, or `rediss` alone would go without TLS."""
    username: str | None = None
    password: SecretStr | None = None
    db: int | None = Field(default=None, ge=0)
    """The number of the database, where the URL does not end with it."""
    cluster: bool = False
    """The URL leads to a node of a cluster."""
    namespace: str = Field(default="chathistory", pattern=f"^{NAMESPACE}$")
    """What the names of all keys begin with."""
    ttl: Duration | None = None
    """How long a conversation stays after its last write; for ever without it."""
    shards: int | None = Field(default=None, ge=1, le=MAX_SHARDS)
    """Into how many parts a new store is divided, so that a cluster can spread it; 1 where it is not given."""
    allow_eviction: bool = False
    """Take a server that removes keys when it is full."""
    max_connections: int = Field(default=32, ge=1, le=1_000)
    """To each server; calls beyond wait for one."""
    timeout: Duration = timedelta(seconds=30)
    """How long to wait for an answer."""

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        try:
            parts = urlsplit(url)
            has_port = parts.port is not None
        except ValueError:
            raise PydanticCustomError("redis_url", "should have a port that is a number up to 65535") from None
        if parts.scheme == "unix" and not has_port and not parts.hostname and len(parts.path) > 1:
            return url
        if parts.scheme in _SCHEMES and parts.scheme != "unix" and re.fullmatch(r"/?|/[0-9]{1,9}", parts.path):
            return url
        raise PydanticCustomError("redis_url", "should be redis://host:port/database or unix:///path/of/socket")

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        parts = urlsplit(self.url)
        in_url = {"username": parts.username, "password": parts.password}
        if parts.scheme != "unix":
            in_url["db"] = parts.path.strip("/")
        twice = [name for name, value in in_url.items() if value and getattr(self, name) is not None]
        if twice:
            raise PydanticCustomError("redis_twice", f"{twice[0]} stands in the URL and beside it: give it once")
        if self.cluster and (parts.scheme == "unix" or self.db or in_url["db"] not in ("", "0", None)):
            raise PydanticCustomError("redis_cluster", "a cluster has no Unix socket and only database 0")
        return self

    def open(self) -> ChatHistoryBackend:
        """A backend that makes a client of its own at each opening."""
        from chathistory_redis.backend import RedisBackend

        return RedisBackend(
            self._client,
            namespace=self.namespace,
            ttl=self.ttl,
            shards=self.shards,
            allow_eviction=self.allow_eviction,
            timeout=None if self.cluster else self.timeout,
        )

    def _client(self) -> "Client":
        from redis.asyncio import Redis, RedisCluster
        from redis.asyncio.retry import Retry
        from redis.backoff import ExponentialWithJitterBackoff
        from redis.exceptions import ConnectionError  # noqa: A004 - the driver's name

        scheme, _, rest = self.url.partition("://")
        seconds = self.timeout.total_seconds()
        beside: dict[str, Any] = {"username": self.username, "db": self.db}
        if self.password is not None:
            beside["password"] = self.password.get_secret_value()
        client: type[Redis | RedisCluster] = RedisCluster if self.cluster else Redis
        return client.from_url(
            f"{_SCHEMES[scheme]}://{rest}",
            **{name: value for name, value in beside.items() if value is not None},
            protocol=2,  # the third version brings nothing here, and more to say at each connection
            max_connections=self.max_connections,
            socket_timeout=seconds if self.cluster else None,  # where None, the backend looks after it: that costs less
            socket_connect_timeout=min(seconds, _CONNECT_SECONDS),
            retry=Retry(
                ExponentialWithJitterBackoff(base=0.02, cap=0.5), _RETRIES, supported_errors=(ConnectionError,)
            ),
        )


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The Redis and Valkey backend."""
    return BackendPlugin(contract=1, options=RedisOptions)
