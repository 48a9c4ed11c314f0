"""JSON values that nobody can change: dicts and lists that `json`, `pickle` and `copy` take as what they are."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Generic, NoReturn, TypeAlias, TypeVar

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
    if kind is dict:
        return _freeze_dict(value)
    if isinstance(value, Mapping):
        return _freeze_dict({_key(key): item for key, item in value.items()})
    if isinstance(value, (list, tuple)):
        return FrozenList([item if type(item) in _AS_THEY_ARE else _freeze(item) for item in value])
    if isinstance(value, str):
        return str.__str__(value)
    for scalar in (int, float):
        if isinstance(value, scalar):
            return scalar(value)
    raise ValueError(f"{kind.__name__} is no JSON value: convert it first")


def _freeze_dict(value: dict[Any, Any]) -> FrozenDict[str, Any]:
    frozen = FrozenDict(value)
    for key, item in value.items():
        if type(key) is not str:
            return _freeze_dict({_key(key): item for key, item in value.items()})
        if type(item) not in _AS_THEY_ARE:
            dict.__setitem__(frozen, key, _freeze(item))  # nobody else holds it yet
    return frozen


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
