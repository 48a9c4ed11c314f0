"""Data URIs: bytes inside a URI."""

import binascii
from base64 import b64encode
from typing import Final
from urllib.parse import unquote_to_bytes

from chathistory_core.messages.media_types import is_media_type

_BASE64: Final = ";base64"
_NO_MEDIA_TYPE: Final = "text/plain;charset=US-ASCII"
"""What RFC 2397 takes where a data URI names none."""


def in_base64(uri: str) -> str:
    """The data URI with its bytes in base64, as .NET has it; what is no data URI of text is itself."""
    head, comma, data = uri.partition(",")
    media_type = head[5:].strip(" ")
    if head[:5].lower() != "data:" or not comma or media_type.lower().endswith(_BASE64):
        return uri
    if media_type and not is_media_type(media_type):
        return uri
    try:
        encoded = b64encode(unquote_to_bytes(data)).decode()
    except UnicodeEncodeError:  # a lone surrogate: no bytes
        return uri
    return f"{head[:5]}{media_type or _NO_MEDIA_TYPE}{_BASE64},{encoded}"


def is_data_uri(uri: str) -> bool:
    """Whether it is a data URI of a media type (or none) with bytes in base64, padded and without a bit too much."""
    head, comma, data = uri.partition(",")
    media_type = head[5 : -len(_BASE64)]
    if head[:5].lower() != "data:" or not comma or not head.lower().endswith(_BASE64):
        return False
    if media_type and not is_media_type(media_type):
        return False
    try:
        bytes_ = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    left = len(bytes_) % 3
    return len(data) % 4 == 0 and (not left or data.endswith(b64encode(bytes_[-left:]).decode()))
