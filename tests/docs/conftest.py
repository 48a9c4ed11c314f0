from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports an example anew, in a directory of its own, with SQLite configured."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CHATHISTORY_BACKEND", "sqlite:///chat.db")

    def loaded(name: str) -> ModuleType:
        spec = spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        monkeypatch.setitem(__import__("sys").modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return loaded
