"""What all parts of a message share: frozen, camelCase in JSON, and a `repr` that shows no content."""

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, TypeVar

from pydantic import VERSION, BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic_core import core_schema

from chathistory_core.messages.frozen import CHANGED

BUILT_WHEN_USED: Final = tuple(map(int, VERSION.split(".")[:2])) >= (2, 14)
"""Whether models are built when they are first used and not when they are imported, which takes longer: pydantic before
2.14 does not keep apart threads that use one for the first time."""


class Value(BaseModel):
    """An immutable part of a message. `model_copy(update=…)` makes a changed copy, and validates it."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
        defer_build=BUILT_WHEN_USED,
    )

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002 - nothing in it can change
        """The value itself, or with `update` a validated copy, which is no longer what any client sent: no origin."""
        if not update:
            return self
        fields = {name: getattr(self, name) for name in self.__pydantic_fields_set__}
        return type(self)(**{**fields, **update})

    @property
    def model_fields_set(self) -> set[str]:
        """As of every model; a copy, for messages have it in common."""
        return {*self.__pydantic_fields_set__}

    if not TYPE_CHECKING:  # a type checker knows from `frozen` what cannot be set

        def __setattr__(self, name: str, value: object) -> NoReturn:
            raise TypeError(CHANGED)  # pydantic's own error shows the value

        def __delattr__(self, name: str) -> NoReturn:
            raise TypeError(CHANGED)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        return self

    def __iter__(self) -> Generator[tuple[str, Any], None, None]:  # noqa: PYI058 - as pydantic declares it
        return ((name, getattr(self, name)) for name in self.__dict__)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *self.__dict__.values()))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    __str__ = __repr__


Typed = TypeVar("Typed", bound=Value)


def share_fields_set(value: Typed) -> Typed:
    """The value, which has the names of the members that were given in common with those of the same members.

    There are few combinations, and a set takes 216 bytes and the garbage collector's time in each of many messages.
    """
    given = value.__pydantic_fields_set__
    object.__setattr__(value, "__pydantic_fields_set__", _FIELDS_SETS.setdefault(frozenset(given), given))
    return value


_FIELDS_SETS: Final = dict[frozenset[str], set[str]]()


def json_name(name: str, field: FieldInfo) -> str:
    """How the member is called in JSON; pydantic may tell that no sooner than the model is built."""
    return field.alias or to_camel(name)


def with_type(value: Typed) -> Typed:
    """What was read with its `$type`; `ValueError` where it took the default."""
    if "type" not in value.__pydantic_fields_set__:
        raise ValueError("`$type` is missing")
    return value


class Given:
    """Takes from Python the values of these classes as they are, and from JSON what the annotated type says."""

    def __init__(self, *classes: type[Value]) -> None:
        self._classes = classes

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        """The two ways, as pydantic wants them."""
        names = " or ".join(one.__name__ for one in self._classes)
        given = core_schema.is_instance_schema(self._classes, cls_repr=names)
        return core_schema.json_or_python_schema(json_schema=handler(source), python_schema=given)
