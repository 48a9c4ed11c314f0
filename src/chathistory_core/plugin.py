"""The whole extension API: how a distribution offers a backend under a name.

A distribution names a light module in its entry points, once for each name or URL scheme that it serves::

    [project.entry-points."chathistory.backends"]
    redis = "chathistory_redis.plugin"
    rediss = "chathistory_redis.plugin"

and the module says with what the backend is opened::

    class RedisOptions(BackendOptions):
        url: str
        ttl: Duration | None = None

        def open(self) -> ChatHistoryBackend:
            from chathistory_redis.backend import RedisBackend  # the driver, imported here and not before

            return RedisBackend.from_url(self.url, ttl=self.ttl)


    @hookimpl
    def chathistory_backend() -> BackendPlugin:
        return BackendPlugin(contract=1, options=RedisOptions)
"""

import re
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, NoReturn
from urllib.parse import unquote

from pluggy import HookimplMarker, HookspecMarker
from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic_core import PydanticCustomError

from chathistory_core.backend import ChatHistoryBackend

ENTRY_POINT_GROUP = "chathistory.backends"
"""Where a distribution lists its backends; each name is lower-case and is the scheme of the backend's URLs."""

CONTRACT = 1
"""The version of everything on this page and of the backend protocol."""

hookspec = HookspecMarker("chathistory")
hookimpl = HookimplMarker("chathistory")


class BackendOptions(BaseModel):
    """What a user may set, by name, in a URL's query or in a configuration file; and what is made of it.

    A backend that has URLs declares `url: str` and gets the URL without its query, scheme in lower case, otherwise as
    it was written (percent-encoded). Options from a URL or the environment are text; pydantic reads it. An error shows
    the option's name and what its validator says, never the value: a validator's message must not repeat it either. A
    secret beside the URL is a `pydantic.SecretStr`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    @abstractmethod
    def open(self) -> ChatHistoryBackend:
        """The backend, not yet opened: no I/O. Imports the driver; the module that defines the options does not."""

    @field_validator("url", check_fields=False)
    @classmethod
    def _check_url_alone(cls, url: str) -> str:
        if re.search("[?#]", url):
            raise PydanticCustomError(
                "url_query", "has no query here: give options beside it, and write ? as %3F and # as %23"
            )
        try:
            unquote(url, errors="strict")
        except UnicodeDecodeError:
            raise PydanticCustomError("url_encoding", "is not percent-encoded UTF-8") from None
        return url

    if not TYPE_CHECKING:  # a type checker knows from `frozen` what cannot be set

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise TypeError("options cannot be changed: make new ones")  # pydantic's own error shows the value

    def __repr_args__(self) -> Iterable[tuple[str | None, object]]:
        for name, value in super().__repr_args__():
            yield name, _Verbatim(re.sub(r"(?s)://.*@", "://***@", repr(value)))


class _Verbatim(str):
    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class BackendPlugin:
    """A backend as a plugin offers it."""

    contract: int
    """The version of this page that the plugin was written for: a number, not `CONTRACT`."""
    options: type[BackendOptions]


@hookspec
def chathistory_backend() -> BackendPlugin:  # type: ignore[empty-body]  # a specification has no body
    """The backend that this module offers."""


_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST = timedelta(days=36_525)  # a century: a date can still be that far ahead


def _read_duration(value: object, read: ValidatorFunctionWrapHandler) -> timedelta:
    if isinstance(value, str) and (match := re.fullmatch(r"([0-9]{1,10})([smhdw])", value)):
        value = int(match[1]) * _SECONDS[match[2]]
    try:
        found: timedelta | None = None if isinstance(value, bool) else read(value)
    except ValidationError:
        found = None
    if found is None or not timedelta(0) < found <= _LONGEST:
        raise PydanticCustomError(
            "duration", "should be a number with s, m, h, d or w (90s, 30d) or ISO 8601 (P30D), up to 100 years"
        )
    return found


Duration = Annotated[timedelta, WrapValidator(_read_duration)]
"""A positive `timedelta`, read from `30d`, `12h`, `15m`, `90s`, `2w`, from ISO 8601, or from a number of seconds."""
