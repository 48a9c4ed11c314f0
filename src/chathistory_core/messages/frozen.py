"""JSON values that nobody can change: dicts and lists that `json`, `pickle` and `copy` take as what they are."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Generic, NoReturn, TypeAlias, TypeVar, cast

from pydantic import PlainValidator, ValidationInfo

from chathistory_core.messages.source import ATTRIBUTION_KEY, SourceAttribution

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A JSON value. Tuples count as arrays."""

CHANGED = "a message's values cannot be changed: make a changed copy with model_copy(update=…)"
"""What is said to who tries."""

K = TypeVar("K")
V = TypeVar("V")


class _Frozen:
    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(CHANGED)


class FrozenDict(_Frozen, dict[K, V], Generic[K, V]):
    """A dict that refuses change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _Frozen._refuse  # noqa: SLF001 - every way to change a dict

    def __hash__(self) -> int:  # type: ignore[override] # it never changes
        return hash(frozenset(self))

    def __copy__(self) -> "FrozenDict[K, V]":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenDict[K, V]":
        return self

    def __reduce__(self) -> tuple[type, tuple[dict[K, V]]]:
        return type(self), (dict(self),)


class FrozenList(_Frozen, list[V], Generic[V]):
    """A list that refuses change."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = _Frozen._refuse  # noqa: SLF001 - every way to change a list
    insert = pop = remove = reverse = sort = _Frozen._refuse  # noqa: SLF001 - as above

    def __hash__(self) -> int:  # type: ignore[override] # it never changes
        return hash((FrozenList, len(self)))

    def __copy__(self) -> "FrozenList[V]":
        return self

    def __deepcopy__(self, memo: object) -> "FrozenList[V]":
        return self

    def __reduce__(self) -> tuple[type, tuple[list[V]]]:
        return type(self), (list(self),)


def freeze(value: object) -> Json:
    """The JSON value as one that nobody can change; one that is frozen already is itself.

    Raises:
        ValueError: it is no JSON value, or one nested deeper than Python goes.
    """
    try:
        frozen: Json = _freeze(value)
        return frozen
    except RecursionError:
        raise ValueError("the value is nested too deep") from None


def _freeze(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, Mapping):
        return FrozenDict({_key(key): _freeze(item) for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([_freeze(item) for item in value])
    if isinstance(value, str):
        return str.__str__(value)
    for scalar in (int, float):
        if isinstance(value, scalar):
            return scalar(value)
    raise ValueError(f"{kind.__name__} is no JSON value: convert it first")


def _key(key: object) -> str:
    if type(key) is str:
        return key
    if isinstance(key, str):
        return str.__str__(key)
    raise ValueError(f"a key of {type(key).__name__} is no JSON: keys are text")


_AS_THEY_ARE: Final = frozenset({type(None), bool, int, float, str, FrozenDict, FrozenList})


def freeze_object(value: object) -> "FrozenDict[str, Json]":
    """The JSON object, frozen; `ValueError` for anything else."""
    frozen = freeze(value)
    if isinstance(frozen, FrozenDict):
        return frozen
    raise ValueError(f"a JSON object is wanted, not {type(value).__name__}")


def _from_json(value: object, info: ValidationInfo) -> Json:
    if info.mode == "json":
        _finite(value)
    return freeze(value)


def _object_from_json(value: object, info: ValidationInfo) -> "FrozenDict[str, Json]":
    if info.mode == "json":
        _finite(value)
    return freeze_object(value)


def _finite(value: object) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN and infinity are no JSON")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _finite(item)


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
    JsonValue = Annotated[Any, PlainValidator(_from_json)]
    JsonObject = Annotated[Any, PlainValidator(_object_from_json)]
    Properties = Annotated[Any, PlainValidator(_properties)]
    MarkedProperties = Annotated[Any, PlainValidator(_marked_properties)]
