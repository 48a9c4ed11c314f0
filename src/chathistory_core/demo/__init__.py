"""A model for the example to talk to: scripted, on this machine, unless a real one is named."""

from chathistory_core.demo.endpoint import Endpoint, open_endpoint
from chathistory_core.demo.error import DemoError
from chathistory_core.demo.script import RefusedError, answer
from chathistory_core.demo.server import Answer, serve

__all__ = ["Answer", "DemoError", "Endpoint", "RefusedError", "answer", "open_endpoint", "serve"]
