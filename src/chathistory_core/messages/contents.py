"""The kinds of content of a message, named and with members as in Microsoft.Extensions.AI.

A class's `type` is its `$type` in JSON, and its own fields stand in the order in which .NET writes them, before those
of `AIContent`. The models take every value of a member's JSON kind; what of it .NET would refuse is the format's to
carry.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias, get_args

from pydantic import (
    AfterValidator,
    AliasPath,
    Field,
    GetCoreSchemaHandler,
    PlainValidator,
    PydanticUndefinedAnnotation,
    field_validator,
    model_serializer,
    model_validator,
)
from pydantic_core import CoreSchema

from chathistory_core.messages.annotations import Annotations
from chathistory_core.messages.argument_text import object_in
from chathistory_core.messages.data_uris import in_base64
from chathistory_core.messages.extras import check_extra
from chathistory_core.messages.frozen import FrozenDict, Json, freeze_object
from chathistory_core.messages.json_members import JsonObject, JsonValue, Properties
from chathistory_core.messages.late import Late, LateJson, late, made_first
from chathistory_core.messages.media_types import media_type_of
from chathistory_core.messages.times import Time
from chathistory_core.messages.value import BUILT_WHEN_USED, Given, Value


class AIContent(Value):
    """What every content has; by itself a content of no kind."""

    annotations: Annotations | None = None
    additional_properties: Properties | None = None
    extra: JsonObject = Field(default=FrozenDict(), validation_alias=AliasPath("annotations", "$extra"))
    """Members of its JSON that .NET has no place for, by JSON pointer. (No JSON spells this member's own alias.)"""

    @field_validator("extra")
    @classmethod
    def _unknown_members(cls, extra: Mapping[str, Json]) -> Mapping[str, Json]:
        return check_extra(cls, extra)


class UnknownContent(Value):
    """A content that this version does not know, as the JSON value it came as; None is a null among the contents."""

    raw: JsonValue = Field(alias="$raw")


class TextContent(AIContent):
    """Text."""

    type: Literal["text"] = Field(default="text", alias="$type")
    text: str = ""


class TextReasoningContent(AIContent):
    """What a model thought before it answered; `protected_data` is its provider's own, to be sent back as it is."""

    type: Literal["reasoning"] = Field(default="reasoning", alias="$type")
    text: str = ""
    protected_data: str | None = None


class DataContent(AIContent):
    """Bytes in a data URI, in base64."""

    type: Literal["data"] = Field(default="data", alias="$type")
    uri: Annotated[str, AfterValidator(in_base64)]
    name: str | None = None


class UriContent(AIContent):
    """What stands at a URI. Without a media type it has the one that its path tells."""

    type: Literal["uri"] = Field(default="uri", alias="$type")
    uri: str
    media_type: str = Field(default_factory=lambda given: media_type_of(given["uri"]))


class ErrorContent(AIContent):
    """An error that was no exception, such as a refusal."""

    type: Literal["error"] = Field(default="error", alias="$type")
    message: str = ""
    error_code: str | None = None
    details: str | None = None


@late("arguments")
class FunctionCallContent(AIContent):
    """A call of a function with an object of arguments, or with none.

    Where a client writes arguments as text, `arguments_text` is that text: it decides, and `arguments` is the object in
    it, or None where it holds none.
    """

    type: Literal["functionCall"] = Field(default="functionCall", alias="$type")
    name: str
    arguments: JsonObject | None = None
    informational_only: bool = False
    """Whether the call is executed already."""
    call_id: str
    arguments_text: str | None = Field(default=None, validation_alias=AliasPath("name", "$text"))

    _serialize = model_serializer(mode="wrap")(made_first)

    @model_validator(mode="after")
    def _read_arguments(self) -> Self:
        if self.arguments_text is not None:
            arguments = Late(object_in, self.arguments_text)
            if self.arguments is not None and self.arguments != arguments:
                raise ValueError("`arguments` are not those of `arguments_text`: give one of them")
            self.__dict__["arguments"] = arguments
        return self

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As of every value; new `arguments` take the place of `arguments_text`, and the other way round."""
        if update and "arguments" in update:
            update = {"arguments_text": None, **update}
        elif update and "arguments_text" in update:
            update = {"arguments": None, **update}
        return super().model_copy(update=update, deep=deep)


@late("result")
class FunctionResultContent(AIContent):
    """What a function gave back: any JSON value."""

    type: Literal["functionResult"] = Field(default="functionResult", alias="$type")
    result: LateJson = None
    call_id: str

    _serialize = model_serializer(mode="wrap")(made_first)


def _counts(value: object) -> FrozenDict[str, Json]:
    counts = freeze_object(value)
    if any(type(count) is not int for count in counts.values()):
        raise ValueError("counts are integers")
    return counts


if TYPE_CHECKING:
    Counts = Mapping[str, int]
else:
    Counts = Annotated[Any, PlainValidator(_counts)]


class UsageDetails(Value):
    """Counts of tokens."""

    input_token_count: int | None = None
    output_token_count: int | None = None
    total_token_count: int | None = None
    cached_input_token_count: int | None = None
    reasoning_token_count: int | None = None
    input_audio_token_count: int | None = None
    input_text_token_count: int | None = None
    output_audio_token_count: int | None = None
    output_text_token_count: int | None = None
    additional_counts: Counts | None = None


class UsageContent(AIContent):
    """What a model's call cost."""

    type: Literal["usage"] = Field(default="usage", alias="$type")
    details: UsageDetails


class HostedFileContent(AIContent):
    """A file that the model's service keeps."""

    type: Literal["hostedFile"] = Field(default="hostedFile", alias="$type")
    file_id: str
    media_type: str | None = None
    name: str | None = None
    size_in_bytes: int | None = None
    created_at: Time | None = None
    purpose: str | None = None
    scope: str | None = None


class HostedVectorStoreContent(AIContent):
    """A vector store that the model's service keeps."""

    type: Literal["hostedVectorStore"] = Field(default="hostedVectorStore", alias="$type")
    vector_store_id: str


class ToolCallContent(AIContent):
    """A call of a tool of no known kind."""

    type: Literal["toolCall"] = Field(default="toolCall", alias="$type")
    call_id: str


class ToolResultContent(AIContent):
    """The result of a tool of no known kind."""

    type: Literal["toolResult"] = Field(default="toolResult", alias="$type")
    call_id: str


class _DeclaredBelow:
    """Annotates `Contents` where the name stands for nothing yet.

    A name in quotes pydantic would look up where a model is first used, among the caller's names, and for a subclass in
    the subclass's module.
    """

    def __get_pydantic_core_schema__(self, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        try:
            declared = Contents
        except NameError as error:  # the model is built at the end of this module
            raise PydanticUndefinedAnnotation.from_name_error(error) from None
        return handler.generate_schema(declared)


if TYPE_CHECKING:
    ContentsInside: TypeAlias = "Contents"
else:
    ContentsInside = Annotated[Any, _DeclaredBelow()]


class McpServerToolCallContent(AIContent):
    """A call of a tool of an MCP server, made by the model's service."""

    type: Literal["mcpServerToolCall"] = Field(default="mcpServerToolCall", alias="$type")
    name: str
    server_name: str | None = None
    arguments: JsonObject | None = None
    call_id: str


class McpServerToolResultContent(AIContent):
    """What a tool of an MCP server gave back."""

    type: Literal["mcpServerToolResult"] = Field(default="mcpServerToolResult", alias="$type")
    outputs: ContentsInside | None = None
    call_id: str


class CodeInterpreterToolCallContent(AIContent):
    """Code that the model's service ran."""

    type: Literal["codeInterpreterToolCall"] = Field(default="codeInterpreterToolCall", alias="$type")
    inputs: ContentsInside | None = None
    call_id: str


class CodeInterpreterToolResultContent(AIContent):
    """What code that the model's service ran gave back."""

    type: Literal["codeInterpreterToolResult"] = Field(default="codeInterpreterToolResult", alias="$type")
    outputs: ContentsInside | None = None
    call_id: str


class ImageGenerationToolCallContent(AIContent):
    """An image that the model's service was asked for."""

    type: Literal["imageGenerationToolCall"] = Field(default="imageGenerationToolCall", alias="$type")
    call_id: str


class ImageGenerationToolResultContent(AIContent):
    """Images that the model's service made."""

    type: Literal["imageGenerationToolResult"] = Field(default="imageGenerationToolResult", alias="$type")
    outputs: ContentsInside | None = None
    call_id: str


if TYPE_CHECKING:
    Queries = Sequence[str | None]
else:  # a list given is kept as a tuple
    Queries = Annotated[tuple[str | None, ...], Field(strict=False)]


class WebSearchToolCallContent(AIContent):
    """A web search by the model's service. An element of None is a null among the queries."""

    type: Literal["webSearchToolCall"] = Field(default="webSearchToolCall", alias="$type")
    queries: Queries | None = None
    call_id: str


class WebSearchToolResultContent(AIContent):
    """What a web search by the model's service found."""

    type: Literal["webSearchToolResult"] = Field(default="webSearchToolResult", alias="$type")
    outputs: ContentsInside | None = None
    call_id: str


ToolCall: TypeAlias = (
    FunctionCallContent
    | McpServerToolCallContent
    | CodeInterpreterToolCallContent
    | ImageGenerationToolCallContent
    | WebSearchToolCallContent
    | ToolCallContent
)
"""The calls that can wait for a person's word."""

if TYPE_CHECKING:
    ApprovedCall = ToolCall
else:  # JSON has no `$type` for the last of them here
    ApprovedCall = Annotated[
        Annotated[
            FunctionCallContent
            | McpServerToolCallContent
            | CodeInterpreterToolCallContent
            | ImageGenerationToolCallContent
            | WebSearchToolCallContent,
            Field(discriminator="type"),
        ],
        Given(*get_args(ToolCall)),
    ]


class ToolApprovalRequestContent(AIContent):
    """A call that waits for a person's word."""

    type: Literal["toolApprovalRequest"] = Field(default="toolApprovalRequest", alias="$type")
    tool_call: ApprovedCall
    requires_confirmation: bool = True
    request_id: str


class ToolApprovalResponseContent(AIContent):
    """A person's word on a call."""

    type: Literal["toolApprovalResponse"] = Field(default="toolApprovalResponse", alias="$type")
    approved: bool = False
    tool_call: ApprovedCall
    reason: str | None = None
    request_id: str


KnownContent: TypeAlias = (
    TextContent
    | TextReasoningContent
    | DataContent
    | UriContent
    | ErrorContent
    | FunctionCallContent
    | FunctionResultContent
    | UsageContent
    | HostedFileContent
    | HostedVectorStoreContent
    | ToolCallContent
    | ToolResultContent
    | McpServerToolCallContent
    | McpServerToolResultContent
    | CodeInterpreterToolCallContent
    | CodeInterpreterToolResultContent
    | ImageGenerationToolCallContent
    | ImageGenerationToolResultContent
    | WebSearchToolCallContent
    | WebSearchToolResultContent
    | ToolApprovalRequestContent
    | ToolApprovalResponseContent
)
"""The contents that have a `type`."""

Content: TypeAlias = KnownContent | AIContent | UnknownContent

if TYPE_CHECKING:
    Contents = Sequence[Content]
else:  # a list given is kept as a tuple
    _Typed = Annotated[KnownContent, Field(discriminator="type")]
    Contents = Annotated[
        tuple[
            Annotated[
                Annotated[_Typed | AIContent, Field(union_mode="left_to_right")], Given(AIContent, UnknownContent)
            ],
            ...,
        ],
        Field(strict=False),
    ]

if not BUILT_WHEN_USED:
    for _kind in (
        McpServerToolResultContent,
        CodeInterpreterToolCallContent,
        CodeInterpreterToolResultContent,
        ImageGenerationToolResultContent,
        WebSearchToolResultContent,
        ToolApprovalRequestContent,
        ToolApprovalResponseContent,
    ):
        _kind.model_rebuild()
