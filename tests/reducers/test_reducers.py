"""What each reducer shows, by itself."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from chathistory_core.messages import (
    ChatMessage,
    CodeInterpreterToolCallContent,
    CodeInterpreterToolResultContent,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    UsageContent,
    UsageDetails,
)
from chathistory_core.reducers import (
    SUMMARY_MARK,
    SUMMARY_PROMPT,
    CountingReducer,
    Reducer,
    ReducerPipeline,
    SummarizingReducer,
    ToolResultReducer,
    WindowReducer,
    is_summary,
    summary_message,
    tool_lines,
)
from chathistory_core.views.windows import Window

from .talk import ASSISTANT, SYSTEM, TOOL, USER, Model, call, reducer

DEVELOPER = ChatMessage(role="developer", contents=[TextContent(text="more rules")])


def reduced(reducer: Reducer, *messages: ChatMessage) -> list[ChatMessage]:
    return list(asyncio.run(reducer.reduce(messages)))


def texts(messages: Sequence[ChatMessage]) -> list[str]:
    return [message.text for message in messages]


def asks(*calls: FunctionCallContent) -> ChatMessage:
    return ChatMessage(role="assistant", contents=calls)


def turns(start: int, stop: int) -> list[ChatMessage]:
    return [one for number in range(start, stop) for one in (USER(f"q{number}"), ASSISTANT(f"a{number}"))]


ROUND = [asks(call("c1", "weather", city="Rome"), call("c2", "time")), TOOL("c2", "noon"), TOOL("c1", {"sky": "blue"})]


@pytest.mark.parametrize("count", [0, -1, True, 1.5])
def test_a_count_is_a_number_from_1(count: int) -> None:
    with pytest.raises(ValueError, match="from 1"):
        CountingReducer(count)


def test_nothing_is_reduced_to_nothing() -> None:
    assert reduced(CountingReducer(1)) == []
    assert reduced(reducer(Model())) == []
    assert reduced(ToolResultReducer()) == []


def test_counting_keeps_the_leading_system_messages_and_the_newest_others() -> None:
    messages = [SYSTEM("rules"), DEVELOPER, *turns(1, 4)]
    assert texts(reduced(CountingReducer(3), *messages)) == ["rules", "more rules", "a2", "q3", "a3"]
    assert texts(reduced(CountingReducer(1), *messages)) == ["rules", "more rules", "a3"]
    assert reduced(CountingReducer(6), *messages) == messages
    assert reduced(CountingReducer(1), SYSTEM("rules")) == [SYSTEM("rules")]


def test_counting_keeps_a_tool_round_whole_or_leaves_it_out() -> None:
    messages = [USER("q1"), *ROUND, ASSISTANT("a1"), USER("q2")]
    assert texts(reduced(CountingReducer(4), *messages)) == ["a1", "q2"]
    assert reduced(CountingReducer(5), *messages) == messages[1:]
    assert reduced(CountingReducer(1), *messages[:4]) == ROUND


def test_a_window_reduces_by_turns_tokens_and_bytes_too() -> None:
    messages = turns(1, 4)
    assert texts(reduced(WindowReducer(Window(turns=1)), *messages)) == ["q3", "a3"]
    assert texts(reduced(WindowReducer(Window(tokens=4, count_tokens=lambda _: 2)), *messages)) == ["q3", "a3"]
    with pytest.raises(TypeError, match="Window"):
        WindowReducer(20)  # type: ignore[arg-type]


def test_old_tool_rounds_become_a_message_with_a_line_for_each_call() -> None:
    said = ChatMessage(
        role="assistant",
        author_name="Ada",
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        contents=[TextReasoningContent(text="hm"), TextContent(text="Let me look."), call("c", "weather", city="Bonn")],
    )
    newest = [asks(call("c1")), TOOL("c1", "x")]
    view = reduced(ToolResultReducer(keep=1), USER("q"), *ROUND, said, TOOL("c", "rain"), ASSISTANT("a"), *newest)
    assert texts(view[:4]) == [
        "q",
        '[Tool Calls]\nweather({"city": "Rome"}): {"sky": "blue"}\ntime(): noon',
        'Let me look.[Tool Calls]\nweather({"city": "Bonn"}): rain',
        "a",
    ]
    assert view[4:] == newest
    assert (view[2].role, view[2].author_name, view[2].created_at) == ("assistant", "Ada", said.created_at)


def test_a_round_that_is_not_complete_or_waits_stays_whole() -> None:
    dangling = [asks(call("c1"), call("c2")), TOOL("c1", "x"), USER("well?")]
    waiting = [
        ChatMessage(role="assistant", contents=[ToolApprovalRequestContent(request_id="r", tool_call=call("c3"))])
    ]
    messages = [*dangling, *waiting]
    assert reduced(ToolResultReducer(keep=0), *messages) == messages


def test_a_tool_s_message_is_gone_whole() -> None:
    result = FunctionResultContent(call_id="c", result="x")
    messages = [asks(call("c")), ChatMessage(role="tool", contents=[result, TextContent(text="beside it")])]
    view = reduced(ToolResultReducer(keep=0), *messages)
    assert [(message.role, message.text) for message in view] == [("assistant", "[Tool Calls]\nlook(): x")]


def test_what_a_person_said_in_a_round_stays() -> None:
    request = ToolApprovalRequestContent(request_id="r", tool_call=call("c"))
    asked = ChatMessage(role="assistant", author_name="Ada", contents=[request])
    answer = ToolApprovalResponseContent(request_id="r", tool_call=call("c"), approved=True)
    messages = [
        asked,
        USER("what is that?"),
        ChatMessage(role="user", contents=[answer, TextContent(text="go on")]),
        asks(call("c")),
        TOOL("c", "done"),
    ]
    view = reduced(ToolResultReducer(keep=0), *messages)
    assert texts(view) == ["what is that?", "go on", "[Tool Calls]\nlook(): done"]
    assert view[2].author_name == "Ada"
    assert view[0] is messages[1]
    assert [message.role for message in view] == ["user", "user", "assistant"]


def test_calls_that_share_an_id_have_their_own_results() -> None:
    messages = [asks(call("c", "one"), call("c", "two")), TOOL("c", 1), TOOL("c", 2)]
    again = [asks(call("c", "three")), TOOL("c", 3)]
    assert tool_lines([*messages, *again]) == "[Tool Calls]\none(): 1\ntwo(): 2\nthree(): 3"


def test_a_line_is_a_line_and_not_too_long() -> None:
    code = CodeInterpreterToolCallContent(call_id="i", inputs=[TextContent(text="print(1)\nprint(2)")])
    image = DataContent(uri="data:image/png;base64,AQID")
    outputs = CodeInterpreterToolResultContent(call_id="i", outputs=[TextContent(text="1\n2"), image])
    words = FunctionCallContent(call_id="c", name="say", arguments_text="{not json\n}")
    usage = UsageContent(details=UsageDetails())
    messages = [ChatMessage(role="assistant", contents=[code, outputs, words, usage]), TOOL("c", "x" * 300)]
    assert tool_lines(messages).split("\n") == [
        "[Tool Calls]",
        "codeInterpreter(print(1) print(2)): 1 2 [Data]",
        f"say({{not json }}): {'x' * 199}…",
    ]
    assert tool_lines(messages, longest=400).endswith("x" * 300)


def test_a_format_of_one_s_own_says_what_is_told_of_a_round() -> None:
    rounds = ToolResultReducer(keep=0, format=lambda messages: f"{len(messages)} messages")
    assert texts(reduced(rounds, USER("q"), *ROUND)) == ["q", "3 messages"]


def test_tool_rounds_are_left_alone_as_long_as_all_fits() -> None:
    messages = [USER("q"), *ROUND]
    assert reduced(ToolResultReducer(keep=0, above=Window(messages=4)), *messages) == messages
    assert len(reduced(ToolResultReducer(keep=0, above=Window(messages=3)), *messages)) == 2


@pytest.mark.parametrize("keep", [-1, True, 1.5])
def test_how_many_rounds_are_kept_is_a_number_from_0(keep: int) -> None:
    with pytest.raises(ValueError, match="from 0"):
        ToolResultReducer(keep=keep)
    with pytest.raises(TypeError, match="format"):
        ToolResultReducer(format="line")  # type: ignore[arg-type]


def test_a_summary_stands_behind_the_system_messages_and_is_marked_as_in_dotnet(model: Model) -> None:
    view = reduced(reducer(model), SYSTEM("rules"), *turns(1, 4))
    assert texts(view) == ["rules", "[Summary]\n<q1 a1 q2 a2>", "q3", "a3"]
    assert view[1].role == "assistant"
    assert view[1].additional_properties == {SUMMARY_MARK: True}
    assert [is_summary(message) for message in view] == [False, True, False, False]
    assert not is_summary(USER("x").model_copy(update={"additional_properties": {SUMMARY_MARK: True}}))


def test_by_default_messages_are_summarised_when_they_are_twice_what_is_kept(model: Model) -> None:
    one = SummarizingReducer(model)
    assert len(reduced(one, *turns(1, 21))) == 40
    assert len(reduced(one, *turns(1, 22))) == 21
    one = SummarizingReducer(model, keep=Window(turns=1))
    assert len(reduced(one, *turns(1, 3))) == 4
    assert len(reduced(one, *turns(1, 4))) == 3


def test_nothing_is_summarised_as_long_as_all_fits(model: Model) -> None:
    messages = [SYSTEM("rules"), SYSTEM("more"), *turns(1, 3)]
    assert reduced(reducer(model, keep=2, above=4), *messages) == messages
    assert model.asked == []


def test_a_summary_before_the_messages_goes_into_the_next_one(model: Model) -> None:
    view = reduced(reducer(model), SYSTEM("rules"), summary_message("of old"), *turns(1, 4))
    assert texts(view) == ["rules", "[Summary]\n<of old q1 a1 q2 a2>", "q3", "a3"]


def test_one_summary_counts_and_whatever_else_is_marked_as_one_is_a_message(model: Model) -> None:
    view = reduced(reducer(model), summary_message("of old"), summary_message("of mine"), *turns(1, 3))
    assert texts(view) == ["[Summary]\n<of old of mine q1 a1>", "q2", "a2"]


def test_a_cut_is_made_before_a_user_s_message_where_there_is_room(model: Model) -> None:
    messages = [*turns(1, 3), USER("q3"), ASSISTANT("a3"), ASSISTANT("b3"), ASSISTANT("c3")]
    assert texts(reduced(reducer(model, keep=2, above=4), *messages))[1:] == ["q3", "a3", "b3", "c3"]
    assert texts(reduced(reducer(model, keep=2, above=3), *messages))[1:] == ["b3", "c3"]


def test_a_model_that_is_given_little_at_once_is_asked_again_and_again(model: Model) -> None:
    one = SummarizingReducer(model, keep=Window(messages=2), at_once=Window(messages=4))
    view = reduced(one, SYSTEM("rules"), *turns(1, 8))
    assert texts(view) == ["rules", "[Summary]\n<<<q1 a1 q2 a2> q3 a3 q4 a4> q5 a5 q6 a6>", "q7", "a7"]
    assert [len(asked) for asked in model.asked] == [4, 5, 5]
    least = SummarizingReducer(model, keep=Window(messages=2), at_once=Window(messages=1))
    model.asked.clear()
    assert texts(reduced(least, *turns(1, 3), *ROUND, *turns(3, 4)))[1:] == ["q3", "a3"]
    assert [len(asked) for asked in model.asked] == [1, 2, 2, 2, 2]


def test_a_round_at_the_cut_stays_whole(model: Model) -> None:
    view = reduced(reducer(model, keep=2, above=4), *turns(1, 3), USER("q3"), *ROUND)
    assert view[1:] == [USER("q3"), *ROUND]
    view = reduced(reducer(model, keep=2, above=3), *turns(1, 3), USER("q3"), *ROUND)
    assert view[1:] == ROUND


def test_nothing_behind_a_pending_approval_is_summarised_as_long_as_that_is_not_too_much(model: Model) -> None:
    asked = ChatMessage(role="assistant", contents=[ToolApprovalRequestContent(request_id="r", tool_call=call("c"))])
    messages = [*turns(1, 3), USER("delete it"), asked, USER("wait"), ASSISTANT("I do"), USER("well")]
    assert reduced(reducer(model, keep=2, above=4), *messages)[1:] == messages[5:]
    assert reduced(reducer(model, keep=2, above=3), *messages)[1:] == messages[6:]
    assert reduced(reducer(model, keep=1, above=4), asked, *turns(1, 4))[1:] == turns(3, 4)


def test_the_model_sees_tool_rounds_as_text_and_the_prompt_last() -> None:
    seen: list[ChatMessage] = []

    async def answers(messages: Sequence[ChatMessage]) -> str:
        seen.extend(messages)
        return "well"

    thought = ChatMessage(role="assistant", contents=[TextReasoningContent(text="hm"), TextContent(text="a1")])
    reduced(
        SummarizingReducer(answers, keep=Window(messages=1), above=Window(messages=1)),
        SYSTEM("rules"),
        USER("q1"),
        asks(call("c")),
        TOOL("c", "y" * 500),
        ChatMessage(role="assistant", contents=[TextReasoningContent(text="hm")]),
        thought,
        USER("q2"),
    )
    assert [message.role for message in seen] == ["user", "assistant", "assistant", "user"]
    assert texts(seen) == ["q1", f"[Tool Calls]\nlook(): {'y' * 500}", "a1", SUMMARY_PROMPT]


def test_a_prompt_of_one_s_own_is_what_the_model_is_asked() -> None:
    async def answers(messages: Sequence[ChatMessage]) -> str:
        return messages[-1].text

    asking = SummarizingReducer(answers, keep=Window(messages=1), above=Window(messages=1), prompt="In short?")
    assert texts(reduced(asking, *turns(1, 2))) == ["[Summary]\nIn short?", "a1"]


def test_an_answer_that_is_no_text_is_a_mistake_in_the_program() -> None:
    async def answers(messages: Sequence[ChatMessage]) -> str:
        return None  # type: ignore[return-value]

    with pytest.raises(TypeError, match="NoneType"):
        reduced(SummarizingReducer(answers, keep=Window(messages=1), above=Window(messages=1)), *turns(1, 3))


def test_wrong_arguments_of_a_summarising_reducer_are_told_at_once() -> None:
    with pytest.raises(TypeError, match="model"):
        SummarizingReducer("gpt")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'later'"):
        SummarizingReducer(Model(), trigger="later")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="nothing would be summarised"):
        SummarizingReducer(Model(), keep=Window(messages=20, turns=3), above=Window(messages=10))
    with pytest.raises(ValueError, match="name"):
        SummarizingReducer(Model(), name="")


def test_each_reducer_of_a_pipeline_sees_the_view_before_it(model: Model) -> None:
    pipeline = ReducerPipeline(ToolResultReducer(keep=0), CountingReducer(2), reducer(model, keep=1, above=1))
    view = reduced(pipeline, SYSTEM("rules"), *turns(1, 3), *ROUND)
    assert len(view) == 3
    assert model.asked == [["a2"]]


def test_a_pipeline_has_reducers_and_at_most_one_that_makes_summaries(model: Model) -> None:
    with pytest.raises(ValueError, match="at least one"):
        ReducerPipeline()
    with pytest.raises(ValueError, match="summaries"):
        ReducerPipeline(reducer(model), ReducerPipeline(reducer(model)))
    ReducerPipeline(reducer(model), ReducerPipeline(CountingReducer(3)))


def test_no_reducer_shows_content_when_it_is_printed(model: Model) -> None:
    for one in (reducer(model), ToolResultReducer(), CountingReducer(3), ReducerPipeline(CountingReducer(3))):
        assert repr(one).startswith(f"<{type(one).__name__}")
