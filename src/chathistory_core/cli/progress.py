"""How far long work is: a bar on stderr where people look on, nothing anywhere else."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, *, total: int | None = None, beside_output: bool = False) -> Iterator[Callable[[], None]]:
    """A bar as long as the block lasts; what is yielded moves it on by one. Without a `total` it only shows life.

    `beside_output`: the block writes to stdout, so that there is a bar only where stdout leads elsewhere.
    """
    if not sys.stderr.isatty() or (beside_output and sys.stdout.isatty()):
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
