"""What another process does to a store in the tests: `worker.py URL NAME TURNS`, once a line came in."""

import asyncio
import sys

from chathistory_core import Record
from chathistory_redis import RedisOptions


async def write(url: str, name: str, turns: int) -> None:
    """32 writers, each of so many turns of 1 to 4 records: "writer turn index size"."""
    async with RedisOptions(url=url).open() as backend:

        async def writer(number: int) -> None:
            for turn in range(turns):
                size = (number + turn) % 4 + 1
                texts = [f"{name}{number} {turn} {index} {size}" for index in range(size)]
                batch = [Record(text.encode(), "text") for text in texts]
                await backend.append("k", batch, turn_id=f"{name}{number} {turn}")

        await asyncio.gather(*(writer(number) for number in range(32)))


if __name__ == "__main__":
    print("ready", flush=True)
    sys.stdin.readline()
    asyncio.run(write(sys.argv[1], sys.argv[2], int(sys.argv[3])))
