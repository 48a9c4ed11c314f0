"""The name `https`: the same backend, and nothing goes without TLS."""

from typing import ClassVar

from chathistory_core.plugin import BackendPlugin, hookimpl
from chathistory_http.plugin import HTTPOptions


class HTTPSOptions(HTTPOptions):
    """The same for the name `https`: nothing goes without TLS, so there is no default but the environment's URL."""

    url: str
    _schemes: ClassVar[tuple[str, ...]] = ("https",)


@hookimpl
def chathistory_backend() -> BackendPlugin:
    """The client of the service, with TLS."""
    return BackendPlugin(contract=1, options=HTTPSOptions)
