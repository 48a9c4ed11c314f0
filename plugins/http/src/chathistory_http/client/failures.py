"""What the driver raises and what no service of ours answers, as an error of ours.

The driver's words may repeat what was sent, so they do not go on, nor does a cause.
"""

from collections.abc import Iterator
from ssl import SSLCertVerificationError
from typing import Final, Literal, NamedTuple

import httpx

from chathistory_core import BackendError, BackendUnavailableError, ChatHistoryError, ConfigurationError
from chathistory_http.client.connecting import where
from chathistory_http.wire import problems

DRIVER_ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, OSError)
"""All that the driver raises but for wrong use."""

_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Nothing of the request has reached anybody."""

_UNKNOWN: Final = "whether it did is unknown, and sent again it would be stored twice: read the conversation first"


class UnknownOutcomeError(BackendError):
    """What was asked for may have been done, and asked for again it would be done twice."""


class Request(NamedTuple):
    """What is asked for, in words for errors."""

    action: str
    """After "did not"."""
    key: str = ""
    turn_id: str = ""
    again: Literal["safe", "takes away", "doubles"] = "safe"
    """What sending it again would do, where it is not known what became of it; only what is safe is repeated."""


def failure(error: Exception, request: Request, url: httpx.URL) -> ChatHistoryError:
    """The error to raise from None for one of `DRIVER_ERRORS`."""
    kind, why = _explain(error)
    if request.again == "doubles" and kind is not ConfigurationError and not isinstance(error, _UNSENT):
        kind, why = UnknownOutcomeError, f"{why}; {_UNKNOWN}"
    return kind(f"the service at {where(url)} did not {request.action}: {why}")


def _explain(error: Exception) -> tuple[type[ChatHistoryError], str]:
    if any(isinstance(cause, SSLCertVerificationError) for cause in _causes(error)):
        return ConfigurationError, (
            "its certificate is not trusted for this host: name the host as in it, or its authority in SSL_CERT_FILE"
        )
    match error:
        case httpx.UnsupportedProtocol() | httpx.InvalidURL() | httpx.LocalProtocolError():
            return ConfigurationError, "its URL, or what the client adds to each request, is none that can be sent"
        case httpx.ProxyError():
            return BackendUnavailableError, "the proxy on the way to it did not pass the request on"
        case httpx.ConnectTimeout() | httpx.ConnectError():
            return BackendUnavailableError, "there is no connection to it: is it running there?"
        case httpx.TimeoutException():
            return BackendUnavailableError, "it did not answer in time"
        case httpx.DecodingError():
            return BackendError, "its answer is compressed in a way that cannot be read"
    return BackendUnavailableError, "the connection broke, or what came was no answer"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refusal(response: httpx.Response, request: Request) -> ChatHistoryError:
    """The error to raise for an answer that is no success."""
    url = response.request.url
    prefix = f"the service at {where(url)} did not {request.action}: "
    if response.has_redirect_location:
        target = where(url.join(response.headers["Location"]))
        return ConfigurationError(
            f"{prefix}it sends elsewhere, to {target}, where no token is taken along: give that URL if it is right"
        )
    error = problems.error_of(
        response.status_code,
        response.headers.get("Content-Type"),
        response.content,
        key=request.key,
        turn_id=request.turn_id,
    )
    if request.again == "doubles" and response.is_server_error:
        return UnknownOutcomeError(f"{prefix}{error}; {_UNKNOWN}")
    if type(error) in (BackendError, BackendUnavailableError, ConfigurationError):
        return type(error)(f"{prefix}{error}")
    return error


def unreadable(response: httpx.Response, request: Request, reason: ValueError) -> ChatHistoryError:
    """The error to raise from None for a success whose body is not what the wire contract says."""
    return BackendError(
        f"the service at {where(response.request.url)} did not {request.action}: its answer cannot be read ({reason}): "
        "is it a chat history service, and nothing before it answers in its place?"
    )
