"""Members of messages that hold JSON, as pydantic reads them: frozen, and with no number that JSON has not."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import PlainValidator, ValidationInfo

from chathistory_core.messages.frozen import FrozenDict, FrozenList, Json, freeze, freeze_object
from chathistory_core.messages.source import ATTRIBUTION_KEY, SourceAttribution


class Made(list[Json]):
    """A context of `validate_json`, for what was read before: gets the values of late members, in order of reading."""

    __slots__ = ()


def value_from_json(value: object, info: ValidationInfo) -> Json:
    """The JSON value, frozen."""
    frozen = freeze(value)
    if info.mode == "json" and type(info.context) is not Made:
        _finite(frozen)
    return frozen


def _object_from_json(value: object, info: ValidationInfo) -> FrozenDict[str, Json]:
    frozen = freeze_object(value)
    if info.mode == "json":
        _finite(frozen)
    return frozen


def _finite(value: object) -> None:
    """`ValueError` where a number of what a parser made, frozen, is none of JSON."""
    if type(value) is float and not math.isfinite(value):
        raise ValueError("NaN and infinity are no JSON")
    for item in value.values() if type(value) is FrozenDict else value if type(value) is FrozenList else ():
        if type(item) in _LOOKED_INTO:
            _finite(item)


_LOOKED_INTO: Final = frozenset({FrozenDict, FrozenList, float})


def _properties(value: object, info: ValidationInfo) -> "FrozenDict[str, Json]":
    if info.mode == "json" and isinstance(value, dict) and any(key.startswith(RESERVED) for key in value):
        raise ValueError(f"keys that begin with {RESERVED!r} are the format's own: read it with `chat_message.load`")
    return _object_from_json(value, info)


def _marked_properties(value: object, info: ValidationInfo) -> "FrozenDict[str, Any]":
    mark = value.get(ATTRIBUTION_KEY) if isinstance(value, Mapping) else None
    if not isinstance(mark, SourceAttribution):
        return _properties(value, info)
    unmarked = freeze_object({**cast("Mapping[str, Json]", value), ATTRIBUTION_KEY: None})
    return FrozenDict({**unmarked, ATTRIBUTION_KEY: mark})


RESERVED: Final = "chathistory."
"""How the keys begin under which a format keeps what its JSON has no place for."""

if TYPE_CHECKING:
    JsonValue = Json
    JsonObject = Mapping[str, Json]
    Properties = Mapping[str, Json]
    MarkedProperties = Mapping[str, Json]
else:  # pydantic gets the validator alone: it would look into a recursive type
    JsonValue = Annotated[Any, PlainValidator(value_from_json)]
    JsonObject = Annotated[Any, PlainValidator(_object_from_json)]
    Properties = Annotated[Any, PlainValidator(_properties)]
    MarkedProperties = Annotated[Any, PlainValidator(_marked_properties)]
