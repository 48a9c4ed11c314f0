"""`chat-message`, the canonical format: the JSON that Microsoft.Extensions.AI has for a message, and always takes."""

from chathistory_core.formats.chat_message.client import dump, load
from chathistory_core.formats.chat_message.records import decode, encode, name

__all__ = ["decode", "dump", "encode", "load", "name"]
