"""What points from a content to its sources."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from chathistory_core.messages.json_members import JsonValue, Properties
from chathistory_core.messages.value import Given, Value, with_type


class AnnotatedRegion(Value):
    """A part of the content, of no known kind."""


class TextSpanAnnotatedRegion(AnnotatedRegion):
    """A stretch of the content's text, in the client's own units: `start_index` up to, without, `end_index`."""

    type: Literal["textSpan"] = Field(default="textSpan", alias="$type")
    start_index: int | None = Field(default=None, alias="start")
    end_index: int | None = Field(default=None, alias="end")


class UnknownAnnotatedRegion(Value):
    """A region that this version does not know, as the JSON value it came as; None is a null among the regions."""

    raw: JsonValue = Field(alias="$raw")


Region: TypeAlias = TextSpanAnnotatedRegion | AnnotatedRegion | UnknownAnnotatedRegion

if TYPE_CHECKING:
    Regions = Sequence[Region]
else:  # a list given is kept as a tuple
    Regions = Annotated[
        tuple[
            Annotated[
                AnnotatedRegion | Annotated[TextSpanAnnotatedRegion, AfterValidator(with_type)],
                Given(AnnotatedRegion, UnknownAnnotatedRegion),
            ],
            ...,
        ],
        Field(strict=False),
    ]


class AIAnnotation(Value):
    """An annotation of no known kind."""

    annotated_regions: Regions | None = None
    additional_properties: Properties | None = None


class CitationAnnotation(AIAnnotation):
    """A source that the content rests on."""

    type: Literal["citation"] = Field(default="citation", alias="$type")
    title: str | None = None
    url: str | None = None
    file_id: str | None = None
    tool_name: str | None = None
    snippet: str | None = None


class UnknownAnnotation(Value):
    """An annotation that this version does not know, as the JSON value it came as; None is a null among them."""

    raw: JsonValue = Field(alias="$raw")


Annotation: TypeAlias = CitationAnnotation | AIAnnotation | UnknownAnnotation

if TYPE_CHECKING:
    Annotations = Sequence[Annotation]
else:  # a list given is kept as a tuple
    Annotations = Annotated[
        tuple[
            Annotated[
                AIAnnotation | Annotated[CitationAnnotation, AfterValidator(with_type)],
                Given(AIAnnotation, UnknownAnnotation),
            ],
            ...,
        ],
        Field(strict=False),
    ]
