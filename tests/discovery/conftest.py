import importlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import pytest

import chathistory_core.discovery  # noqa: F401 - imported before a test takes distributions away
from chathistory_core.opening import open_backend

TOY = """
from chathistory_core.plugin import BackendOptions, BackendPlugin, Duration, hookimpl
from chathistory_memory import MemoryBackend

class ToyBackend(MemoryBackend):
    def __init__(self, options):
        super().__init__()
        self.options = options

class ToyOptions(BackendOptions):
    url: str = "toy://"
    ttl: Duration | None = None
    size: int = 1

    def open(self):
        return ToyBackend(self)

@hookimpl
def chathistory_backend():
    return BackendPlugin(contract=1, options=ToyOptions)
"""

Install = Callable[..., Path]
_numbers = count()


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("CHATHISTORY_")]:
        monkeypatch.delenv(variable)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """No distribution is found; what was imported stays."""
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not list(Path(folder).glob("*.dist-info"))])


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Install]:
    """Installs a distribution of one module in a folder of its own, in front of those installed before; that folder."""
    modules = []

    def install(
        distribution: str,
        source: str = TOY,
        *,
        names: Sequence[str] = ("toy",),
        version: str = "1.0",
        target: str = "{module}",
        metadata: str | None = None,
    ) -> Path:
        number = next(_numbers)
        module = f"toy_plugin_{number}"
        folder = tmp_path / f"site-{number}"
        information = folder / f"{distribution}-{version}.dist-info"
        information.mkdir(parents=True)
        (folder / f"{module}.py").write_text(source, "utf-8")
        if metadata is None:
            metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        (information / "METADATA").write_text(metadata, "utf-8")
        lines = [f"{name} = {target.format(module=module)}" for name in names]
        (information / "entry_points.txt").write_text("\n".join(["[chathistory.backends]", *lines, ""]), "utf-8")
        monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
        importlib.invalidate_caches()
        modules.append(module)
        return folder

    yield install
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture
def toy(install: Install) -> Callable[..., dict[str, object]]:
    """Installs the backend `toy`; calling it opens one like `open_backend` and tells the options that it got."""
    install("toy-backend")

    def opened_with(backend: str | None = None, **options: object) -> dict[str, object]:
        made = open_backend(backend, options=options or None)
        found: dict[str, object] = vars(made)["options"].model_dump(exclude_unset=True)
        return found

    return opened_with
