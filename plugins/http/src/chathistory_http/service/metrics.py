"""What the service counts, for Prometheus."""

import os
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """Counts requests and their time, in a registry of its own; several workers add up what they count."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._seconds = Histogram(
            "chathistory_request_seconds",
            "Seconds from a request's head to the end of its answer.",
            ("path", "method", "status"),
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._failures = Counter(
            "chathistory_store_unavailable",
            "Requests that the store could not answer.",
            registry=self._registry,
        )
        self._children: dict[tuple[str, str, int], Histogram] = {}

    def note(self, path: str, method: str, status: int, seconds: float) -> None:
        """One request was answered."""
        where = (path, method, status)
        child = self._children.get(where)
        if child is None:
            child = self._children[where] = self._seconds.labels(path, method, str(status))
        child.observe(seconds)
        if status == 503:
            self._failures.inc()

    def text(self) -> bytes:
        """All of it, as Prometheus reads it."""
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # it has no types
        return generate_latest(registry)
