"""Where in a JSON text a value stands: values keep their own text, with every number and escape as it was written."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from chathistory_core.cli.error import CommandError

Step: TypeAlias = str | int | None
"""A member's name, an element's number, or None for all of either."""

_STEP = re.compile(
    r"""\[\*\] | \[(?P<number>[0-9]{1,9})\] | \[(?P<quoted>"(?:[^"\\]|\\.)*")\] | \.?(?P<name>[^].["*]+)""", re.VERBOSE
)
_BLANK = re.compile(r"[ \t\r\n]*")
_decoder = json.JSONDecoder()


class Place(NamedTuple):
    """A value's stretch of a text."""

    start: int
    end: int


def parse_path(path: str) -> Sequence[Step]:
    """The steps of a path such as `history`, `[*].traj` or `items["a.b"].messages`.

    Raises:
        ValueError: it is none.
    """
    steps: list[Step] = []
    at = 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or (at == 0 and path.startswith(".")):
            raise ValueError(f'at character {at + 1}: write members as name.name or ["name"], elements as [0] or [*]')
        if found["quoted"] is not None:
            steps.append(str(json.loads(found["quoted"])))
        elif found["number"] is not None:
            steps.append(int(found["number"]))
        else:
            steps.append(found["name"])
        at = found.end()
    return steps


def values(text: str) -> Iterator[Place]:
    """The JSON values of the text: one, or one behind the other as in JSON lines.

    Raises:
        CommandError: there is something else in it; no content is in what it says.
    """
    at = _blank(text, 0)
    while at < len(text):
        end = _end(text, at)
        yield Place(at, end)
        at = _blank(text, end)


def _end(text: str, at: int) -> int:
    try:
        return _decoder.raw_decode(text, at)[1]
    except json.JSONDecodeError as error:
        reason = f"is no JSON: line {error.lineno}, column {error.colno}: {error.msg}"
    except RecursionError:
        reason = "is nested too deep"
    except ValueError:
        reason = "holds a number of more than 4,300 digits"
    raise CommandError(reason)


def find(text: str, place: Place, steps: Sequence[Step]) -> Iterator[Place]:
    """The places, inside this one, to which the steps lead; none where they lead nowhere."""
    if not steps:
        yield place
        return
    step, *rest = steps
    if isinstance(step, str):
        inside = [members(text, place)[step]] if step in members(text, place) else []
    else:
        inside = elements(text, place) or (list(members(text, place).values()) if step is None else [])
        inside = inside if step is None else inside[step : step + 1]
    for one in inside:
        yield from find(text, one, rest)


def elements(text: str, place: Place) -> list[Place]:
    """The elements of the array; none where it is no array."""
    found: list[Place] = []
    if text[place.start] != "[":
        return found
    at = _blank(text, place.start + 1)
    while text[at] != "]":
        found.append(Place(at, _end(text, at)))
        at = _behind_comma(text, found[-1].end)
    return found


def members(text: str, place: Place) -> dict[str, Place]:
    """The members of the object, of each name the last one; none where it is no object."""
    found: dict[str, Place] = {}
    if text[place.start] != "{":
        return found
    at = _blank(text, place.start + 1)
    while text[at] != "}":
        name, end = _decoder.raw_decode(text, at)
        start = _blank(text, _blank(text, end) + 1)
        found[name] = Place(start, _end(text, start))
        at = _behind_comma(text, found[name].end)
    return found


def _behind_comma(text: str, at: int) -> int:
    at = _blank(text, at)
    return _blank(text, at + 1) if text[at] == "," else at


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()
