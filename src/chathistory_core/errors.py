"""Every error this package raises.

::

    ChatHistoryError
    ├── ConfigurationError (ValueError)
    ├── InvalidKeyError (ValueError)
    ├── BackendLoadError
    │   ├── BackendNotFoundError
    │   ├── BackendBrokenError
    │   ├── AmbiguousBackendError
    │   └── IncompatibleBackendError
    ├── RecordError
    │   ├── EncodeError
    │   ├── DecodeError
    │   ├── CorruptRecordError
    │   ├── UnknownFormatError
    │   ├── TooLargeError
    │   └── UnpairedCallsError
    └── BackendError
        ├── BackendUnavailableError
        ├── BackendStateError
        ├── RevisionConflictError
        ├── TurnConflictError
        └── EpochChangedError

A message says what failed, on what, and what to do. It never holds message content or a password. All of them pickle.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from chathistory_core.provider import InvokedContext
    from chathistory_core.records import Written


class ChatHistoryError(Exception):
    """The root of the tree."""

    retryable: bool = False
    """Whether the same call, unchanged, may succeed."""
    unsaved: "tuple[InvokedContext, ...]" = ()
    """Of an error of saving: the runs that are not stored, to be given to `invoked` again. Never printed or pickled."""

    def __reduce__(self) -> tuple[object, ...]:
        state = {name: value for name, value in vars(self).items() if name != "unsaved"}
        return type(self), self.args, state


class ConfigurationError(ChatHistoryError, ValueError):
    """A setting is unknown, missing or out of range."""


class InvalidKeyError(ChatHistoryError, ValueError):
    """A key, prefix, scope part or turn id is not one that every backend can keep."""


class BackendLoadError(ChatHistoryError):
    """A backend chosen by name cannot be loaded."""


class BackendNotFoundError(BackendLoadError):
    """No installed distribution offers a backend of this name."""


class BackendBrokenError(BackendLoadError):
    """The distribution that offers the backend fails to import or offers something else."""


class AmbiguousBackendError(BackendLoadError):
    """Two distributions offer a backend of this name."""


class IncompatibleBackendError(BackendLoadError):
    """The backend was written for another version of the plugin contract."""


class RecordError(ChatHistoryError):
    """A message cannot become a record, or a record no message."""


class EncodeError(RecordError):
    """A message holds what no record can.

    `path` is the message's index and the place inside it; names that may be content are left out, or `…`.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"message {self.path} cannot be stored: {self.reason}"


class DecodeError(RecordError):
    """What was given to a format is not of that format."""

    def __init__(self, format: str, reason: str) -> None:  # noqa: A002 - the record's field has this name
        super().__init__(format, reason)
        self.format = format
        self.reason = reason

    def __str__(self) -> str:
        return f"not {self.format}: {self.reason}"


class CorruptRecordError(RecordError):
    """A stored record is not what its format says."""

    def __init__(self, key: str, position: int, reason: str = "") -> None:
        super().__init__(key, position, reason)
        self.key = key
        self.position = position
        self.reason = reason

    def __str__(self) -> str:
        why = f": {self.reason}" if self.reason else ""
        return f"the record at position {self.position} of conversation {self.key!r} cannot be read{why}"


class UnknownFormatError(RecordError):
    """No format of this name is known to the codec."""

    def __init__(self, format: str, known: tuple[str, ...] = ()) -> None:  # noqa: A002 - the record's field has this name
        super().__init__(format, known)
        self.format = format
        self.known = known

    def __str__(self) -> str:
        known = f"; it knows {', '.join(self.known)}" if self.known else ""
        return f"the codec has no format {self.format!r}{known}"


class TooLargeError(RecordError):
    """A write is larger than the backend's limits, or what a run would load larger than the provider's."""


class UnpairedCallsError(RecordError):
    """A run would be given calls without a result, or results without a call."""

    def __init__(self, key: str, calls: int, results: int) -> None:
        super().__init__(key, calls, results)
        self.key = key
        self.calls = calls
        self.results = results

    def __str__(self) -> str:
        return (
            f"conversation {self.key!r} has {self.calls} calls without a result and {self.results} results without a "
            'call, which no model takes: give the provider `repair="drop"` or `repair="answer"`'
        )


class BackendError(ChatHistoryError):
    """A backend did not do what it was asked."""


class BackendUnavailableError(BackendError):
    """The store cannot be reached, is locked or full.

    Whether a write happened may be unknown: repeat it under the same turn id.
    """

    retryable = True


class BackendStateError(BackendError):
    """The backend is closed, open already, or belongs to another event loop, thread or process."""


class RevisionConflictError(BackendError):
    """The conversation is not at the expected revision."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"conversation {self.key!r} is not at the expected revision: read it again and decide anew"


class TurnConflictError(BackendError):
    """The turn id is taken by another write; `written` is what that one got."""

    def __init__(self, key: str, turn_id: str, written: "Written") -> None:
        super().__init__(key, turn_id, written)
        self.key = key
        self.turn_id = turn_id
        self.written = written

    def __str__(self) -> str:
        return (
            f"turn {self.turn_id!r} of conversation {self.key!r} is stored with other records or by another operation: "
            "a new turn needs a new turn id"
        )


class EpochChangedError(BackendError):
    """Records of the conversation were taken away (replaced, cleared or expired) since it was read."""

    def __init__(self, key: str, reason: str = "records were taken away since it was read: read it again") -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return f"conversation {self.key!r}: {self.reason}"
