"""`chathistory backends`: which stores there are to choose from, and which one is chosen."""

import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from typing import NamedTuple

from chathistory_core.cli.options import Json
from chathistory_core.cli.text import json_line, printable, put_line
from chathistory_core.discovery import InstalledBackend, install_command, installed_backends, load_options
from chathistory_core.errors import BackendLoadError, ConfigurationError
from chathistory_core.settings import Settings, read_settings

_DISTRIBUTION = "chathistory-core"


class _Row(NamedTuple):
    name: str
    distribution: str
    version: str | None
    state: str
    """`ok`, `broken`, `ambiguous` or `missing`."""
    configured: bool = False
    problem: str | None = None
    install: str | None = None


def backends(*, json: Json = False) -> None:
    """List the installed backends, those that can be installed, and which one is configured."""
    try:
        configured: Settings | ConfigurationError = read_settings()
    except ConfigurationError as error:
        configured = error
    rows = [*_installed(configured.name if isinstance(configured, Settings) else None), *_missing()]
    if json:
        for row in rows:
            json_line(row._asdict())
    else:
        _put_table(rows)
    if isinstance(configured, ConfigurationError):
        raise configured
    if not json:
        known = "" if any(row.configured for row in rows) else ", which is not installed"
        put_line(f"\nConfigured: {configured.name}, by {printable(configured.source)}{known}.")


def _installed(configured: str | None) -> Iterator[_Row]:
    installed = installed_backends()
    claims = Counter(backend.name for backend in installed)
    for backend in installed:
        problem = "another distribution offers the same name" if claims[backend.name] > 1 else None
        state = "ok" if problem is None else "ambiguous"
        if problem is None and (problem := _flaw(backend)) is not None:
            state = "broken"
        here = backend.name == configured
        yield _Row(backend.name, backend.distribution, backend.version, state, here, problem)


def _flaw(backend: InstalledBackend) -> str | None:
    """What is wrong with its plugin module; the driver is not imported."""
    try:
        load_options(backend)
    except BackendLoadError as error:
        return " ".join(str(error).split())
    return None


def _missing() -> Iterator[_Row]:
    """The first-party backends that are not installed: those of the extras."""
    own = distribution(_DISTRIBUTION)
    extras = own.metadata.get_all("Provides-Extra") or []
    wanted = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0] for requirement in own.requires or ()}
    for extra in extras:
        name = f"chathistory-{extra}"
        if name in wanted and not _is_installed(name):
            yield _Row(extra, name, None, "missing", install=install_command(extra))


def _is_installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True


def _put_table(rows: list[_Row]) -> None:
    cells = [("NAME", "DISTRIBUTION", "STATE")]
    for row in rows:
        offered_by = f"{row.distribution} {row.version or ''}".rstrip()
        more = row.problem or row.install
        cells.append((row.name, offered_by, f"{row.state}: {more}" if more else row.state))
    widths = [max(len(printable(line[column])) for line in cells) for column in (0, 1)]
    for name, offered_by, state in cells:
        put_line(f"{printable(name):<{widths[0]}}  {printable(offered_by):<{widths[1]}}  {printable(state)}")
