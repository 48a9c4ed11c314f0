"""JSON text as .NET's relaxed encoder spells it, and the values in it."""

import json
import re
from functools import cache
from typing import Any, Final, NoReturn

_ESCAPED: Final = (
    "[\x7f-\xa0\u1680\u2000-\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ue000-\uf8ff\ufdd0-\ufdef\ufeff\ufffe\uffff\U00010000-\U0010ffff]"
)
"""What is escaped beside the control characters: separators, private use, noncharacters and all beyond U+FFFF.

.NET also escapes what its version of Unicode does not know; that we leave as it is, or the text would depend on ours.
"""

_LOWER_CASE: Final = re.compile(r"\\(?:u00(1[a-f]|0[a-f])|.)")

_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False, separators=(",", ":"))


def text_of(value: object) -> str:
    """The JSON value as text without blanks; dicts keep their order.

    Raises:
        ValueError: it holds NaN, an infinity, a lone surrogate or an integer beyond Python's limit of digits.
    """
    text = _encoder.encode(value)
    if "\\u00" in text:  # Python spells control characters so, in lower case
        text = _LOWER_CASE.sub(lambda found: f"\\u00{found[1].upper()}" if found[1] else found[0], text)
    if text.isascii() and "\x7f" not in text:
        return text
    text.encode()
    return _escaped().sub(_escape, text)


@cache
def _escaped() -> re.Pattern[str]:
    return re.compile(_ESCAPED)  # half a millisecond, which no import is to wait for


def _escape(found: re.Match[str]) -> str:
    point = ord(found[0])
    if point < 0x10000:
        return f"\\u{point:04X}"
    point -= 0x10000
    return f"\\u{0xD800 + (point >> 10):04X}\\u{0xDC00 + (point & 0x3FF):04X}"


def value_in(text: str) -> Any:
    """The JSON value of the text. Of members of one name the last counts.

    Raises:
        ValueError: it is no JSON; the text of the error shows none of it.
    """
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"no JSON at character {error.pos}") from None
    except RecursionError:
        raise ValueError("nested too deep") from None
    except ValueError as error:
        reason = str(error) if str(error) == _CONSTANT else "an integer has more than 4,300 digits"
        raise ValueError(reason) from None


_CONSTANT: Final = "NaN and Infinity are no JSON"


def _refuse(_: str) -> NoReturn:
    raise ValueError(_CONSTANT)


_decoder: Final = json.JSONDecoder(parse_constant=_refuse)


def depth(value: object) -> int:
    """How many arrays and objects are in one another; 0 for a scalar."""
    levels = 0
    level = [value] if isinstance(value, (dict, list)) else []
    while level:
        levels += 1
        level = [
            item
            for each in level
            for item in (each.values() if isinstance(each, dict) else each)
            if type(item) not in _SCALARS and isinstance(item, (dict, list))
        ]
    return levels


_SCALARS: Final = frozenset({type(None), bool, int, float, str})


def flaw(value: object) -> tuple[list[str | int], str] | None:
    """Where the first value stands that `text_of` refuses, and what it is; None where it refuses none."""
    if isinstance(value, dict):
        for key, item in value.items():
            if _flaw_of(key):
                return [], "a lone surrogate"
            if found := flaw(item):
                return [key, *found[0]], found[1]
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if found := flaw(item):
                return [index, *found[0]], found[1]
    elif reason := _flaw_of(value):
        return [], reason
    return None


def _flaw_of(scalar: object) -> str | None:
    try:
        text_of(scalar)
    except UnicodeEncodeError:
        return "a lone surrogate"
    except ValueError:
        return "NaN or infinity" if isinstance(scalar, float) else "an integer of more than 4,300 digits"
    return None
