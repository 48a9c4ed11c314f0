"""`agent-framework`: the messages of Microsoft Agent Framework for Python.

`load` makes messages of the framework's `Message` objects or of their JSON, and `dump` makes what `Message.from_dict`
takes. The framework's JSON is the message's origin and is stored as it came, so that reading it gives the framework's
own object again. In the model, contents are those of the same kind; what the framework has beyond it (a call's `id`, a
content of a kind of its own) stands under `additional_properties["agent-framework"]` of the message or content it
belongs to. The other way round, what the framework has no place for (a message's time, a content of an unknown kind)
stands under `additional_properties["chat-message"]` of its objects, so that nothing is lost in either direction.
"""

from chathistory_core.formats.agent_framework.client import decode, dump, load
from chathistory_core.formats.agent_framework.leftovers import NAME
from chathistory_core.formats.agent_framework.objects import Given, SupportsToDict

name = NAME

__all__ = ["Given", "SupportsToDict", "decode", "dump", "load", "name"]
