"""What is measured in processes of their own: memory, and start-up."""

import asyncio
import compileall
import subprocess
import sys

import pydantic

import chathistory_core
import chathistory_memory
from benchmarks.contestants import Worker
from benchmarks.floors.bench import Bench
from benchmarks.floors.row import Row
from benchmarks.ours import SQLITE
from benchmarks.rounds import Sample

_IMPORT = "import time; begun = time.perf_counter(); {}; print(time.perf_counter() - begun)"


async def peak_memory(bench: Bench) -> tuple[Sample, Sample]:
    """By how much a process grows at most that reads a long conversation, and the bytes of its payloads."""
    folder = bench.folder / "memory"
    folder.mkdir()
    with Worker(SQLITE) as worker:
        worker.ask("open", folder=str(folder))
        for conversation, messages in (("long", bench.sizes.long), ("short", 8)):
            worker.ask("fill", conversation=conversation, turns=messages // 4)
        worker.ask("close")
    payloads = sum(len(record.payload) for record in await bench.records(bench.sizes.long))

    async def grown() -> float:
        with Worker(SQLITE) as worker:
            worker.ask("open", folder=str(folder))
            worker.ask("load", conversation="short", times=1)  # makes what is made once
            return float(worker.ask("memory", conversation="long")["bytes"])

    async def stored() -> float:
        return float(payloads)

    return grown, stored


async def imports(bench: Bench) -> tuple[Sample, Sample]:  # noqa: ARG001 - it needs no store
    """Core and the memory backend, and pydantic, each in a new process with compiled modules."""

    def importing(statement: str) -> Sample:
        async def measured() -> float:
            command = [sys.executable, "-c", _IMPORT.format(statement)]
            ended = await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, text=True)
            return float(ended.stdout)

        return measured

    for package in (chathistory_core, chathistory_memory, pydantic):
        compileall.compile_dir(package.__path__[0], quiet=1)
    return (
        importing("import chathistory_core, chathistory_memory"),
        importing("from pydantic import BaseModel, TypeAdapter"),
    )


ROWS = (
    Row("SQLite: peak memory of a 10,000-message read", "its JSON", 8.5, peak_memory, rounds=3, unit="MB"),
    Row("import of core and the memory backend", "import of pydantic", 2.3, imports, rounds=11),
)
