import json
from typing import cast

import pytest

from chathistory_core.messages import (
    AI_CONTEXT_PROVIDER,
    ATTRIBUTION_KEY,
    CHAT_HISTORY,
    EXTERNAL,
    ChatMessage,
    Json,
    SourceAttribution,
)


def test_a_source_type_is_not_blank_and_external_by_default() -> None:
    assert SourceAttribution() == SourceAttribution(EXTERNAL)
    for blank in ("", " "):
        with pytest.raises(ValueError, match="blank"):
            SourceAttribution(blank)
    with pytest.raises(ValueError, match="text"):
        SourceAttribution(cast("str", None))


def test_the_known_types_are_named_as_in_dotnet() -> None:
    assert (EXTERNAL, AI_CONTEXT_PROVIDER, CHAT_HISTORY) == ("External", "AIContextProvider", "ChatHistory")
    assert ATTRIBUTION_KEY == "_attribution"


def test_sources_are_equal_where_type_and_id_are_with_their_case() -> None:
    one = SourceAttribution(CHAT_HISTORY, "store")
    assert one == SourceAttribution("ChatHistory", "store")
    assert hash(one) == hash(SourceAttribution("ChatHistory", "store"))
    for other in ("chathistory", "store"), ("ChatHistory", "Store"), ("ChatHistory", None), ("Custom", "store"):
        assert one != SourceAttribution(*other)


def test_a_source_reads_as_type_and_id() -> None:
    assert str(SourceAttribution("Custom", "x")) == "Custom:x"
    assert str(SourceAttribution("Custom")) == "Custom"


@pytest.mark.parametrize(
    "properties",
    [None, {}, {"other": 1}, {"_attribution": None}, {"_attribution": "ChatHistory"}, {"_attribution": {"type": "x"}}],
)
def test_a_message_without_a_mark_is_external(properties: dict[str, Json] | None) -> None:
    message = ChatMessage(role="user", additional_properties=properties)
    assert message.source == SourceAttribution(EXTERNAL, None)


def test_a_mark_is_set_on_a_copy_and_leaves_everything_else() -> None:
    message = ChatMessage(role="user", additional_properties={"k": 1})
    marked = message.with_source(SourceAttribution("Custom", "x"))
    assert marked.source == SourceAttribution("Custom", "x")
    assert (marked.additional_properties or {})["k"] == 1
    assert message.source.type == EXTERNAL
    plain = ChatMessage.user("hi")
    assert plain.with_source(SourceAttribution(CHAT_HISTORY)).text == "hi"
    assert plain.additional_properties is None


def test_the_same_mark_again_is_the_same_message_and_another_a_new_one() -> None:
    marked = ChatMessage.user("hi").with_source(SourceAttribution(CHAT_HISTORY, "a"))
    assert marked.with_source(SourceAttribution(CHAT_HISTORY, "a")) is marked
    for other in SourceAttribution(CHAT_HISTORY, "b"), SourceAttribution(AI_CONTEXT_PROVIDER, "a"):
        assert marked.with_source(other).source == other
    assert marked.source == SourceAttribution(CHAT_HISTORY, "a")


def test_a_mark_is_taken_off_with_whatever_stands_in_its_place() -> None:
    message = ChatMessage(role="user", additional_properties={"k": 1, "_attribution": {"forged": True}})
    assert json.dumps(message.without_source().additional_properties) == '{"k": 1}'
    marked = ChatMessage.user("hi").with_source(SourceAttribution(CHAT_HISTORY))
    assert marked.without_source() == ChatMessage.user("hi")
    plain = ChatMessage.user("hi")
    assert plain.without_source() is plain
