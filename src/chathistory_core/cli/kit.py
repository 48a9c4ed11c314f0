"""A run of the kit on a store that a URL names, by pytest in this process.

The kit is imported by pytest alone, which rewrites its assertions so that they tell what they found; nothing here may
import it before.
"""

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from chathistory_core.cli.error import CommandError
from chathistory_core.cli.scratch import Opener, Scratch
from chathistory_core.errors import ChatHistoryError

if TYPE_CHECKING:
    from chathistory_core.testing.network import NetworkStore
    from chathistory_core.testing.obligations import Outcome
    from chathistory_core.testing.proxy import Proxy

_MODULE = "chathistory_core.testing.checked"


def run_kit(stores: Scratch, advance: Callable[[], None]) -> tuple[Sequence["Outcome"], Mapping[str, str]]:
    """How the tests ended, and by class of tests why some do not apply; `advance` is called after each.

    Raises:
        CommandError: the tests could not be run.
    """
    run = _Run(stores, advance)
    with tempfile.TemporaryDirectory() as folder, _environment(HYPOTHESIS_STORAGE_DIRECTORY=folder):
        configuration = Path(folder, "pytest.ini")
        configuration.write_text("[pytest]\npython_files = checked.py\npython_classes = Checked\n", "utf-8")
        # nothing of the working directory, and nothing printed
        arguments = ["-c", str(configuration), "--rootdir", folder, f"--basetemp={Path(folder, 'tests')}"]
        arguments += ["--noconftest", "--disable-plugin-autoload", "-s", "-p", "no:terminal", "-p", "no:cacheprovider"]
        status = pytest.main([*arguments, "--pyargs", _MODULE], plugins=[run])
    if status == pytest.ExitCode.INTERRUPTED and not run.trouble:
        raise KeyboardInterrupt
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise CommandError(f"the kit could not be run ({status!r}){': ' if run.trouble else ''}{run.trouble}")
    return list(run.outcomes.values()), run.reasons


class _Run:
    """A plugin of pytest: chooses the tests that apply, gives each an empty store, and takes down how it ended."""

    def __init__(self, stores: Scratch, advance: Callable[[], None]) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.reasons: dict[str, str] = {}
        self.trouble = ""
        self._stores = stores
        self._advance = advance

    @pytest.fixture
    def checked_backend(self) -> Opener:
        return self._stores.fresh()

    @pytest.fixture
    def checked_network(self) -> "NetworkStore":
        from chathistory_core.testing.network import NetworkStore

        opener = self._stores.fresh()
        if opener.server is None:
            raise CommandError("tests of a network are for servers")
        return NetworkStore(opener.server, lambda address: opener.through(address)())

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        from chathistory_core.testing.abilities import sharing

        shared = sharing(self._stores.fresh())
        if shared.reason:
            self.reasons["ProcessTests"] = shared.reason
        if not shared.outlives:
            self.reasons["CrashTests"] = shared.reason or "what a process wrote is gone when it has ended"
        if reason := not_proxied(self._stores.fresh()):
            self.reasons["NetworkTests"] = reason
        # which tests apply is found out here, and not for the classes of a tester to say
        left_out = {*self.reasons, "AbilityTests"}
        items[:] = [item for item in items if _suite(item) not in left_out]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.trouble = str(report.longrepr)

    def pytest_internalerror(self, excrepr: object) -> None:
        self.trouble = str(excrepr)

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        from chathistory_core.testing.obligations import Outcome

        if call.excinfo is not None and call.excinfo.errisinstance(pytest.skip.Exception):
            return
        if call.excinfo is not None:
            where = call.excinfo.traceback[-1]
            message = " ".join(call.excinfo.exconly(tryshort=True).split())
            told = f"{message} ({Path(where.path).name}:{where.lineno + 1})"
            self.outcomes[item.nodeid] = Outcome(_suite(item), item.name, passed=False, message=told)
        elif call.when == "call":
            self.outcomes[item.nodeid] = Outcome(_suite(item), item.name, passed=True)

    def pytest_runtest_logfinish(self) -> None:
        self._advance()


def _suite(item: pytest.Item) -> str:
    """The class of the kit that has the test, whatever class inherits it."""
    return item.function.__qualname__.partition(".")[0] if isinstance(item, pytest.Function) else ""


def not_proxied(opener: Opener) -> str:
    """Why the tests of a network do not apply: the store is no server that a proxy reaches; else ""."""
    from chathistory_core.testing.proxy import Proxy

    if opener.server is None:
        return "the URL names no server"
    with Proxy(opener.server) as proxy:
        try:
            through = asyncio.run(_passes(opener.through(proxy.address), proxy))
        except ChatHistoryError as error:
            return f"it cannot be reached through a proxy: {error}"
    return "" if through else "its calls do not all pass the server that the URL names"


async def _passes(opener: Opener, proxy: "Proxy") -> bool:
    """Whether calls for any key go through the proxy: those of a cluster go to its other servers."""
    async with opener() as backend:
        for number in range(16):
            before = proxy.traffic.round_trips
            await backend.get(f"through {number}")
            if proxy.traffic.round_trips == before:
                return False
    return True


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    """As long as the block lasts the environment has these variables, and none with options of pytest."""
    kept = dict(os.environ)
    for name in ("PYTEST_ADDOPTS", "PYTEST_PLUGINS"):
        os.environ.pop(name, None)
    os.environ |= variables
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= kept
