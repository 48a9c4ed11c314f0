"""Members that the model does not know, by JSON pointer (RFC 6901)."""

from collections.abc import Mapping
from functools import cache

from pydantic import AliasPath, BaseModel
from pydantic.fields import FieldInfo

from chathistory_core.messages.frozen import Json
from chathistory_core.messages.value import json_name

_DEPTHS = {"annotations": (3, 5), "details": (2,)}
"""How long a pointer is that leads to a member of a known object inside a content."""


def pointer(*names: str | int) -> str:
    """The JSON pointer through these members and elements."""
    return "".join("/" + str(name).replace("~", "~0").replace("/", "~1") for name in names)


def steps(pointer: str) -> list[str]:
    """The members and elements of a JSON pointer; none of what is no pointer."""
    if not pointer.startswith("/"):
        return []
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer[1:].split("/")]


def folded(name: str) -> str:
    """The name as .NET compares the names of members: without the case of ASCII letters."""
    return name.lower() if name.isascii() else name


@cache
def member_names(kind: type[BaseModel]) -> frozenset[str]:
    """The names of a model's members in JSON, folded."""
    spelled = ((name, field) for name, field in kind.model_fields.items() if not _is_unspelled(field))
    names = {folded(json_name(name, field)) for name, field in spelled}
    return frozenset(names | {"$type"} if "annotations" in names else names)


def _is_unspelled(field: FieldInfo) -> bool:
    """Whether no JSON spells the member: it is read from Python alone."""
    return isinstance(field.validation_alias, AliasPath)


def is_extra(kind: type[BaseModel], key: str) -> bool:
    """Whether it is the pointer of a member that the model does not have."""
    path = steps(key)
    if not path:
        return False
    if folded(path[0]) in member_names(kind):
        return len(path) in _DEPTHS.get(path[0], ())
    return len(path) == 1


def check_extra(kind: type[BaseModel], extra: Mapping[str, Json]) -> Mapping[str, Json]:
    """The members themselves; `ValueError` where a key is no pointer, or one of a member that the model has."""
    if not all(is_extra(kind, key) for key in extra):
        raise ValueError("`extra` is by JSON pointer, and no place for a member that the model has")
    return extra
