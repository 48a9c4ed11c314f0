"""Times as text."""

import re
from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Final, TypeAlias

from pydantic import AwareDatetime, BeforeValidator

_TIME: Final = (
    r"(\d{4})-(\d\d)-(\d\d)"
    r"(?:[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d*))?)?"
    r" ?([Zz]|[+-]\d\d(?::?\d\d(?::?\d\d(?:\.\d{1,6})?)?)?)?)?"
)


def read_time(text: str) -> datetime:
    """The time of an ISO 8601 text, cut off at the microsecond; without an offset it is UTC.

    Raises:
        ValueError: it is no time.
    """
    found = re.fullmatch(_TIME, text, re.ASCII)  # compiled when it is asked for: every import would wait for it
    if found is None:
        raise ValueError("no time of ISO 8601")
    year, month, day, hour, minute, second, fraction, zone = found.groups()
    microsecond = int((fraction or "")[:6].ljust(6, "0"))
    return datetime(
        int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), microsecond, _zone(zone)
    )


def _zone(text: str | None) -> timezone:
    if text is None or text in "Zz":
        return UTC
    whole, _, fraction = text[1:].replace(":", "").partition(".")
    hours, minutes, seconds = (int(whole[start : start + 2] or 0) for start in (0, 2, 4))
    if minutes > 59 or seconds > 59:
        raise ValueError("no offset of a time")
    offset = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=int(fraction.ljust(6, "0")))
    return timezone(-offset if text[0] == "-" else offset)


def _given(value: object) -> object:
    return read_time(value) if isinstance(value, str) else value


Time: TypeAlias = Annotated[AwareDatetime, BeforeValidator(_given)]
"""A time with an offset, or its text."""
