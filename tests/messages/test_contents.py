"""The kinds of content."""

from typing import Any

import pytest
from pydantic import ValidationError

from chathistory_core.messages import (
    AIContent,
    AnnotatedRegion,
    CitationAnnotation,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    HostedFileContent,
    McpServerToolResultContent,
    TextContent,
    TextSpanAnnotatedRegion,
    ToolApprovalRequestContent,
    ToolCallContent,
    UnknownAnnotation,
    UnknownContent,
    UriContent,
    UsageContent,
    UsageDetails,
    WebSearchToolCallContent,
)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", None),
        ("[1]", None),
        ('{"a":', None),
        ('{"a": NaN}', None),
        ("null", None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_the_object_in_their_text_or_none(text: str, arguments: Any) -> None:
    call = FunctionCallContent(call_id="c", name="f", arguments_text=text)
    assert call.arguments_text == text
    assert call.arguments == arguments


def test_arguments_that_are_not_those_of_the_text_are_refused() -> None:
    FunctionCallContent(call_id="c", name="f", arguments={"a": 1}, arguments_text='{"a": 1}')
    with pytest.raises(ValidationError, match="give one of them"):
        FunctionCallContent(call_id="c", name="f", arguments={"a": 2}, arguments_text='{"a": 1}')


def test_new_arguments_take_the_place_of_the_text_and_the_other_way_round() -> None:
    call = FunctionCallContent(call_id="c", name="f", arguments_text='{"a": 1}')
    changed = call.model_copy(update={"arguments": {"b": 2}})
    assert (changed.arguments, changed.arguments_text) == ({"b": 2}, None)
    again = changed.model_copy(update={"arguments_text": '{"c": 3}'})
    assert (again.arguments, again.arguments_text) == ({"c": 3}, '{"c": 3}')
    assert call.model_copy(update={"call_id": "d"}).arguments_text == '{"a": 1}'


@pytest.mark.parametrize(
    ("uri", "media_type"),
    [
        ("https://e.com/a.png?x=b.jpg#c.gif", "image/png"),
        ("a.PNG", "image/png"),
        ("https://e.com/a%2Ejpg", "image/jpeg"),
        ("gs://b/a.mp4", "video/mp4"),
        ("a\\b.pdf", "application/pdf"),
        ("https://e.com/a.tar.gz", "application/gzip"),
        ("https://e.com.png", "application/octet-stream"),
        ("https://e.com/a", "application/octet-stream"),
        ("a.png/", "application/octet-stream"),
        ("a?b.png", "application/octet-stream"),
        ("", "application/octet-stream"),
    ],
)
def test_a_uri_without_a_media_type_has_that_of_its_path(uri: str, media_type: str) -> None:
    assert UriContent(uri=uri).media_type == media_type
    assert UriContent(uri=uri, media_type="a/b").media_type == "a/b"


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("data:image/png;base64,AAEC", "data:image/png;base64,AAEC"),
        ("data:text/plain,hello%20world", "data:text/plain;base64,aGVsbG8gd29ybGQ="),
        ("data:,x", "data:text/plain;charset=US-ASCII;base64,eA=="),
        ("data:image/svg+xml;utf8,<svg/>", "data:image/svg+xml;utf8;base64,PHN2Zy8+"),
        ("data:text,x", "data:text,x"),
        ("data:a/b,\ud83d", "data:a/b,\ud83d"),
        ("https://e.com/a.png", "https://e.com/a.png"),
        ("data:image/png;base64,@@@", "data:image/png;base64,@@@"),
    ],
)
def test_a_data_uri_of_text_is_kept_in_base64(given: str, kept: str) -> None:
    assert DataContent(uri=given).uri == kept


@pytest.mark.parametrize(
    "build",
    [
        lambda: TextContent(text=5),  # type: ignore[arg-type] # refused
        lambda: TextContent(text=b"x"),  # type: ignore[arg-type] # refused
        lambda: TextContent(text=None),  # type: ignore[arg-type] # refused
        lambda: FunctionCallContent(name="f"),  # type: ignore[call-arg] # refused
        lambda: FunctionCallContent(name="f", call_id="c", informational_only="yes"),  # type: ignore[arg-type] # refused
        lambda: FunctionCallContent(name="f", call_id="c", arguments="{}"),  # type: ignore[arg-type] # refused
        lambda: FunctionResultContent(call_id="c", result=object()),  # type: ignore[arg-type] # refused
        lambda: UsageDetails(input_token_count=True, output_token_count=1.0),  # type: ignore[arg-type] # refused
        lambda: UsageDetails(additional_counts={"x": 1.5}),  # type: ignore[dict-item] # refused
        lambda: UsageDetails(additional_counts={"x": True}),
        lambda: ToolApprovalRequestContent(request_id="r", tool_call=TextContent()),  # type: ignore[arg-type] # refused
        lambda: McpServerToolResultContent(call_id="c", outputs=["x"]),  # type: ignore[list-item] # refused
        lambda: TextContent(annotations=[TextContent()]),  # type: ignore[list-item] # refused
        lambda: CitationAnnotation(annotated_regions=[CitationAnnotation()]),  # type: ignore[list-item] # refused
        lambda: TextContent(type="uri"),  # type: ignore[arg-type] # refused
    ],
)
def test_values_of_another_type_are_refused(build: Any) -> None:
    with pytest.raises(ValidationError):
        build()


def test_lists_are_kept_as_tuples_and_counts_as_frozen_dicts() -> None:
    search = WebSearchToolCallContent(call_id="c", queries=["a", None])
    assert search.queries == ("a", None)
    usage = UsageContent(details=UsageDetails(additional_counts={"x": 2**70}))
    assert usage.details.additional_counts == {"x": 2**70}
    regions = [TextSpanAnnotatedRegion(start_index=1, end_index=2), AnnotatedRegion()]
    text = TextContent(annotations=[CitationAnnotation(annotated_regions=regions), UnknownAnnotation(raw=None)])
    assert text.annotations is not None
    assert isinstance(text.annotations, tuple)


def test_a_call_of_no_known_kind_can_wait_for_approval() -> None:
    request = ToolApprovalRequestContent(request_id="r", tool_call=ToolCallContent(call_id="c"))
    assert request.requires_confirmation
    assert request.tool_call.call_id == "c"


def test_kinds_differ_though_their_members_are_the_same() -> None:
    assert TextContent(text="x") != AIContent()
    assert UnknownContent(raw=1) != UnknownContent(raw=2)
    assert UnknownContent(raw=1) != UnknownAnnotation(raw=1)
    assert HostedFileContent(file_id="f") == HostedFileContent(file_id="f")
    assert hash(HostedFileContent(file_id="f")) == hash(HostedFileContent(file_id="f"))


@pytest.mark.parametrize(
    ("kind", "fields", "extra"),
    [
        (TextContent, {}, {"/text": 1}),
        (TextContent, {}, {"/TEXT": 1}),
        (TextContent, {}, {"/$type": 1}),
        (AIContent, {}, {"/annotations": []}),
        (AIContent, {}, {"/annotations/0": {}}),
        (UsageContent, {"details": UsageDetails()}, {"/details": 1}),
    ],
)
def test_extra_is_no_place_for_a_known_member(kind: Any, fields: Any, extra: Any) -> None:
    with pytest.raises(ValidationError, match="no place for a member that the model has"):
        kind(**fields, extra=extra)


def test_extra_reaches_into_annotations_regions_and_usage_details() -> None:
    text = TextContent(extra={"/annotations/0/x": 1, "/annotations/0/annotatedRegions/1/y": 2, "/a~1b~0": 3})
    assert text.extra["/a~1b~0"] == 3
    usage = UsageContent(details=UsageDetails(), extra={"/details/x": 1})
    assert usage.extra == {"/details/x": 1}
