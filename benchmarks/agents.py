"""Turns of an agent of Microsoft Agent Framework, with our history provider and with the framework's own."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence

from benchmarks.contestants import ROOT, uv
from benchmarks.results import Ratio

_SIDES: Sequence[tuple[str, str, str, Mapping[int, float]]] = (
    ("memory", "ours, memory", "framework, in memory", {}),
    ("SQLite NORMAL", "ours, SQLite, synchronous=NORMAL", "framework, file", {10: 1.0, 1_000: 0.5}),
    ("Redis", "ours, Valkey", "framework, Redis", {10: 1.0, 1_000: 0.5}),
)
"""Where ours keeps the conversation, and with what it is compared; at most how many times as long it may take."""

_PROVIDERS = {
    "framework, in memory": "InMemoryHistoryProvider",
    "framework, file": "FileHistoryProvider, which waits for no disk",
    "framework, Redis": "RedisHistoryProvider",
}


def measure(*, quick: bool) -> Sequence[Ratio]:
    """Ours against the framework's, sample by sample; of a quick run what this environment has."""
    script = ["benchmarks/agent_framework_turns.py", "--json", *(["--quick"] if quick else [])]
    run = [uv(), "run", "--quiet", "--no-sync", "--with", "agent-framework-redis", "python"]
    done = subprocess.run(
        [*([sys.executable] if quick else run), *script], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    found: Mapping[str, Mapping[str, Sequence[float]]] = json.loads(done.stdout)
    return [
        Ratio(
            name=f"{store}: a turn at {int(length):,} stored messages",
            against=_PROVIDERS[other],
            at_most=goals.get(int(length)),
            unit="us",
            taken=list(zip(samples[ours], samples[other], strict=True)),
        )
        for length, samples in found.items()
        for store, ours, other, goals in _SIDES
        if other in samples
    ]
