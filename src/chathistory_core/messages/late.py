"""Values of JSON that were checked when a message was read, and are made when somebody asks for them.

The results of tools are most of what there is to make of a history, and the fewest readers look at them.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

from pydantic import GetCoreSchemaHandler, PlainValidator, ValidationInfo
from pydantic_core import CoreSchema, core_schema

from chathistory_core.messages.frozen import CHANGED, Json
from chathistory_core.messages.json_members import Made, value_from_json

NO_STACK = "a value nested so deep cannot be made here: too little is left of Python's stack"
"""What is said where making a value late takes more levels than there are."""


class Late:
    """Stands for a value that is not made yet; equals, hashes and is pickled as the value."""

    __slots__ = ("_make", "_of")

    def __init__(self, make: Callable[[Any], Any], of: object) -> None:
        self._make = make
        self._of = of

    @property
    def value(self) -> Any:
        """The value, made now."""
        return self._make(self._of)

    def __eq__(self, other: object) -> bool:
        return bool(self.value == other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return made, (self.value,)


def made(value: Any) -> Any:
    """The value, made now where it stands for one."""
    return value.value if type(value) is Late else value


class LateMember:
    """A member that may hold a `Late`: whoever reads it finds the value, which stays there."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, content: object | None, owner: type) -> Any:
        if content is None or self._name not in content.__dict__:
            raise AttributeError(self._name)  # as every member of a model's class
        value = content.__dict__[self._name]
        if type(value) is Late:
            value = content.__dict__[self._name] = value.value
        return value

    def __set__(self, content: object, value: object) -> NoReturn:
        raise TypeError(CHANGED)


Model = TypeVar("Model", bound=type)


def late(*names: str) -> Callable[[Model], Model]:
    """Of a model that serializes as `made_first` does: these members may hold a `Late`."""

    def with_late_members(model: Model) -> Model:
        for name in names:
            setattr(model, name, LateMember(name))
        return model

    return with_late_members


def made_first(self, handler):  # type: ignore[no-untyped-def] # pydantic would say in the JSON schema what it returns
    """A model's serializer in `wrap` mode: pydantic finds made what was late, `exclude_none` too."""
    for name, value in self.__dict__.items():
        if type(value) is Late:
            getattr(self, name)
    return handler(self)


class PutOff(Made):
    """A context that puts off the objects, and arrays of objects, among those values; None stands in their places."""

    __slots__ = ("make_all",)
    make_all: Callable[[], Sequence[Json]] | None
    """Makes all of the values, in the same order; None once that is done."""

    def put_off(self) -> Late:
        """The next value, which is made with the others when somebody asks for one of them."""
        self.append(None)
        return Late(self._made, len(self) - 1)

    def _made(self, place: int) -> Json:
        make_all = self.make_all
        if make_all is not None:
            self[:] = make_all()
            self.make_all = None
        return self[place]


class _MayBeLate:
    """Annotates what is read from JSON: with `PutOff` as context and `strict=True`, an object or array is a `Late`.

    The models are strict by themselves, so `strict` tells readers apart where asking the context would cost everybody.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        now = handler(source)
        an_object = core_schema.typed_dict_schema({}, extra_behavior="ignore")  # makes nothing of the members
        objects = core_schema.list_schema(an_object, fail_fast=True)
        checked = core_schema.union_schema([an_object, objects], mode="left_to_right")
        later = core_schema.with_info_after_validator_function(_put_off, checked)
        either = core_schema.union_schema([later, now], mode="left_to_right")
        return core_schema.json_or_python_schema(
            json_schema=core_schema.lax_or_strict_schema(now, either, strict=False),
            python_schema=now,
        )

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, _handler: object) -> dict[str, Any]:
        return {}


def _put_off(_checked: object, info: ValidationInfo) -> Late:
    if not isinstance(info.context, PutOff):
        raise ValueError("nobody puts it off")  # noqa: TRY004 - a choice of a union
    return info.context.put_off()


def _now(value: object, info: ValidationInfo) -> Json:
    frozen = value_from_json(value, info)
    if info.mode == "json" and isinstance(info.context, Made):
        info.context.append(frozen)
    return frozen


if TYPE_CHECKING:
    LateJson = Json
else:
    LateJson = Annotated[Any, PlainValidator(_now), _MayBeLate()]
