"""Times: UTC, always with six digits behind the second."""

from datetime import UTC, datetime


def write_time(time: datetime) -> str:
    """As in `2026-11-30T18:39:22.123456Z`."""
    return f"{time.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def read_time(text: str) -> datetime:
    """The time in UTC.

    Raises:
        ValueError: it is no time, or one without an offset.
    """
    try:
        time = datetime.fromisoformat(text)
        if time.tzinfo is not None:
            return time.astimezone(UTC)
    except (ValueError, OverflowError):
        pass
    raise ValueError("no time with an offset")
