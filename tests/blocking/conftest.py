"""The stores to run on."""

from pathlib import Path

import pytest


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new store, which a second backend of this process can open too."""
    return (
        f"memory://{tmp_path}" if request.param == "memory" else f"sqlite:///{tmp_path / 'chat.db'}?synchronous=NORMAL"
    )
