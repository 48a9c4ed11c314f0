"""Text in URLs and headers: its UTF-8, percent-encoded."""

import re
from typing import Final
from urllib.parse import quote, unquote_to_bytes

_BAD_ESCAPE: Final = re.compile(rb"%(?![0-9A-Fa-f]{2})")


def encode(text: str, *, safe: str = "") -> str:
    """The text with all but letters, digits, `-._~` and `safe` percent-encoded."""
    return text if text.isascii() and text.isalnum() else quote(text, safe=safe)


def decode(raw: bytes | str) -> str:
    """The text that was encoded.

    Raises:
        ValueError: a `%` begins no escape, or what is escaped is not UTF-8.
    """
    data = raw.encode("latin-1") if isinstance(raw, str) else raw
    if b"%" in data:
        if _BAD_ESCAPE.search(data):
            raise ValueError("a `%` is not followed by two hexadecimal digits")
        data = unquote_to_bytes(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("what is percent-encoded is not UTF-8") from None
