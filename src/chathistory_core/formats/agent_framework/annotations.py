"""Citations, both ways."""

from collections.abc import Mapping, Sequence
from typing import Any

from chathistory_core.formats.agent_framework.leftovers import NAME, Members, combined, difference, leftovers
from chathistory_core.messages import (
    AIAnnotation,
    Annotation,
    CitationAnnotation,
    Region,
    TextSpanAnnotatedRegion,
    UnknownAnnotation,
)

_TEXTS = ("title", "url", "file_id", "tool_name", "snippet")
_PROPERTIES = "additional_properties"


def read_annotation(given: Any) -> AIAnnotation:
    """The annotation; what is none that the model has is one of no kind with the whole as its leftover."""
    if not isinstance(given, dict):
        return AIAnnotation(additional_properties={NAME: {"value": given}})
    members = {key: value for key, value in given.items() if value is not None}
    properties = members.get(_PROPERTIES)
    fits = isinstance(properties, dict) and properties and NAME not in properties
    core = {key: value for key, value in members.items() if key != _PROPERTIES or not fits}
    bare = _take(core)
    rest = difference(core, _build(bare))
    held = {**(properties if fits and isinstance(properties, dict) else {}), **({NAME: rest} if rest else {})}
    return bare.model_copy(update={_PROPERTIES: held}) if held else bare


def write_annotations(annotations: Sequence[Annotation]) -> list[Any]:
    """The annotations that the framework has; what else there is, only .NET has."""
    written: list[Any] = []
    for one in annotations:
        if isinstance(one, UnknownAnnotation):
            continue
        rest = leftovers(one)
        if rest.keys() == {"value"}:
            written.append(rest["value"])
        elif members := _written(one, rest):
            written.append(members)
    return written


def _written(annotation: AIAnnotation, rest: Mapping[str, Any]) -> Members:
    bare = annotation.model_copy(update={_PROPERTIES: None})
    members = combined(_build(bare), rest, lambda whole: _take(whole) == bare)
    properties = {key: value for key, value in (annotation.additional_properties or {}).items() if key != NAME}
    return members | ({_PROPERTIES: properties} if members and properties else {})


def _take(core: Mapping[str, Any]) -> AIAnnotation:
    if core.get("type") != "citation":
        return AIAnnotation()
    texts = {key: core[key] for key in _TEXTS if isinstance(core.get(key), str)}
    regions = core.get("annotated_regions")
    read = [_region(one) for one in regions] if isinstance(regions, list) else []
    known = [one for one in read if one is not None]
    return CitationAnnotation(**texts, annotated_regions=known if regions == [] or known == read != [] else None)


def _region(given: Any) -> Region | None:
    match given:
        case {"type": "text_span", "start_index": int(start), "end_index": int(end)} if bool not in (
            type(start),
            type(end),
        ):
            return TextSpanAnnotatedRegion(start_index=start, end_index=end)
    return None


def _build(annotation: AIAnnotation) -> Members:
    if not isinstance(annotation, CitationAnnotation):
        return {}
    built: Members = {"type": "citation"}
    for key in _TEXTS:
        if (text := getattr(annotation, key)) is not None:
            built[key] = text
    if annotation.annotated_regions is not None:
        built["annotated_regions"] = [
            {"type": "text_span", "start_index": one.start_index, "end_index": one.end_index}
            for one in annotation.annotated_regions
            if isinstance(one, TextSpanAnnotatedRegion) and one.start_index is not None and one.end_index is not None
        ]
    return built
