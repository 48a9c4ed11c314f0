"""The message that stands for a summary in a view."""

from collections.abc import Sequence
from typing import Final

from chathistory_core.messages import ChatMessage, TextContent
from chathistory_core.views.windows import leading

SUMMARY_MARK: Final = "_is_summary"
"""The member of `additional_properties` that marks a summary, as in .NET."""

_HEADING: Final = "[Summary]\n"


def summary_message(text: str) -> ChatMessage:
    """An assistant's message that says it: what was summarised may be anybody's words, and gets no higher role."""
    return ChatMessage(
        role="assistant",
        contents=[TextContent(text=_HEADING + text)],
        additional_properties={SUMMARY_MARK: True},
    )


def is_summary(message: ChatMessage) -> bool:
    """Whether it is an assistant's message with the mark."""
    return message.role == "assistant" and (message.additional_properties or {}).get(SUMMARY_MARK) is True


def head_of(messages: Sequence[ChatMessage]) -> tuple[int, int]:
    """Where the pinned system messages at the beginning end, and where the summary behind them does."""
    run = len(leading(messages))
    return run, run + sum(map(is_summary, messages[run : run + 1]))
