"""The kinds of content that the framework and the model both have."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, get_args

from chathistory_core.formats.agent_framework.leftovers import Members
from chathistory_core.formats.agent_framework.members import (
    ARGUMENTS,
    MEDIA_TYPE,
    OBJECT_ARGUMENTS,
    QUERIES,
    RESULT,
    USAGE,
    Fields,
    Member,
    Read,
    Write,
    blank,
    constant,
    contents,
    flag,
    needed,
    text,
)
from chathistory_core.messages import (
    AIContent,
    CodeInterpreterToolCallContent,
    CodeInterpreterToolResultContent,
    DataContent,
    ErrorContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    HostedVectorStoreContent,
    ImageGenerationToolCallContent,
    ImageGenerationToolResultContent,
    McpServerToolCallContent,
    McpServerToolResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    ToolCall,
    ToolCallContent,
    ToolResultContent,
    UriContent,
    UsageContent,
    WebSearchToolCallContent,
    WebSearchToolResultContent,
)


class Kind(NamedTuple):
    """A kind of content: the model's class, the framework's type of it where it is one alone, and the members."""

    model: type[AIContent]
    type: str | None
    members: Sequence[Member]

    def take(self, core: Mapping[str, Any], read: Read) -> AIContent | None:
        """The content that the members make, None where it is none of the kind."""
        fields: dict[str, Any] = {}
        for member in self.members:
            found = member.take(core, read) if member.name in core else None
            found = member.absent if found is None else found
            if found is None:
                return None
            fields.update(found)
        return self.model(**fields)

    def build(self, content: AIContent, write: Write) -> Members:
        """The members of the content; none where one is missing without which it is no such content."""
        built: Members = {} if self.type is None else {"type": self.type}
        for member in self.members:
            value = member.build(content, write)
            if value is not None:
                built[member.name] = value
            elif member.absent is None:
                return {}
        return built


def _take_call(core: Mapping[str, Any], read: Read) -> Fields | None:
    call = read(core["function_call"])
    return {"tool_call": call} if isinstance(call, get_args(ToolCall)) else None


_CALL_ID: Final = blank("call_id")
_REQUEST: Final = (
    needed("id", "request_id"),
    Member("function_call", _take_call, lambda content, write: write(content.tool_call), None),
)
_APPROVED: Final = Member(
    "approved",
    lambda core, _: {"approved": core["approved"]} if isinstance(core["approved"], bool) else None,
    lambda content, _: content.approved,
)
_WEB_SEARCH: Final = constant("tool_name", "web_search", needed=True)

_KINDS: Final = (
    Kind(TextContent, "text", (needed("text"),)),
    Kind(TextReasoningContent, "text_reasoning", (blank("text"), text("protected_data"))),
    Kind(DataContent, "data", (needed("uri"), MEDIA_TYPE, text("name"))),
    Kind(UriContent, "uri", (needed("uri"), text("media_type"))),
    Kind(ErrorContent, "error", (blank("message"), text("error_code"), text("error_details", "details"))),
    Kind(UsageContent, "usage", (USAGE,)),
    Kind(
        FunctionCallContent,
        "function_call",
        (_CALL_ID, blank("name"), ARGUMENTS, flag("informational_only"), constant("hosted", value=False)),
    ),
    Kind(FunctionResultContent, "function_result", (_CALL_ID, *RESULT)),
    Kind(HostedFileContent, "hosted_file", (needed("file_id"), text("media_type"), text("name"))),
    Kind(HostedVectorStoreContent, "hosted_vector_store", (needed("vector_store_id"),)),
    Kind(CodeInterpreterToolCallContent, "code_interpreter_tool_call", (_CALL_ID, contents("inputs", "inputs"))),
    Kind(CodeInterpreterToolResultContent, "code_interpreter_tool_result", (_CALL_ID, contents("outputs", "outputs"))),
    Kind(ImageGenerationToolCallContent, "image_generation_tool_call", (blank("image_id", "call_id"),)),
    Kind(
        ImageGenerationToolResultContent,
        "image_generation_tool_result",
        (blank("image_id", "call_id"), contents("outputs", "outputs")),
    ),
    Kind(
        McpServerToolCallContent,
        "mcp_server_tool_call",
        (_CALL_ID, blank("tool_name", "name"), text("server_name"), OBJECT_ARGUMENTS),
    ),
    Kind(McpServerToolResultContent, "mcp_server_tool_result", (_CALL_ID, contents("output", "outputs"))),
    Kind(WebSearchToolCallContent, "search_tool_call", (_CALL_ID, _WEB_SEARCH, QUERIES)),
    Kind(WebSearchToolResultContent, "search_tool_result", (_CALL_ID, _WEB_SEARCH, contents("items", "outputs"))),
    Kind(
        ToolApprovalRequestContent,
        "function_approval_request",
        (*_REQUEST, constant("user_input_request", value=True)),
    ),
    Kind(ToolApprovalResponseContent, "function_approval_response", (*_REQUEST, _APPROVED)),
    Kind(ToolCallContent, None, (_CALL_ID,)),
    Kind(ToolResultContent, None, (_CALL_ID,)),
)

_BY_MODEL: Final = {kind.model: kind for kind in _KINDS}
_BY_TYPE: Final[Mapping[str, Sequence[Kind]]] = {
    **{kind.type: (kind,) for kind in _KINDS if kind.type is not None},
    **{
        f"{tool}_tool_{end}": tuple(_BY_MODEL[model] for model in models)
        for tool in ("search", "shell", "computer")
        for end, models in (
            ("call", (WebSearchToolCallContent, ToolCallContent)),
            ("result", (WebSearchToolResultContent, ToolResultContent)),
        )
    },
}
"""The kinds that a type of the framework may be, the first that it fits; a tool that .NET does not know is any tool."""


def take(core: Mapping[str, Any], read: Read) -> AIContent:
    """The content without annotations, properties and leftovers; one of no kind where it is none that the model has."""
    given = core.get("type")
    for kind in _BY_TYPE.get(given, ()) if isinstance(given, str) else ():
        if (content := kind.take(core, read)) is not None:
            return content
    return AIContent()


def build(content: AIContent, write: Write) -> Members:
    """The framework's members of the content, without a `type` where it has none for it."""
    kind = next((_BY_MODEL[one] for one in type(content).__mro__ if one in _BY_MODEL), None)
    return {} if kind is None else kind.build(content, write)
