"""Random histories: parallel calls, ids that repeat, missing halves, approvals, reasoning."""

from typing import Any, TypeAlias

from hypothesis import strategies as st

from chathistory_core.messages import (
    ChatMessage,
    FunctionCallContent,
    FunctionResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
    WebSearchToolCallContent,
    WebSearchToolResultContent,
)

Piece: TypeAlias = list[ChatMessage]

IDS = st.sampled_from(["call_0", "call_1", ""])
WORDS = st.text("abc \n", max_size=12)


def called(call_id: str) -> FunctionCallContent:
    return FunctionCallContent(call_id=call_id, name="look", arguments={"at": call_id})


@st.composite
def said(draw: st.DrawFn) -> Piece:
    role = draw(st.sampled_from(["user", "user", "assistant", "assistant", "system", "developer"]))
    return [ChatMessage(role=role, contents=[TextContent(text=draw(WORDS))])]


@st.composite
def rounds(draw: st.DrawFn) -> Piece:
    """A tool round: parallel calls, their results in any order and any number of messages; some may be missing."""
    ids = draw(st.lists(IDS, min_size=1, max_size=3))
    before: list[Any] = [TextReasoningContent(text="hm")] if draw(st.booleans()) else []
    before += [TextContent(text="let me see")] if draw(st.booleans()) else []
    results = draw(st.permutations(ids))
    if draw(st.integers(0, 5)) == 0:
        results = results[1:]
    messages = [ChatMessage(role="assistant", contents=[*before, *map(called, ids)])]
    contents = [FunctionResultContent(call_id=each, result=draw(WORDS)) for each in results]
    if draw(st.booleans()):
        return [*messages, *(ChatMessage(role="tool", contents=[content]) for content in contents)]
    return [*messages, ChatMessage(role="tool", contents=contents)] if contents else messages


@st.composite
def approvals(draw: st.DrawFn) -> Piece:
    """A call that waits for a person's word: pending, or given, with something said before it or not."""
    call_id, request_id = draw(IDS), draw(st.sampled_from(["r0", "r1"]))
    messages = [
        ChatMessage(
            role="assistant",
            contents=[ToolApprovalRequestContent(request_id=request_id, tool_call=called(call_id))],
        )
    ]
    if draw(st.booleans()):
        messages.append(ChatMessage.user("what is that?"))
    if draw(st.booleans()):
        return messages
    answer = ToolApprovalResponseContent(request_id=request_id, tool_call=called(call_id), approved=True)
    return [
        *messages,
        ChatMessage(role="user", contents=[answer]),
        ChatMessage(role="assistant", contents=[called(call_id)]),
        ChatMessage.tool(call_id, "done"),
    ]


ODD: st.SearchStrategy[Piece] = st.sampled_from(
    [
        [ChatMessage.tool("call_0", "nobody asked")],
        [ChatMessage(role="assistant", contents=[TextReasoningContent(text="hm", protected_data="sealed")])],
        [ChatMessage(role="assistant")],
        [
            ChatMessage(
                role="assistant",
                contents=[
                    WebSearchToolCallContent(call_id="w", queries=["q"]),
                    WebSearchToolResultContent(call_id="w", outputs=[TextContent(text="found")]),
                    TextContent(text="so it is"),
                ],
            )
        ],
    ]
)

HISTORIES = st.lists(st.one_of(said(), said(), rounds(), rounds(), approvals(), ODD), max_size=14).map(
    lambda pieces: [message.model_copy(update={"message_id": None}) for piece in pieces for message in piece]
)
