"""A message of a conversation."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, AliasPath, Field, field_validator

from chathistory_core.messages.contents import Contents, FunctionResultContent, TextContent
from chathistory_core.messages.extras import check_extra
from chathistory_core.messages.frozen import FrozenDict, Json
from chathistory_core.messages.json_members import JsonObject, MarkedProperties
from chathistory_core.messages.origin import Origin
from chathistory_core.messages.source import ATTRIBUTION_KEY, SourceAttribution
from chathistory_core.messages.times import Time
from chathistory_core.messages.value import Value
from chathistory_core.messages.white_space import is_blank

_MARKED = "_marked"
"""Where a message remembers its last mark, and itself with it: histories are marked anew on every turn."""


class ChatRole(str):
    """A role: keeps its case and compares without it."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.lower())


class _Roles(dict[str, ChatRole]):
    """Roles by their text: thousands of messages share the usual ones."""

    def __missing__(self, text: str) -> ChatRole:
        return ChatRole(text)


_ROLES: Final = _Roles({role: ChatRole(role) for role in ("assistant", "system", "tool", "user")})


def _author(name: str | None) -> str | None:
    return None if name is None or is_blank(name) else name


class ChatMessage(Value):
    """A message: who speaks, and what is said.

    Frozen through and through. `model_copy(update=…)` makes a changed copy. `role` is any text, such as `system`,
    `user`, `assistant` and `tool` (a blank one cannot be stored); a blank `author_name` is none.
    """

    author_name: Annotated[str | None, AfterValidator(_author)] = None
    created_at: Time | None = None
    role: Annotated[str, AfterValidator(_ROLES.__getitem__)]
    contents: Contents = ()
    message_id: str | None = None
    additional_properties: MarkedProperties | None = None
    extra: JsonObject = Field(default=FrozenDict(), validation_alias=AliasPath("role", "$extra"))
    """Members of its JSON that .NET has no place for, by JSON pointer. (No JSON spells this member's own alias.)"""

    @field_validator("extra")
    @classmethod
    def _unknown_members(cls, extra: Mapping[str, Json]) -> Mapping[str, Json]:
        return check_extra(cls, extra)

    @classmethod
    def user(cls, text: str) -> Self:
        """A user's text."""
        return cls(role="user", contents=[TextContent(text=text)])

    @classmethod
    def assistant(cls, text: str) -> Self:
        """A model's text."""
        return cls(role="assistant", contents=[TextContent(text=text)])

    @classmethod
    def system(cls, text: str) -> Self:
        """Instructions that belong to the conversation; those of an agent stand beside the messages instead."""
        return cls(role="system", contents=[TextContent(text=text)])

    @classmethod
    def tool(cls, call_id: str, result: Json) -> Self:
        """What a function gave back for the call of this id."""
        return cls(role="tool", contents=[FunctionResultContent(call_id=call_id, result=result)])

    @property
    def text(self) -> str:
        """The text of its text contents, joined."""
        return "".join(content.text for content in self.contents if isinstance(content, TextContent))

    @property
    def origin(self) -> Origin | None:
        """What it was made of; None once it was changed. Takes no part in `==`."""
        private = self.__pydantic_private__  # not through pydantic, which looks it up by name
        return None if private is None else private.get("_origin")

    def with_origin(self, origin: Origin | None) -> Self:
        """The message, made of this."""
        return self._twin(self.additional_properties, origin)

    def _made_of(self, origin: Origin | None) -> Self:
        """The message itself, which nobody else holds yet, with this origin."""
        object.__setattr__(self, "__pydantic_private__", {"_origin": origin})
        return self

    @property
    def source(self) -> SourceAttribution:
        """Where it came from; `External` where it has no mark, or data in the mark's place."""
        mark: object = (self.additional_properties or {}).get(ATTRIBUTION_KEY)
        return mark if isinstance(mark, SourceAttribution) else SourceAttribution()

    def with_source(self, source: SourceAttribution) -> Self:
        """The message with this mark; itself where it has it. Its origin stays, for marks are not stored."""
        private: dict[str, Any] = self.__pydantic_private__ or self._made_of(None).__pydantic_private__ or {}
        last: tuple[SourceAttribution, Self] | None = private.get(_MARKED)
        if last is not None and (last[0] is source or last[0] == source):
            return last[1]
        properties: Mapping[str, object] = self.additional_properties or {}
        if properties.get(ATTRIBUTION_KEY) == source:
            return self
        marked = self._twin(FrozenDict({**properties, ATTRIBUTION_KEY: source}), self.origin)
        private[_MARKED] = source, marked
        return marked

    def without_source(self) -> Self:
        """The message without its mark, or data in the mark's place; itself where there is none."""
        properties = self.additional_properties
        if properties is None or ATTRIBUTION_KEY not in properties:
            return self
        rest = {key: value for key, value in properties.items() if key != ATTRIBUTION_KEY}
        return self._twin(FrozenDict(rest) if rest else None, self.origin)

    def __getstate__(self) -> dict[Any, Any]:
        """The message without the marked copy that it remembers."""
        return {**super().__getstate__(), "__pydantic_private__": {"_origin": self.origin}}

    def _twin(self, properties: Mapping[str, Any] | None, origin: Origin | None) -> Self:
        """A copy without validation: histories are marked message by message."""
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "__dict__", {**self.__dict__, "additional_properties": properties})
        object.__setattr__(twin, "__pydantic_fields_set__", self.__pydantic_fields_set__ | {"additional_properties"})
        object.__setattr__(twin, "__pydantic_extra__", None)
        object.__setattr__(twin, "__pydantic_private__", {"_origin": origin})
        return twin
