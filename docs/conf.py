# ruff: noqa: ARG001, D103, FBT001, INP001 - Sphinx loads this file and calls the functions that it is given
"""How Sphinx makes the pages: of the Markdown here and the docstrings in the code; nothing is fetched."""

import functools
import operator
import re
from importlib.metadata import version as version_of
from inspect import Signature
from types import FunctionType, UnionType
from typing import Annotated, Union, get_args, get_origin

from pydantic import BaseModel
from sphinx.application import Sphinx

from chathistory_core import MessageFilter
from chathistory_core.messages import AIContent, Content, Json, KnownContent

project = "chathistory"
version = release = version_of("chathistory-core")
html_title = f"chathistory {version}"
html_theme = "furo"
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 3

default_role = "py:obj"  # a name between backticks is a link where it is documented, and code where it is not
add_module_names = False
python_use_unqualified_type_names = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"

nitpick_ignore_regex = [
    ("py:obj", ".*"),  # words in docstrings that are no documented name
    ("py:.*", r"(?!chathistory).*"),  # other libraries: their pages are not fetched
    ("py:class", r".*\.([ST]|Value)"),  # type variables, and the base of all parts of a message
]
suppress_warnings = ["ref.python"]  # of words such as `type` that name a member of many classes


def stand_in(name: str, module: str) -> type:
    return type(name, (), {"__module__": module})


CONTENT = stand_in("Content", "chathistory_core.messages")
ALIASES = [
    (Json, stand_in("Json", "chathistory_core.messages")),
    (Content, CONTENT),
    (KnownContent | AIContent, CONTENT),
    (MessageFilter, stand_in("MessageFilter", "chathistory_core")),
]
"""Types that are shown by their name and not by what it stands for."""


def readable(annotation: object) -> object:
    """The type without what only pydantic reads, and with names for what has one."""
    for alias, shown in ALIASES:
        if annotation == alias:
            return shown
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return readable(arguments[0])
    if origin in {Union, UnionType}:
        plain: object = functools.reduce(operator.or_, map(readable, flattened(annotation)))
        return next((shown for alias, shown in ALIASES if plain == alias), plain)
    if isinstance(origin, type) and arguments and not isinstance(arguments[0], list):
        return origin[tuple(map(readable, arguments))]  # type: ignore[index] # it was made in this way
    return annotation


def flattened(union: object) -> list[object]:
    """The parts of a union, where those of an alias in it stand for the alias."""
    parts = list(get_args(union))
    for alias, _ in ALIASES:
        inside = get_args(alias) if get_origin(alias) in {Union, UnionType} else ()
        if inside and all(part in parts for part in inside):
            parts = [alias, *(part for part in parts if part not in inside)]
    return parts


def make_readable(app: Sphinx, value: object, bound: bool) -> None:
    found = getattr(value, "__annotations__", {})
    for name, annotation in found.items():
        found[name] = readable(annotation)
    signature = getattr(value, "__signature__", None)  # Sphinx's, which has the defaults as they were written
    if isinstance(value, FunctionType) and isinstance(signature, Signature):
        shown = [one.replace(annotation=readable(one.annotation)) for one in signature.parameters.values()]
        value.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined] # any function takes it


def shorten_signature(
    app: Sphinx, what: str, name: str, value: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Without what nobody writes: a model's fields stand below with their words, a protocol is not called."""
    if isinstance(value, type) and (issubclass(value, BaseModel) or getattr(value, "_is_protocol", False)):
        make_readable(app, value, False)  # noqa: FBT003
        return "", None
    return signature, returned


def skip_model_internals(
    app: Sphinx, what: str, name: str, value: object, skip: object, options: object
) -> bool | None:
    return True if name in {"model_config", "model_copy", "model_post_init"} else None


RAISED = re.compile(r" {4}([\w., ]+): (.*)")


def mark_up(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make fields of the block `Raises:`, and nothing of what Python says of a tuple's fields."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    if "Raises:" in lines:
        start = lines.index("Raises:")
        lines[start:] = ["", *(RAISED.sub(r":raises \1: \2", line) for line in lines[start + 1 :])]


def setup(app: Sphinx) -> None:
    app.connect("autodoc-before-process-signature", make_readable)
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip_model_internals)
    app.connect("autodoc-process-docstring", mark_up)
