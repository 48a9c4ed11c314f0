"""Messages in few words."""

from chathistory_core.messages import (
    ChatMessage,
    Content,
    FunctionCallContent,
    FunctionResultContent,
    McpServerToolCallContent,
    McpServerToolResultContent,
    TextContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)

SYSTEM, USER, ASSISTANT = ChatMessage.system, ChatMessage.user, ChatMessage.assistant


def call(call_id: str, *, executed: bool = False) -> FunctionCallContent:
    """`executed` is .NET's mark of a call that the agent has executed."""
    return FunctionCallContent(call_id=call_id, name="look", arguments={"at": call_id}, informational_only=executed)


def result(call_id: str, value: str = "seen") -> FunctionResultContent:
    return FunctionResultContent(call_id=call_id, result=value)


def request(request_id: str, call_id: str) -> ToolApprovalRequestContent:
    return ToolApprovalRequestContent(request_id=request_id, tool_call=call(call_id))


def response(request_id: str, call_id: str, *, approved: bool = True) -> ToolApprovalResponseContent:
    return ToolApprovalResponseContent(request_id=request_id, tool_call=call(call_id), approved=approved)


def hosted(call_id: str) -> McpServerToolCallContent:
    return McpServerToolCallContent(call_id=call_id, name="theirs")


def hosted_result(call_id: str) -> McpServerToolResultContent:
    return McpServerToolResultContent(call_id=call_id)


def text(words: str) -> TextContent:
    return TextContent(text=words)


def reasoning(words: str = "hm") -> TextReasoningContent:
    return TextReasoningContent(text=words)


def says(role: str, *contents: Content) -> ChatMessage:
    return ChatMessage(role=role, contents=contents)


def calls(*ids: str) -> ChatMessage:
    """An assistant's message with nothing but calls."""
    return says("assistant", *map(call, ids))


def results(*ids: str) -> ChatMessage:
    """A tool message with nothing but results."""
    return says("tool", *map(result, ids))
