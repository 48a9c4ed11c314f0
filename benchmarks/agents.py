"""Turns of an agent of Microsoft Agent Framework, with our history provider and with the framework's own."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks.contestants import ROOT, uv
from benchmarks.results import Ratio

_SIDES: Sequence[tuple[str, str, str, str, Mapping[int, float]]] = (
    ("memory", "ours, memory", "framework, in memory", "InMemoryHistoryProvider", {}),
    (
        "SQLite NORMAL",
        "ours, SQLite, synchronous=NORMAL",
        "framework, file",
        "FileHistoryProvider, which waits for no disk",
        {10: 1.0, 1_000: 0.5},
    ),
    ("Redis", "ours, Valkey", "framework, Redis", "RedisHistoryProvider", {10: 1.0, 1_000: 0.5}),
)
"""Where ours keeps the conversation; ours and the framework's in the script's words; what that is; at each length, at
most how many times as long ours may take."""

_UV_RUN = ("run", "--quiet", "--no-sync", "--with", "agent-framework-redis", "python")


def measure(*, quick: bool) -> Sequence[Ratio]:
    """Ours against the framework's, sample by sample; of a quick run what this environment has."""
    script = ("benchmarks/agent_framework_turns.py", "--json")
    command = [sys.executable, *script, "--quick"] if quick else [uv(), *_UV_RUN, *script]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    found: Mapping[str, Mapping[str, Sequence[float]]] = json.loads(done.stdout)
    return [
        Ratio(
            name=f"{store}: a turn at {int(length):,} stored messages",
            against=provider,
            at_most=goals.get(int(length)),
            unit="us",
            taken=list(zip(samples[ours], samples[other], strict=True)),
        )
        for length, samples in found.items()
        for store, ours, other, provider, goals in _SIDES
        if other in samples
    ]
