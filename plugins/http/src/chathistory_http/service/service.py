"""What all paths of the service work with."""

from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from chathistory_core import ChatHistoryBackend, Limits
from chathistory_http.service.access import Access
from chathistory_http.service.call import Call
from chathistory_http.service.limits import Bodies
from chathistory_http.service.tokens import Right
from chathistory_http.service.transcript import Transcript
from chathistory_http.wire.keys import key_in_path
from chathistory_http.wire.problems import ProblemError


class Service(NamedTuple):
    """A backend, and what stands before it."""

    backend: ChatHistoryBackend
    access: Access | None
    bodies: Bodies
    transcript: Transcript
    limits: Limits

    def let_in(self, call: Call, right: Right | None, key: str | None = None) -> None:
        """Let the call pass, or raise the `ProblemError` that tells why not."""
        if self.access is not None:
            self.access.check(call.header("authorization"), right, key, address=call.address)

    def visible(self, call: Call, prefix: str) -> str | None:
        """Of the keys that begin with `prefix` those that the caller may see: their prefix, or None."""
        return prefix if self.access is None else self.access.visible_prefix(call.header("authorization"), prefix)

    def body(self, call: Call) -> AbstractAsyncContextManager[bytes]:
        """The call's body, which is in memory until the block is left.

        Raises:
            ProblemError: it is too large or does not come.
        """
        return self.bodies.read(call.single("content-length"), call.receive)


def key_of(call: Call, below: bytes) -> str | None:
    """The key that the call names in its path, below `below`, or as `?key=`; None where it names none.

    Raises:
        ProblemError: bad-request, where it names two, or one that cannot be read.
    """
    path = call.raw_path
    given = call.query.get("key")
    if path in (below, below + b"/"):
        return given
    if not path.startswith(below + b"/"):
        raise ProblemError("not-found", "the path is spelled in another way than it is read")
    if given is not None:
        raise ProblemError("bad-request", "the key stands in the path and in the query: send one of them")
    return key_in_path(path[len(below) + 1 :])
