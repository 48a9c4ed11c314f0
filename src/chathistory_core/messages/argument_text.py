"""The object in the text that a client wrote arguments as."""

import json
import re
from typing import Final, NoReturn

from chathistory_core.messages.frozen import FrozenDict, Json, freeze_object
from chathistory_core.messages.late import NO_STACK


def object_in(text: str) -> FrozenDict[str, Json] | None:
    """The object, frozen; None where the text holds none.

    Raises:
        RecursionError: too little of the stack is left; None would say that there is no object.
    """
    try:
        return _read(text)
    except RecursionError:
        if _is_deep(text):
            return None
        raise


def _read(text: str) -> FrozenDict[str, Json] | None:
    try:
        value = json.loads(text, parse_constant=_no_json)
    except ValueError:
        return None
    try:
        return freeze_object(value) if isinstance(value, dict) else None
    except ValueError:  # of what came from JSON it refuses nothing else
        raise RecursionError(NO_STACK) from None


def _no_json(literal: str) -> NoReturn:
    raise ValueError(f"{literal} is no JSON")


def _is_deep(text: str) -> bool:
    level = 0
    for token in _STRINGS_AND_BRACKETS.finditer(text):
        level += _STEPS.get(token[0], 0)
        if level > _MOST_LEVELS:
            return True
    return False


_STRINGS_AND_BRACKETS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}

_MOST_LEVELS: Final = 200
"""How deep an object is read for certain; a deeper one counts as none where the stack has no room for it."""
