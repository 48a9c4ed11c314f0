"""The guide to writing a backend, followed to the letter."""

import asyncio
import importlib
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import indent

import pytest

from chathistory_core.opening import open_backend
from chathistory_core.testing import BackendTests

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-backend.md"

BACKEND = """
from chathistory_memory import MemoryBackend

class ShelfBackend(MemoryBackend):
    def __init__(self, shelf, *, ttl=None):
        super().__init__(ttl=ttl)
        self.shelf, self.ttl = shelf, ttl
"""


@pytest.fixture
def blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every block of code of the guide, whose backend is installed."""
    found: list[str] = re.findall(r"^```(?:python|toml)\n(.*?)^```", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    plugin, manifest = found[:2]
    project = tomllib.loads(manifest)["project"]
    package = tmp_path / "chathistory_shelf"
    package.mkdir()
    (package / "plugin.py").write_text(plugin, "utf-8")
    (package / "backend.py").write_text(BACKEND, "utf-8")
    information = tmp_path / f"chathistory_shelf-{project['version']}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n", "utf-8")
    [(group, names)] = project["entry-points"].items()
    lines = [f"[{group}]", *(f"{name} = {module}" for name, module in names.items())]
    (information / "entry_points.txt").write_text("\n".join(lines), "utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield found
    for module in [name for name in sys.modules if name.startswith("chathistory_shelf")]:
        del sys.modules[module]


def test_the_guide_s_plugin_opens_its_backend_by_url(blocks: list[str]) -> None:
    assert vars(open_backend("shelf://attic?ttl=30d"))["shelf"] == "attic"
    assert vars(open_backend("shelf", options={"url": "shelf://attic", "ttl": "30d"}))["ttl"].days == 30


def test_the_guide_s_plugin_imports_its_driver_only_when_it_is_opened(blocks: list[str]) -> None:
    importlib.import_module("chathistory_shelf.plugin")
    assert "chathistory_shelf.backend" not in sys.modules


def test_the_guide_s_example_runs(blocks: list[str]) -> None:
    names: dict[str, object] = {"open_backend": open_backend}
    body = indent(blocks[2].replace("...", "return backend"), "    ")
    exec("async def example():\n" + body, names)
    example = names["example"]
    assert callable(example)
    assert vars(asyncio.run(example()))["shelf"] == "attic"


def test_the_guide_s_tests_are_the_kit_s(blocks: list[str]) -> None:
    names: dict[str, object] = {}
    exec(blocks[3], names)
    tests = names["TestShelf"]
    assert isinstance(tests, type)
    assert issubclass(tests, BackendTests)
