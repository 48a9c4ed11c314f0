"""The chat history service."""

from typing import TYPE_CHECKING

from chathistory_http.service.access import Access
from chathistory_http.service.tokens import Token

if TYPE_CHECKING:
    from chathistory_http.service.app import create_app

__all__ = ["Access", "Token", "create_app"]


def __getattr__(name: str) -> object:
    """The application's maker, with the framework that it imports: whoever makes tokens needs none."""
    if name == "create_app":
        from chathistory_http.service.app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
