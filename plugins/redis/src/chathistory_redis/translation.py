"""What the driver raises, as an error of ours.

The driver's and the server's own words may repeat what was sent, so only their error code goes on, and no cause.
"""

import builtins
import re
from ssl import SSLCertVerificationError

from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ClusterError,
    ConnectionError,  # noqa: A004 - the driver's names
    MasterDownError,
    MaxConnectionsError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
    TimeoutError,  # noqa: A004
    TryAgainError,
)

from chathistory_core import BackendError, BackendUnavailableError, ChatHistoryError, ConfigurationError

DRIVER_ERRORS = (RedisError, RedisClusterException, OSError)
"""All that the driver raises but for wrong use."""

_ANSWERS: dict[str, tuple[type[ChatHistoryError], str]] = {
    "AUTH": (ConfigurationError, "it does not let this user in: give the right user name and password"),
    "NOPERM": (ConfigurationError, "this user may not do that: grant it the commands and keys that the README names"),
    "OOM": (BackendUnavailableError, "it is out of memory: raise its `maxmemory`, or clear conversations"),
    "READONLY": (BackendUnavailableError, "it is a read-only replica: connect to the primary"),
    "LOADING": (BackendUnavailableError, "it is still loading its data"),
    "BUSY": (BackendUnavailableError, "it is busy with a script of another client"),
    "TRYAGAIN": (BackendUnavailableError, "the cluster is moving the conversation to another node"),
    "CLUSTERDOWN": (BackendUnavailableError, "the cluster is down"),
    "MASTERDOWN": (BackendUnavailableError, "it is a replica that has lost its primary"),
    "NOREPLICAS": (BackendUnavailableError, "fewer replicas are there than it must write to"),
    "MISCONF": (BackendUnavailableError, "it cannot save to its disk and takes no writes: see its log"),
    "MOVED": (ConfigurationError, "it is a node of a cluster: open it with `cluster`, or give a cluster's client"),
    "NOCLUSTER": (ConfigurationError, "it is no node of a cluster: leave `cluster` out, or give another client"),
    "CERTIFICATE": (
        ConfigurationError,
        "its certificate is not trusted for this host: name the host as in it, or its authority in SSL_CERT_FILE",
    ),
    "WRONGTYPE": (BackendError, "a key of another application stands where ours would: choose another namespace"),
}
_CODE = re.compile(r"\b({})\b".format("|".join(_ANSWERS)))

_CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (AuthenticationError, "AUTH"),
    (AuthorizationError, "AUTH"),
    (NoPermissionError, "NOPERM"),
    (OutOfMemoryError, "OOM"),
    (ReadOnlyError, "READONLY"),
    (BusyLoadingError, "LOADING"),
    (TryAgainError, "TRYAGAIN"),
    (AskError, "MOVED"),  # and MovedError; the client of a cluster follows both
    (MasterDownError, "MASTERDOWN"),
    (ClusterDownError, "CLUSTERDOWN"),  # a class of which the one above is a part
)


def translate(error: Exception, action: str) -> ChatHistoryError:
    """The error to raise from None; `action` says what was tried and on what, without content."""
    kind, why = _explain(error)
    return kind(f"the Redis server did not {action}: {why}")


def _refuses_certificate(error: BaseException | None) -> bool:
    while error is not None and not isinstance(error, SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error is not None


def _explain(error: BaseException) -> tuple[type[ChatHistoryError], str]:
    if _refuses_certificate(error):
        return _ANSWERS["CERTIFICATE"]
    if isinstance(error, ConnectionError) and isinstance(error.__cause__, RedisError):
        error = error.__cause__  # what went wrong while the connection was made
    for kind, code in _CLASSES:
        if isinstance(error, kind):
            return _ANSWERS[code]
    if isinstance(error, ResponseError):
        found = _CODE.search(str(error))  # an error inside a script has its code in the middle
        return _ANSWERS[found[1]] if found else (BackendError, "it answered with an error that has no known code")
    if isinstance(error, MaxConnectionsError):
        return BackendUnavailableError, "all connections of the client are in use: let its pool have more"
    if isinstance(error, RedisClusterException | ClusterError):
        if "Cluster mode is not enabled" in str(error):
            return _ANSWERS["NOCLUSTER"]
        return BackendUnavailableError, "the cluster has no node that answers for this"
    if isinstance(error, TimeoutError | builtins.TimeoutError):
        return BackendUnavailableError, "it did not answer in time"
    if isinstance(error, ConnectionError | OSError):
        return BackendUnavailableError, f"the connection failed ({error})"
    return BackendError, f"the driver raised {type(error).__name__}"
