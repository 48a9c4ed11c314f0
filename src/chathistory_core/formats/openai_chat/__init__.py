"""`openai-chat`: the messages of OpenAI's Chat Completions and of the many servers that speak it.

`load` makes messages of what the client has, `dump` makes what it sends. The client's object is the message's origin
and is stored and sent again as it came. In the model, text is text; media are data, URIs and hosted files; a refusal is
an error of the code `Refusal`; a call keeps the text of its arguments; `developer` stays a role of its own. What the
object holds beyond the model, such as a vendor's members, stands under `additional_properties["openai-chat"]` of the
message or the content it belongs to, so that a changed copy takes it along.
"""

from chathistory_core.formats.openai_chat.client import decode, dump, load, load_chunks
from chathistory_core.formats.openai_chat.leftovers import NAME
from chathistory_core.formats.openai_chat.objects import Given

name = NAME

__all__ = ["Given", "decode", "dump", "load", "load_chunks", "name"]
