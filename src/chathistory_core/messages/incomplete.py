"""The mark of a message that is part of an answer which broke off."""

from typing import Final

from chathistory_core.messages.message import ChatMessage

INCOMPLETE_KEY: Final = "_incomplete"
"""The member of `additional_properties` that marks it: true. It is stored, and sent to no model."""


def is_incomplete(message: ChatMessage) -> bool:
    """Whether the message is part of an answer that broke off."""
    return (message.additional_properties or {}).get(INCOMPLETE_KEY) is True


def as_incomplete(message: ChatMessage) -> ChatMessage:
    """The message with the mark; itself where it has it."""
    if is_incomplete(message):
        return message
    properties = {**(message.additional_properties or {}), INCOMPLETE_KEY: True}
    return message.model_copy(update={"additional_properties": properties})
