"""Keys of conversations: what is one, and how tenants and users get prefixes of their own."""

from chathistory_core.errors import InvalidKeyError

MAX_KEY_BYTES = 512
"""The longest key or prefix, in UTF-8 bytes."""

MAX_TURN_ID_BYTES = 200
"""The longest turn id, in UTF-8 bytes."""

SEPARATOR = "/"
"""What ends each part of a scope."""


def _check_text(value: str, what: str, most: int) -> str:
    if not isinstance(value, str):
        raise InvalidKeyError(f"a {what} is text, not {type(value).__name__}")
    if not value:
        raise InvalidKeyError(f"a {what} has at least one character")
    if "\0" in value:
        raise InvalidKeyError(f"{what} {_short(value)} holds the character NUL: remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidKeyError(f"{what} {_short(value)} holds a lone surrogate: no UTF-8 can carry it") from None
    if size > most:
        raise InvalidKeyError(f"{what} {_short(value)} has {size} bytes in UTF-8, more than {most}: hash it")
    return value


def _short(value: str) -> str:
    return repr(value) if len(value) <= 40 else f"{value[:40]!r}…"


def check_key(key: str) -> str:
    """The key itself, where every backend can keep it.

    A key is 1 to 512 UTF-8 bytes of any Unicode but NUL and lone surrogates; no character has a meaning.

    Raises:
        InvalidKeyError: it is not.
    """
    return _check_text(key, "key", MAX_KEY_BYTES)


def check_turn_id(turn_id: str) -> str:
    """The turn id itself, where it is 1 to 200 UTF-8 bytes of a key's alphabet, else `InvalidKeyError`."""
    return _check_text(turn_id, "turn id", MAX_TURN_ID_BYTES)


def check_prefix(prefix: str) -> str:
    """The prefix itself, where it is empty or could begin a key, else `InvalidKeyError`."""
    return prefix if prefix == "" else _check_text(prefix, "prefix", MAX_KEY_BYTES)


def escape(part: str) -> str:
    """The part with `%` and `/` percent-encoded, so that no separator is in it."""
    return part.replace("%", "%25").replace(SEPARATOR, "%2F")


def unescape(part: str) -> str:
    """What `escape` was given."""
    return part.replace("%2F", SEPARATOR).replace("%25", "%")


def scope(*parts: str) -> str:
    """The key prefix of a tenant, a user of it, and so on: every part escaped and ended by `/`.

    Injective, and no scope's prefix covers a neighbour's: `scope("ann")` is no prefix of `scope("anna")`.

    Raises:
        InvalidKeyError: a part is empty, or the whole is no prefix of a key.
    """
    return check_prefix("".join(escape(_check_text(part, "scope part", MAX_KEY_BYTES)) + SEPARATOR for part in parts))


def prefix_end(prefix: str) -> str | None:
    """The first text, by code point, behind every text that begins with `prefix`; None where nothing is behind.

    For range conditions `prefix <= key < end`, which an index serves and a pattern does not.
    """
    while prefix:
        point = ord(prefix[-1]) + 1
        if point <= 0x10FFFF:
            return prefix[:-1] + chr(0xE000 if point == 0xD800 else point)  # no text holds a surrogate
        prefix = prefix[:-1]
    return None
