"""What other processes do to a database in the tests: `worker.py ROLE PATH ARGUMENT`, once a line came in."""

import asyncio
import random
import sys

from chathistory_core import Record, new_turn_id
from chathistory_sqlite import SQLiteBackend


def records(*texts: str) -> list[Record]:
    return [Record(text.encode(), "chat-message") for text in texts]


async def write(path: str, name: str) -> None:
    """32 writers of 5 turns each, of 1 to 4 records: "writer turn index size"."""
    async with SQLiteBackend.from_path(path, synchronous="NORMAL") as backend:

        async def writer(number: int) -> None:
            for turn in range(5):
                size = (number + turn) % 4 + 1
                texts = [f"{name}{number} {turn} {index} {size}" for index in range(size)]
                await backend.append("k", records(*texts), turn_id=f"{name}{number} {turn}")

        await asyncio.gather(*(writer(number) for number in range(32)))


async def acknowledge(path: str, name: str) -> None:
    """Append turns of three records for ever, four at once, and print the id of each that is acknowledged."""
    async with SQLiteBackend.from_path(path) as backend:

        async def writer(number: int) -> None:
            for turn in range(10_000):
                turn_id = f"{name} {number} {turn}"
                await backend.append("k", records(*(f"{turn_id} {index}" for index in range(3))), turn_id=turn_id)
                print(turn_id, flush=True)

        await asyncio.gather(*(writer(number) for number in range(4)))


async def change(path: str, seed: str) -> None:
    """Append, replace and clear; a record is "epoch place", and the last one "end"."""
    chosen = random.Random(seed)
    async with SQLiteBackend.from_path(path, synchronous="NORMAL") as backend:
        epoch = place = 0
        for _ in range(600):
            kind = chosen.choice(["append"] * 12 + ["replace", "clear"])
            size = chosen.randint(1, 4)
            if kind == "append":
                texts = [f"{epoch} {place + index}" for index in range(size)]
                await backend.append("k", records(*texts), turn_id=new_turn_id())
                place += size
                continue
            epoch, place = epoch + 1, 0
            if kind == "replace":
                texts = [f"{epoch} {index}" for index in range(size)]
                await backend.replace("k", records(*texts), turn_id=new_turn_id())
                place = size
            else:
                await backend.clear("k")
        await backend.append("k", records("end"), turn_id=new_turn_id())


async def open_each(paths: str, name: str) -> None:
    """Open one new file after the other and append to it."""
    for path in paths.split("\n"):
        async with SQLiteBackend.from_path(path, synchronous="NORMAL") as backend:
            await backend.append("k", records(name), turn_id=name)


if __name__ == "__main__":
    role, first, second = sys.argv[1:]
    print("ready", flush=True)
    sys.stdin.readline()
    roles = {"write": write, "acknowledge": acknowledge, "change": change, "open": open_each}
    asyncio.run(roles[role](first, second))
