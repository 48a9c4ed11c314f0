"""The chat history service, and the backend and the provider that are its clients."""

from typing import TYPE_CHECKING

from chathistory_http.plugin import HTTPOptions

if TYPE_CHECKING:
    from chathistory_http.client.backend import HTTPBackend
    from chathistory_http.client.provider import RemoteChatHistoryProvider

__all__ = ["HTTPBackend", "HTTPOptions", "RemoteChatHistoryProvider"]


def __getattr__(name: str) -> object:
    """What needs the driver, with the driver: whoever only looks for plugins does not."""
    if name == "HTTPBackend":
        from chathistory_http.client.backend import HTTPBackend

        return HTTPBackend
    if name == "RemoteChatHistoryProvider":
        from chathistory_http.client.provider import RemoteChatHistoryProvider

        return RemoteChatHistoryProvider
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
