"""A message of a conversation."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import AfterValidator, AliasPath, Field, field_validator

from chathistory_core.messages.contents import Contents, FunctionResultContent, TextContent
from chathistory_core.messages.extras import check_extra
from chathistory_core.messages.frozen import FrozenDict, Json
from chathistory_core.messages.json_members import JsonObject, MarkedProperties
from chathistory_core.messages.origin import Origin
from chathistory_core.messages.source import ATTRIBUTION_KEY, SourceAttribution
from chathistory_core.messages.times import Time
from chathistory_core.messages.value import Value, share_fields_set
from chathistory_core.messages.white_space import is_blank


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

    __slots__ = ("_made_of", "_marked")  # no private attributes of pydantic, which are an object more in each message

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
        origin: Origin | None = self._slot("_made_of")
        return origin

    def _slot(self, name: str) -> Any:
        """What it holds beside its members, None where nothing was put there; `getattr` would ask pydantic."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return None

    def with_origin(self, origin: Origin | None) -> Self:
        """The message, made of this."""
        return self._twin(self.additional_properties, origin)

    @property
    def source(self) -> SourceAttribution:
        """Where it came from; `External` where it has no mark, or data in the mark's place."""
        mark: object = (self.additional_properties or {}).get(ATTRIBUTION_KEY)
        return mark if isinstance(mark, SourceAttribution) else SourceAttribution()

    def with_source(self, source: SourceAttribution) -> Self:
        """The message with this mark; itself where it has it. Its origin stays, for marks are not stored."""
        last: Self | None = self._slot("_marked")  # histories are marked anew on every turn
        if last is not None and last.source == source:
            return last
        properties: Mapping[str, object] = self.additional_properties or {}
        if properties.get(ATTRIBUTION_KEY) == source:
            return self
        marked = FrozenDict({**properties, ATTRIBUTION_KEY: source}) if properties else _only(source)
        twin = self._twin(marked, self.origin)
        object.__setattr__(self, "_marked", twin)
        return twin

    def without_source(self) -> Self:
        """The message without its mark, or data in the mark's place; itself where there is none."""
        properties = self.additional_properties
        if properties is None or ATTRIBUTION_KEY not in properties:
            return self
        rest = {key: value for key, value in properties.items() if key != ATTRIBUTION_KEY}
        return self._twin(FrozenDict(rest) if rest else None, self.origin)

    def __getstate__(self) -> dict[Any, Any]:
        """The message without the marked copy that it remembers."""
        return {**super().__getstate__(), "_made_of": self.origin}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        """What `__getstate__` gave."""
        super().__setstate__(state)
        object.__setattr__(self, "_made_of", state.get("_made_of"))

    def _twin(self, properties: Mapping[str, Any] | None, origin: Origin | None) -> Self:
        """A copy without validation: histories are marked message by message."""
        twin = type(self).__new__(type(self))
        object.__setattr__(twin, "__dict__", {**self.__dict__, "additional_properties": properties})
        object.__setattr__(twin, "__pydantic_fields_set__", {*self.__pydantic_fields_set__, "additional_properties"})
        object.__setattr__(twin, "__pydantic_extra__", None)
        private = self.__pydantic_private__
        object.__setattr__(twin, "__pydantic_private__", private and {**private})
        object.__setattr__(twin, "_made_of", origin)
        return share_fields_set(twin)


Message = TypeVar("Message", bound=ChatMessage)


def made_of(message: Message, origin: Origin | None) -> Message:
    """The message itself, which nobody else holds yet, with this origin."""
    for content in message.contents:
        share_fields_set(content)
    object.__setattr__(message, "_made_of", origin)
    return share_fields_set(message)


@lru_cache(maxsize=100)
def _only(source: SourceAttribution) -> FrozenDict[str, Any]:
    """The properties of a message that has no others: a history is marked with one source."""
    return FrozenDict({ATTRIBUTION_KEY: source})
