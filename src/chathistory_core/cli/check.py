"""`chathistory check`: whether a store keeps its promises, under faults too, and what its operations cost."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Exit, Option

from chathistory_core.cli.options import Json, Options
from chathistory_core.cli.progress import progress
from chathistory_core.cli.scratch import Opener, Scratch, parse_options
from chathistory_core.cli.text import json_line, printable, put_heading, put_line
from chathistory_core.errors import ChatHistoryError

if TYPE_CHECKING:
    from chathistory_core.testing.costs import Cost
    from chathistory_core.testing.obligations import Line, Outcome

_MILLION = 1_000_000


def check(
    url: Annotated[str, Argument(metavar="URL", show_default=False, help="The store, such as sqlite:///chat.db.")],
    *,
    scratch: Annotated[
        bool, Option("--scratch", show_default=False, help="The store may be emptied, whatever is in it.")
    ] = False,
    million: Annotated[
        bool, Option("--million", show_default=False, help="Measure a conversation of 1,000,000 records too.")
    ] = False,
    option: Options = None,
    json: Json = False,
) -> None:
    """Test a store with the kit that every backend passes, with faults, and measure what its operations cost.

    Of SQLite and memory new stores are tested. Any other store has to be empty, and is emptied.
    """
    from chathistory_core.cli.kit import run_kit  # which needs pytest

    with Scratch(Opener(url, parse_options(option)), may_empty=scratch) as stores:
        with progress("Testing") as advance:
            outcomes, reasons = run_kit(stores, advance)
        costs, trouble = _measured(stores, million=million)
    from chathistory_core.testing import obligations

    kept, tried = obligations.obligations(outcomes), obligations.trials(outcomes, reasons)
    failures = [outcome for outcome in outcomes if not outcome.passed]
    level = obligations.level(kept, tried)
    if json:
        json_line(
            {
                "tested": stores.where,
                "level": level,
                "passed": not failures,
                "obligations": [line._asdict() for line in kept],
                "trials": [line._asdict() for line in tried],
                "failures": [{"test": each.test, "message": each.message} for each in failures],
                "costs": [cost._asdict() for cost in costs],
                "costs_missing": trouble,
            }
        )
    else:
        _put(stores.where, level, [*kept, *tried], failures, costs, trouble)
    if failures:
        raise Exit(1)


def _put(
    where: str,
    level: str,
    lines: Sequence["Line"],
    failures: Sequence["Outcome"],
    costs: Sequence["Cost"],
    trouble: str,
) -> None:
    from chathistory_core.testing.costs import table

    put_heading(f"Tested on {where}")
    width = max(len(line.name) for line in lines)
    for line in lines:
        result = "kept" if line.kept else f"{len(line.failed)} failed" if line.failed else f"not tested: {line.reason}"
        put_line(f"{line.name:<{width}}  {line.tests:>4}  {printable(result)}")
    for failure in failures:
        put_line(f"\n{failure.test}\n    {printable(failure.message)}")
    put_line()
    put_line(f"The costs could not be measured: {printable(trouble)}" if trouble else table(costs))
    put_line()
    put_heading(f"The store {level}.")


def _measured(stores: Scratch, *, million: bool) -> tuple[Sequence["Cost"], str]:
    """The costs, or why there are none."""
    from chathistory_core.cli.kit import not_proxied
    from chathistory_core.testing.costs import LENGTHS, measure
    from chathistory_core.testing.proxy import Proxy

    lengths = (*LENGTHS, _MILLION) if million else LENGTHS
    opener = stores.fresh()
    try:
        with progress("Measuring"), ExitStack() as stack:
            if opener.server is None or not_proxied(opener):
                return measure(opener, lengths=lengths), ""
            proxy = stack.enter_context(Proxy(opener.server))
            return measure(opener.through(proxy.address), lengths=lengths, proxy=proxy), ""
    except ChatHistoryError as error:
        return [], str(error)
