"""What the running service logs: its own lines and one for each request, to stderr, and never a token."""

import logging
import re
from collections.abc import Mapping

_TOKEN = re.compile(r"chs_[A-Za-z0-9_-]{43}")


class Redacting(logging.Formatter):
    """One line a record; control characters, which might forge another line, as escapes; a token of ours as `chs_…`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(process)d %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the base class names it
        """The line."""
        line = _TOKEN.sub("chs_…", super().formatMessage(record))
        return re.sub(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]", lambda found: repr(found[0])[1:-1], line)


def configuration(level: str) -> Mapping[str, object]:
    """For `logging.config.dictConfig`, in each process of the service."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"line": {"()": f"{Redacting.__module__}.{Redacting.__qualname__}"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {"handlers": ["stderr"], "level": "WARNING"},
        "loggers": {name: {"level": level.upper()} for name in ("chathistory", "uvicorn")},
    }
