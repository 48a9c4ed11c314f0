"""Who is let in: the check of each request's `Authorization`, before its body is read."""

import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from chathistory_core import ConfigurationError
from chathistory_http.service.rate import Rate
from chathistory_http.service.token_file import read_tokens
from chathistory_http.service.tokens import Right, Token, Tokens
from chathistory_http.wire.problems import ProblemError

_log = logging.getLogger("chathistory.service")

_LOOK_AGAIN = 1.0
"""Seconds between two looks at whether the tokens' file has changed."""

_REFUSED_PER_SECOND = 20.0
"""How many requests without a token that is known an address is told so, before it is told to wait."""


class Access:
    """What callers may do: by their tokens, or everything to everyone where `anonymous`.

    What a token may not touch is refused in the same words whether it is there or not.
    """

    def __init__(
        self,
        tokens: Iterable[Token] = (),
        *,
        file: Path | None = None,
        anonymous: bool = False,
        rate: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`file` holds more tokens and is read again when it changes; `rate` is requests a second and caller.

        Raises:
            ConfigurationError: the file cannot be read; or there are tokens for which nobody is asked.
        """
        self._fixed = list(tokens)
        if anonymous and (self._fixed or file is not None):
            raise ConfigurationError("tokens are given, and everyone is let in without one: decide for one of them")
        self._file = file
        self._anonymous = anonymous
        self._clock = clock
        self._rate = None if rate is None else Rate(rate, clock=clock)
        self._refused = Rate(_REFUSED_PER_SECOND, clock=clock)
        self._tokens = Tokens(self._fixed)
        self._seen: tuple[int, int, int] | None = None
        self._looked = clock()
        if file is not None:
            self._seen = _state(file)
            self._read(file)

    def check(
        self, authorization: str | None, right: Right | None, key: str | None = None, *, address: str | None = None
    ) -> None:
        """Let the request pass.

        `authorization` is the header's value; where the header came more than once, all joined by `", "`. `right` None
        asks for any token that is known. `key` is the conversation that is asked for. `address` is the caller's, as
        `request.client.host` says.

        Raises:
            ProblemError: unauthorized, forbidden or too-many-requests, with the headers that belong to it.
        """
        token = self._caller(authorization, address)
        if token is None:
            return
        if right is not None and right not in token.rights:
            raise _forbidden(f"the token has no right to {right}")
        if key is not None and not key.startswith(token.prefix):
            raise _forbidden("the token has no right to this key")

    def visible_prefix(self, authorization: str | None, prefix: str) -> str | None:
        """What those keys begin with that begin with `prefix` and that the caller may see; None where there are none.

        Asked after `check`.
        """
        token = self._token(authorization)
        if token is None:
            return prefix if self._anonymous else None
        if prefix.startswith(token.prefix):
            return prefix
        return token.prefix if token.prefix.startswith(prefix) else None

    def reload(self) -> None:
        """Read the tokens' file again; where it cannot be read the tokens stay as they are, and an error is logged."""
        if self._file is None:
            return
        self._seen = _state(self._file)
        try:
            self._read(self._file)
        except ConfigurationError as error:
            _log.error("the tokens stay as they were: %s", error)

    def _read(self, file: Path) -> None:
        self._tokens = Tokens([*self._fixed, *read_tokens(file)])

    def _caller(self, authorization: str | None, address: str | None) -> Token | None:
        """The token of who calls, None where everyone may; whoever comes too often is refused."""
        if self._anonymous:
            _take(self._rate, address)
            return None
        token = self._token(authorization)
        if token is not None:
            _take(self._rate, token.name)
            return token
        _take(self._refused, address)
        if authorization is None:
            raise _unauthorized("a token is needed: send `Authorization: Bearer TOKEN`", "Bearer")
        raise _unauthorized("the token is not known here", 'Bearer error="invalid_token"')

    def _token(self, authorization: str | None) -> Token | None:
        scheme, _, text = (authorization or "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        self._look_again()
        return self._tokens.find(text.strip(" "))

    def _look_again(self) -> None:
        now = self._clock()
        if self._file is None or now - self._looked < _LOOK_AGAIN:
            return
        self._looked = now
        if _state(self._file) != self._seen:
            self.reload()


def _take(rate: Rate | None, caller: str | None) -> None:
    if rate is not None and (seconds := rate.take(caller or "")):
        headers = {"Retry-After": str(seconds)}
        raise ProblemError("too-many-requests", "the caller sends too many: wait and send it again", headers=headers)


def _unauthorized(detail: str, challenge: str) -> ProblemError:
    return ProblemError("unauthorized", detail, headers={"WWW-Authenticate": challenge})


def _forbidden(detail: str) -> ProblemError:
    return ProblemError("forbidden", detail, headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'})


def _state(file: Path) -> tuple[int, int, int] | None:
    """What changes when the file does."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
