"""What went wrong, as `application/problem+json` and as an error of ours: both ways, in one place."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from chathistory_core import (
    BackendError,
    BackendUnavailableError,
    ChatHistoryError,
    ConfigurationError,
    CorruptRecordError,
    EncodeError,
    EpochChangedError,
    InvalidKeyError,
    RevisionConflictError,
    TooLargeError,
    TurnConflictError,
    UnknownFormatError,
)
from chathistory_http.wire.json_text import Member, text_of
from chathistory_http.wire.writes import read_written, written_members

MEDIA_TYPE: Final = "application/problem+json"
TYPE: Final = "urn:chathistory:problem:"
"""What each `type` begins with; its name follows."""

PROBLEMS: Final[Mapping[str, tuple[int, str]]] = MappingProxyType({
    "bad-request": (400, "The request cannot be read"),
    "unauthorized": (401, "A token that is known here is needed"),
    "forbidden": (403, "The token does not give this right"),
    "not-found": (404, "There is nothing at this path"),
    "method-not-allowed": (405, "The path does not take this method"),
    "unreadable-record": (406, "A stored record cannot be given as a message"),
    "timeout": (408, "The body did not come in time"),
    "turn-conflict": (409, "The turn id is taken by another write"),
    "revision-conflict": (412, "The conversation is not at the expected revision"),
    "epoch-changed": (412, "Records of the conversation were taken away"),
    "too-large": (413, "The write is too large"),
    "unsupported-media-type": (415, "The body is of a type that is not read here"),
    "misdirected": (421, "The service does not answer under this name"),
    "invalid-key": (422, "The key, prefix or turn id cannot be kept"),
    "invalid-message": (422, "A message cannot be stored"),
    "invalid-record": (422, "A record cannot be stored"),
    "too-many-requests": (429, "Too many requests"),
    "head-too-large": (431, "The request line and the headers are too large"),
    "internal": (500, "The service has failed"),
    "unavailable": (503, "The store cannot be reached"),
})  # fmt: skip
"""Status and title of each problem, by name."""

RETRY_AFTER: Final = 1
"""Seconds to wait for a store that is not there."""


class ProblemError(Exception):
    """A request is refused; `name` is one of `PROBLEMS`, `detail` holds no content, `members` stand beside it."""

    def __init__(
        self,
        name: str,
        detail: str,
        *,
        members: Mapping[str, Member] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name, detail)
        self.name = name
        self.detail = detail
        self.members = members or {}
        self.headers = headers or {}

    @property
    def status(self) -> int:
        """The answer's."""
        return PROBLEMS[self.name][0]

    def __str__(self) -> str:
        return f"{self.name}: {self.detail}"


def write_problem(problem: ProblemError) -> bytes:
    """The body of the answer."""
    status, title = PROBLEMS[problem.name]
    body = {
        "type": TYPE + problem.name,
        "title": title,
        "status": status,
        "detail": problem.detail,
        **problem.members,
    }
    return text_of(body)


def problem_of(error: ChatHistoryError) -> ProblemError:
    """The problem that stands for a backend's or codec's error.

    What a store says of itself (addresses, users) is nobody's business outside: those details are left out.
    """
    text = str(error)
    match error:
        case TurnConflictError():
            return ProblemError("turn-conflict", text, members={"written": written_members(error.written)})
        case RevisionConflictError():
            return ProblemError("revision-conflict", text)
        case EpochChangedError():
            return ProblemError("epoch-changed", text)
        case TooLargeError():
            return ProblemError("too-large", text)
        case InvalidKeyError():
            return ProblemError("invalid-key", text)
        case CorruptRecordError():
            return ProblemError("unreadable-record", text, members={"position": error.position})
        case EncodeError():
            return invalid_message(error.path, error.reason)
        case BackendUnavailableError():
            detail = (
                "the store cannot be reached, is locked or full: send the request again, a write under the same turn id"
            )
            return ProblemError("unavailable", detail, headers={"Retry-After": str(RETRY_AFTER)})
        case _:
            return ProblemError("internal", "the service has failed: its log says why")


def invalid_message(path: str, reason: str) -> ProblemError:
    """The problem of a message that cannot be stored; `path` is its index and the place inside it."""
    index, _, inside = path.partition("/")
    members: dict[str, Member] = {
        "index": int(index) if index.isdecimal() else 0,
        "path": f"/{inside}" if inside else "",
    }
    return ProblemError("invalid-message", f"message {path} cannot be stored: {reason}", members=members)


def unknown_format(error: UnknownFormatError, position: int) -> ProblemError:
    """The problem of a stored record that the service cannot decode."""
    detail = f"the record at position {position} is of the format {error.format!r}, which the service does not know"
    return ProblemError("unreadable-record", detail, members={"position": position, "format": error.format})


def error_of(status: int, media_type: str | None, body: bytes, *, key: str = "", turn_id: str = "") -> ChatHistoryError:
    """The error that an answer stands for which is no success; of the service's own words only those go on.

    `key` and `turn_id` are those of the request.
    """
    name, detail, problem = _read(media_type, body)
    match name:
        case "turn-conflict":
            try:
                return TurnConflictError(key, turn_id, read_written(problem.get("written")))
            except ValueError:
                return BackendError(f"the service says no more of the turn {turn_id!r} than that it is taken")
        case "revision-conflict":
            return RevisionConflictError(key)
        case "epoch-changed":
            return EpochChangedError(key)
        case "too-large":
            return TooLargeError(detail)
        case "invalid-key":
            return InvalidKeyError(detail)
        case "invalid-message":
            return _encode_error(problem, detail)
    if status in (401, 403):
        return ConfigurationError(
            f"the service does not let this request pass ({_words(status, detail)}): "
            "give a token with the rights that it needs, and the provider the scope of the token's prefix"
        )
    if status in (408, 429, 502, 503, 504):
        return BackendUnavailableError(f"the service is not available ({_words(status, detail)})")
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return TooLargeError(f"something before the service refuses a request of this size ({_words(status, detail)})")
    return BackendError(f"the service answered with status {_words(status, detail)}")


def _words(status: int, detail: str) -> str:
    return f"{status}: {detail}" if detail else str(status)


def _encode_error(problem: Mapping[str, object], detail: str) -> ChatHistoryError:
    index, path = problem.get("index"), problem.get("path")
    if isinstance(index, int) and isinstance(path, str):
        at = f"{index}{path}"
        return EncodeError(at, detail.removeprefix(f"message {at} cannot be stored: "))
    return BackendError(f"the service refuses a message: {detail}")


def _read(media_type: str | None, body: bytes) -> tuple[str, str, Mapping[str, object]]:
    """Name, detail and members of a problem of ours; nothing of what somebody else says."""
    if (media_type or "").partition(";")[0].strip().lower() != MEDIA_TYPE:
        return "", "", {}
    try:
        problem: object = json.loads(body)
    except (ValueError, RecursionError):
        return "", "", {}
    if not isinstance(problem, dict):
        return "", "", {}
    kind, detail = problem.get("type"), problem.get("detail")
    if not isinstance(kind, str) or not kind.startswith(TYPE):
        return "", "", {}
    return kind.removeprefix(TYPE), detail if isinstance(detail, str) else "", problem
