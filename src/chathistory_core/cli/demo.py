"""`chathistory demo`: the example, as it stands in `examples/article.py`."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Annotated

from typer import Argument

from chathistory_core.cli.program import Command, run

_PACKAGE = Path(__file__).parents[1]
_PLACES = (_PACKAGE / "demo" / "article.py", _PACKAGE.parents[1] / "examples" / "article.py")
"""Where the example is: a wheel carries it inside the package, a checkout has it among the examples."""


def demo(arguments: Annotated[list[str] | None, Argument(metavar="[OPTIONS]")] = None) -> None:
    """Talk with an agent that tells the time, and see its conversations stored, continued and still there."""
    run(_example(), arguments or [], name="chathistory demo")


def _example() -> Command:
    """The example's own command, options and all; loaded when it is asked for, since it needs a model's client."""
    path = next(place for place in _PLACES if place.exists())
    spec = spec_from_file_location("chathistory_core.demo.article", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python module")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    command: Command = module.demo
    return command
