"""Which URIs .NET's `Uri.TryCreate` takes: a part of them that is safe to tell, with all that are common."""

import re
from typing import Final

_LABEL: Final = "[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_PORT: Final = r"(?::(?:\d{1,4}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5]))?"
_REST: Final = r"(?:[/?#][^\\]*)?"

_URI: Final = (
    rf"(?!(?:file|net\.\w*|vsmacros):)[a-z][a-z0-9+.-]+://{_LABEL}(?:\.{_LABEL}){{0,30}}{_PORT}{_REST}"
    rf"|file:///(?:(?:[a-z]:/)?[^\\/:][^\\:]*)?"
    rf"|(?:urn|data|about|blob|tel|cid|sandbox):[^\\/][^\\]*|sandbox:/[^\\/][^\\]*"
    rf"|/(?:[^/\\][^\\]*)?|[?#][^\\]*"
    rf"|(?![a-z]\|)(?:[^\s\x00-\x20:/?#\\][^:/?#\\]*{_REST})?"
)
_FLAGS: Final = re.DOTALL | re.IGNORECASE | re.ASCII


def is_uri(text: str) -> bool:
    """Whether .NET takes it as a URI, absolute or relative; of odd ones it may take more."""
    return re.fullmatch(_URI, text, _FLAGS) is not None  # compiled when it is asked for: every import would wait for it
