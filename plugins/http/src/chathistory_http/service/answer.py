"""What the service answers."""

from typing import Final, NamedTuple

from starlette.types import Send

from chathistory_core import Conversation, Written
from chathistory_http.wire import headers, percent, problems
from chathistory_http.wire.problems import ProblemError, write_problem
from chathistory_http.wire.records import MEDIA_TYPE

Header = tuple[bytes, bytes]

JSON: Final[Header] = (b"content-type", MEDIA_TYPE.encode())
JSON_UTF8: Final[Header] = (b"content-type", b"application/json; charset=utf-8")

_NO_BODY: Final = (204, 304)


class Answer(NamedTuple):
    """Status, headers and body; of a body that is None the length is not said."""

    status: int
    headers: tuple[Header, ...] = ()
    body: bytes | None = b""

    async def send(self, send: Send, *, head: bool = False) -> None:
        """Send it; without the body where only the `head` was asked for."""
        fields = list(self.headers)
        if self.body is not None and self.status not in _NO_BODY:
            fields.append((b"content-length", b"%d" % len(self.body)))
        await send({"type": "http.response.start", "status": self.status, "headers": fields})
        await send({"type": "http.response.body", "body": b"" if head else self.body or b""})


def field(name: str, value: str) -> Header:
    """A header as it is sent; its value is ASCII."""
    return name.lower().encode(), value.encode("ascii")


_ETAG: Final = b"etag"
_EPOCH: Final = headers.EPOCH.lower().encode()
_RECORD_COUNT: Final = headers.RECORD_COUNT.lower().encode()
_FIRST_POSITION: Final = headers.FIRST_POSITION.lower().encode()
_REPLAYED: Final = headers.REPLAYED.lower().encode()
_TURN_ID: Final = headers.TURN_ID.lower().encode()


def head_of(conversation: Conversation) -> tuple[Header, ...]:
    """The headers that tell the head of a conversation; none of one that does not exist."""
    if not conversation.revision:
        return ()
    return (
        (_ETAG, headers.write_etag(conversation.revision).encode()),
        (_EPOCH, percent.encode(conversation.epoch).encode()),
        (_RECORD_COUNT, b"%d" % conversation.record_count),
    )


def result_of(written: Written, turn_id: str) -> tuple[Header, ...]:
    """The headers that tell what a write did."""
    return (
        (_ETAG, headers.write_etag(written.revision).encode()),
        (_EPOCH, percent.encode(written.epoch).encode()),
        (_FIRST_POSITION, b"%d" % written.first_position),
        (_REPLAYED, b"true" if written.replayed else b"false"),
        (_TURN_ID, percent.encode(turn_id).encode()),
    )


def refusal(problem: ProblemError) -> Answer:
    """The answer that tells a problem."""
    fields = (field(name, value) for name, value in problem.headers.items())
    kind = (b"content-type", problems.MEDIA_TYPE.encode())
    return Answer(problem.status, (kind, *fields), write_problem(problem))
