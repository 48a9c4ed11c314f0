"""JSON values and their text."""

import json
from collections.abc import Mapping

from pydantic_core import from_json

Member = str | int | Mapping[str, "Member"]
"""A value in an object that is small and written here."""


def text_of(value: object) -> bytes:
    """The value as JSON without blanks."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def value_in(body: bytes) -> object:
    """The value of a JSON text.

    Raises:
        ValueError: it is none; the text of the error shows none of it.
    """
    try:
        value: object = from_json(body, allow_inf_nan=False)
    except ValueError:
        raise ValueError("no JSON") from None
    return value
