"""The members of every object of the format, in the order in which .NET writes them, and what .NET takes for each."""

from collections.abc import Mapping
from enum import Enum, auto
from functools import cache
from typing import Final, NamedTuple

from chathistory_core.messages import (
    AIAnnotation,
    AIContent,
    AnnotatedRegion,
    ChatMessage,
    CitationAnnotation,
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
    TextSpanAnnotatedRegion,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    ToolCallContent,
    ToolResultContent,
    UriContent,
    UsageContent,
    UsageDetails,
    WebSearchToolCallContent,
    WebSearchToolResultContent,
)
from chathistory_core.messages.extras import folded
from chathistory_core.messages.value import Value, json_name


class Kind(Enum):
    """What a member's value is."""

    TEXT = auto()
    NOT_BLANK = auto()
    BOOL = auto()
    INT32 = auto()
    INT64 = auto()
    TIME = auto()
    URI = auto()
    DATA_URI = auto()
    MEDIA_TYPE = auto()
    QUERIES = auto()
    COUNTS = auto()
    JSON = auto()
    ARGUMENTS = auto()
    """A JSON object; a function call keeps what came as text too."""
    PROPERTIES = auto()
    """A JSON object whose keys .NET compares without case."""
    DETAILS = auto()
    CONTENTS = auto()
    TOOL_CALL = auto()
    ANNOTATIONS = auto()
    REGIONS = auto()


class Member(NamedTuple):
    """A member of an object."""

    name: str
    """In JSON."""
    field: str
    """In the model."""
    kind: Kind
    required: bool
    """.NET takes no object without it, and we have no default for it."""
    optional: bool
    """It may be left out and is nothing then; else the model always has a value."""


def _of(model: type[Value], **kinds: Kind) -> tuple[Member, ...]:
    fields = model.model_fields
    return tuple(
        Member(
            name=json_name(field, fields[field]),
            field=field,
            kind=kind,
            required=fields[field].is_required(),
            optional=fields[field].default is None and fields[field].default_factory is None,
        )
        for field, kind in kinds.items()
    )


_BASE: Final = {"annotations": Kind.ANNOTATIONS, "additional_properties": Kind.PROPERTIES}

MEMBERS: Final[Mapping[type[Value], tuple[Member, ...]]] = {
    ChatMessage: _of(
        ChatMessage,
        author_name=Kind.TEXT,
        created_at=Kind.TIME,
        role=Kind.NOT_BLANK,
        contents=Kind.CONTENTS,
        message_id=Kind.TEXT,
        additional_properties=Kind.PROPERTIES,
    ),
    AIContent: _of(AIContent, **_BASE),
    TextContent: _of(TextContent, text=Kind.TEXT, **_BASE),
    TextReasoningContent: _of(TextReasoningContent, text=Kind.TEXT, protected_data=Kind.TEXT, **_BASE),
    DataContent: _of(DataContent, uri=Kind.DATA_URI, name=Kind.TEXT, **_BASE),
    UriContent: _of(UriContent, uri=Kind.URI, media_type=Kind.MEDIA_TYPE, **_BASE),
    ErrorContent: _of(ErrorContent, message=Kind.TEXT, error_code=Kind.TEXT, details=Kind.TEXT, **_BASE),
    FunctionCallContent: _of(
        FunctionCallContent,
        name=Kind.TEXT,
        arguments=Kind.ARGUMENTS,
        informational_only=Kind.BOOL,
        call_id=Kind.TEXT,
        **_BASE,
    ),
    FunctionResultContent: _of(FunctionResultContent, result=Kind.JSON, call_id=Kind.TEXT, **_BASE),
    UsageContent: _of(UsageContent, details=Kind.DETAILS, **_BASE),
    UsageDetails: _of(
        UsageDetails,
        input_token_count=Kind.INT64,
        output_token_count=Kind.INT64,
        total_token_count=Kind.INT64,
        cached_input_token_count=Kind.INT64,
        reasoning_token_count=Kind.INT64,
        input_audio_token_count=Kind.INT64,
        input_text_token_count=Kind.INT64,
        output_audio_token_count=Kind.INT64,
        output_text_token_count=Kind.INT64,
        additional_counts=Kind.COUNTS,
    ),
    HostedFileContent: _of(
        HostedFileContent,
        file_id=Kind.NOT_BLANK,
        media_type=Kind.MEDIA_TYPE,
        name=Kind.TEXT,
        size_in_bytes=Kind.INT64,
        created_at=Kind.TIME,
        purpose=Kind.TEXT,
        scope=Kind.TEXT,
        **_BASE,
    ),
    HostedVectorStoreContent: _of(HostedVectorStoreContent, vector_store_id=Kind.NOT_BLANK, **_BASE),
    ToolCallContent: _of(ToolCallContent, call_id=Kind.TEXT, **_BASE),
    ToolResultContent: _of(ToolResultContent, call_id=Kind.TEXT, **_BASE),
    ToolApprovalRequestContent: _of(
        ToolApprovalRequestContent,
        tool_call=Kind.TOOL_CALL,
        requires_confirmation=Kind.BOOL,
        request_id=Kind.NOT_BLANK,
        **_BASE,
    ),
    ToolApprovalResponseContent: _of(
        ToolApprovalResponseContent,
        approved=Kind.BOOL,
        tool_call=Kind.TOOL_CALL,
        reason=Kind.TEXT,
        request_id=Kind.NOT_BLANK,
        **_BASE,
    ),
    McpServerToolCallContent: _of(
        McpServerToolCallContent,
        name=Kind.NOT_BLANK,
        server_name=Kind.TEXT,
        arguments=Kind.ARGUMENTS,
        call_id=Kind.NOT_BLANK,
        **_BASE,
    ),
    McpServerToolResultContent: _of(
        McpServerToolResultContent, outputs=Kind.CONTENTS, call_id=Kind.NOT_BLANK, **_BASE
    ),
    CodeInterpreterToolCallContent: _of(
        CodeInterpreterToolCallContent, inputs=Kind.CONTENTS, call_id=Kind.TEXT, **_BASE
    ),
    CodeInterpreterToolResultContent: _of(
        CodeInterpreterToolResultContent, outputs=Kind.CONTENTS, call_id=Kind.TEXT, **_BASE
    ),
    ImageGenerationToolCallContent: _of(ImageGenerationToolCallContent, call_id=Kind.TEXT, **_BASE),
    ImageGenerationToolResultContent: _of(
        ImageGenerationToolResultContent, outputs=Kind.CONTENTS, call_id=Kind.TEXT, **_BASE
    ),
    WebSearchToolCallContent: _of(WebSearchToolCallContent, queries=Kind.QUERIES, call_id=Kind.TEXT, **_BASE),
    WebSearchToolResultContent: _of(
        WebSearchToolResultContent, outputs=Kind.CONTENTS, call_id=Kind.TEXT, **_BASE
    ),
    AIAnnotation: _of(
        AIAnnotation, annotated_regions=Kind.REGIONS, additional_properties=Kind.PROPERTIES
    ),
    CitationAnnotation: _of(
        CitationAnnotation,
        title=Kind.TEXT,
        url=Kind.TEXT,
        file_id=Kind.TEXT,
        tool_name=Kind.TEXT,
        snippet=Kind.TEXT,
        annotated_regions=Kind.REGIONS,
        additional_properties=Kind.PROPERTIES,
    ),
    AnnotatedRegion: (),
    TextSpanAnnotatedRegion: _of(TextSpanAnnotatedRegion, start_index=Kind.INT32, end_index=Kind.INT32),
}  # fmt: skip
"""Of each class; `extra` is no member, and `type` is `$type`, which stands before all others."""

CONTENTS: Final[Mapping[str, type[AIContent]]] = {
    model.model_fields["type"].default: model
    for model in MEMBERS
    if issubclass(model, AIContent) and model is not AIContent
}
"""The contents by their `$type`."""

CALLS: Final = (
    FunctionCallContent,
    McpServerToolCallContent,
    CodeInterpreterToolCallContent,
    ImageGenerationToolCallContent,
    WebSearchToolCallContent,
)
"""What a `toolCall` member may be, beside a `ToolCallContent`, which has no `$type` there."""

BY_NAME: Final = {model: {folded(member.name): member for member in members} for model, members in MEMBERS.items()}
"""The members of each class by their folded names."""

NAMES: Final = frozenset(member.name for members in MEMBERS.values() for member in members)


@cache
def model_of(kind: type[Value]) -> type[Value]:
    """The class of the table that values of a class are of, for a class of one's own too."""
    return next(model for model in kind.__mro__ if model in MEMBERS)
