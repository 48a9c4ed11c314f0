"""Tokens of the service: who may do what to which keys. Only their SHA-256 is kept.

A slow password hash would bring nothing here: it makes guessing dear where there is little to guess, and a token is 256
random bits, which nobody guesses at any speed. A plain hash keeps each request cheap.
"""

import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Literal, get_args

from chathistory_core import ConfigurationError

Right = Literal["read", "write", "delete", "list", "metrics"]
RIGHTS: tuple[Right, ...] = get_args(Right)

_MARK = "chs_"
"""Begins each token that is made here, so that who finds one in a repository or a log knows what it is."""

_TEXT = re.compile(r"[A-Za-z0-9._~+/-]{32,256}={0,2}")
"""What a bearer token may consist of (RFC 6750), and how long one is that cannot be guessed."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a caller may do who shows the token with this digest."""

    name: str
    """What to call who holds it."""
    digest: bytes = field(repr=False)
    """Its SHA-256."""
    rights: frozenset[Right]
    """Some of `read`, `write`, `delete`, `list` and `metrics`."""
    prefix: str = ""
    """What every key begins with that it may touch."""


class Tokens:
    """The tokens that are in force."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._by_start: dict[bytes, list[Token]] = {}
        for token in tokens:
            self._by_start.setdefault(token.digest[:8], []).append(token)

    def find(self, text: str) -> Token | None:
        """The token that reads so.

        That a digest begins like one that is known may show in the time this takes. It helps nobody: whose digest is
        nearly right has no token that is.
        """
        given = digest_of(text)
        found = None
        for token in self._by_start.get(given[:8], ()):
            if hmac.compare_digest(token.digest, given):
                found = token
        return found


def new_token() -> str:
    """A token that nobody has yet: 256 random bits."""
    return _MARK + token_urlsafe(32)


def digest_of(text: str) -> bytes:
    """What is kept of the token."""
    return sha256(text.encode(errors="surrogateescape")).digest()


def token_of(text: str, name: str, rights: Iterable[Right], prefix: str) -> Token:
    """What is kept of a token that reads so."""
    return Token(name, digest_of(text), frozenset(rights), prefix)


def token_of_everything(text: str, name: str, source: str) -> Token:
    """The token that reads so, with every right to every key.

    Raises:
        ConfigurationError: a token of this kind could be guessed, or no header can carry it; it is not shown.
    """
    if not _TEXT.fullmatch(text):
        raise ConfigurationError(
            f"{source} is no token: 32 to 256 of the characters A-Z a-z 0-9 . _ ~ + / -, at random; "
            "`chathistory service-token` makes one"
        )
    return Token(name, digest_of(text), frozenset(RIGHTS))
