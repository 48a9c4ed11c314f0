import inspect
import pickle

import pytest

import chathistory_core
from chathistory_core import (
    AmbiguousBackendError,
    BackendBrokenError,
    BackendError,
    BackendLoadError,
    BackendNotFoundError,
    BackendStateError,
    BackendUnavailableError,
    ChatHistoryError,
    ConfigurationError,
    CorruptRecordError,
    DecodeError,
    EncodeError,
    EpochChangedError,
    IncompatibleBackendError,
    InvalidKeyError,
    RecordError,
    RevisionConflictError,
    TooLargeError,
    TurnConflictError,
    UnknownFormatError,
    UnpairedCallsError,
    Written,
)

WRITTEN = Written("r", "e", 7)

ERRORS: list[tuple[ChatHistoryError, tuple[type[Exception], ...], str]] = [
    (ConfigurationError("no such setting"), (ChatHistoryError, ValueError), "no such setting"),
    (InvalidKeyError("no key"), (ChatHistoryError, ValueError), "no key"),
    (BackendNotFoundError("none"), (BackendLoadError,), "none"),
    (BackendBrokenError("broken"), (BackendLoadError,), "broken"),
    (AmbiguousBackendError("two"), (BackendLoadError,), "two"),
    (IncompatibleBackendError("old"), (BackendLoadError,), "old"),
    (EncodeError("2/contents/0", "NaN"), (RecordError,), "message 2/contents/0 cannot be stored: NaN"),
    (DecodeError("openai-chat", "no role"), (RecordError,), "not openai-chat: no role"),
    (
        CorruptRecordError("k'", 7, "no JSON"),
        (RecordError,),
        'the record at position 7 of conversation "k\'" cannot be read: no JSON',
    ),
    (CorruptRecordError("k", 7), (RecordError,), "the record at position 7 of conversation 'k' cannot be read"),
    (UnknownFormatError("x"), (RecordError,), "the codec has no format 'x'"),
    (UnknownFormatError("x", ("a", "b")), (RecordError,), "the codec has no format 'x'; it knows a, b"),
    (TooLargeError("too large"), (RecordError,), "too large"),
    (
        UnpairedCallsError("k", 2, 1),
        (RecordError,),
        (
            "conversation 'k' has 2 calls without a result and 1 results without a call, which no model takes: give "
            'the provider `repair="drop"` or `repair="answer"`'
        ),
    ),
    (BackendUnavailableError("down"), (BackendError,), "down"),
    (BackendStateError("closed"), (BackendError,), "closed"),
    (
        RevisionConflictError("k\n"),
        (BackendError,),
        "conversation 'k\\n' is not at the expected revision: read it again and decide anew",
    ),
    (
        TurnConflictError("k", "t", WRITTEN),
        (BackendError,),
        (
            "turn 't' of conversation 'k' is stored with other records or by another operation: a new turn needs a new "
            "turn id"
        ),
    ),
    (
        EpochChangedError("k"),
        (BackendError,),
        "conversation 'k': records were taken away since it was read: read it again",
    ),
    (EpochChangedError("k", "it was cleared"), (BackendError,), "conversation 'k': it was cleared"),
]

name_of_error = pytest.mark.parametrize(
    ("error", "parents", "text"), ERRORS, ids=[type(error).__name__ for error, _, _ in ERRORS]
)


@name_of_error
def test_every_error_says_what_failed_on_what(
    error: ChatHistoryError, parents: tuple[type[Exception], ...], text: str
) -> None:
    assert str(error) == text


@name_of_error
def test_every_error_stands_in_its_place_of_the_tree(
    error: ChatHistoryError, parents: tuple[type[Exception], ...], text: str
) -> None:
    assert type(error).__bases__ == parents
    assert isinstance(error, ChatHistoryError)


@name_of_error
def test_every_error_pickles_with_what_it_carries(
    error: ChatHistoryError, parents: tuple[type[Exception], ...], text: str
) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), copy.args, vars(copy)) == (str(error), error.args, vars(error))


@name_of_error
def test_only_an_unavailable_backend_is_worth_the_same_call_again(
    error: ChatHistoryError, parents: tuple[type[Exception], ...], text: str
) -> None:
    assert error.retryable == isinstance(error, BackendUnavailableError)


def test_the_table_here_holds_every_error() -> None:
    public = {
        each for each in vars(chathistory_core).values() if inspect.isclass(each) and issubclass(each, ChatHistoryError)
    }
    roots = {ChatHistoryError, BackendLoadError, RecordError, BackendError}
    assert {type(error) for error, _, _ in ERRORS} == public - roots


def test_a_turn_conflict_carries_what_the_stored_turn_got() -> None:
    assert TurnConflictError("k", "t", WRITTEN).written == WRITTEN
