"""A package of ours with something changed in its code, in a folder of its own."""

import importlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import NamedTuple


class Change(NamedTuple):
    """One exact replacement in a file of the package."""

    file: str
    old: str
    new: str


@contextmanager
def changed(package: str, changes: Sequence[Change] = ()) -> Iterator[ModuleType]:
    """The package as it is imported from a changed copy, here and in processes that are spawned while the block lasts.

    What was imported of it before is as it was when the block is left.
    """
    parent, _, name = package.rpartition(".")
    found = sys.path if not parent else importlib.import_module(parent).__path__
    with tempfile.TemporaryDirectory() as folder, _unimported(package), _bytecode_unwritten():
        copy = Path(folder, name)
        shutil.copytree(_source(package), copy, ignore=shutil.ignore_patterns("__pycache__"))
        for change in changes:
            _apply(copy / change.file, change)
        found.insert(0, folder)
        importlib.invalidate_caches()
        try:
            yield importlib.import_module(package)
        finally:
            found.remove(folder)


def _source(package: str) -> Path:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{package!r} is not installed: run `python3 dev.py sync`")
    return Path(spec.origin).parent


def _apply(path: Path, change: Change) -> None:
    text = path.read_text("utf-8")
    count = text.count(change.old)
    if count != 1:
        raise LookupError(f"{change.file} has this {count} times and not once, so name what it has now: {change.old!r}")
    path.write_text(text.replace(change.old, change.new), "utf-8")


@contextmanager
def _unimported(package: str) -> Iterator[None]:
    kept = _forget(package)
    try:
        yield
    finally:
        _forget(package)
        sys.modules.update(kept)


def _forget(package: str) -> dict[str, ModuleType]:
    names = [name for name in sys.modules if name == package or name.startswith(f"{package}.")]
    return {name: sys.modules.pop(name) for name in names}


@contextmanager
def _bytecode_unwritten() -> Iterator[None]:
    """Two copies of one size and second would share it."""
    kept, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = kept
