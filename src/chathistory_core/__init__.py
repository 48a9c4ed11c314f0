"""The history of a conversation with an agent: one contract, any store behind it, any framework in front of it."""

from chathistory_core.backend import ChatHistoryBackend, Order
from chathistory_core.checks import check_page, check_read, check_write
from chathistory_core.codec import Codec, MessageCodec
from chathistory_core.compaction import Compacted
from chathistory_core.conversations import History
from chathistory_core.errors import (
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
)
from chathistory_core.keys import check_key, check_prefix, check_turn_id, prefix_end, scope
from chathistory_core.loading import OnLoadError
from chathistory_core.messages import ChatMessage, is_incomplete
from chathistory_core.opened import Opened
from chathistory_core.opening import open_backend, open_history
from chathistory_core.provider import (
    ChatHistoryProvider,
    InvokedContext,
    InvokingContext,
    MessageFilter,
    check_state_keys,
    exclude_history,
)
from chathistory_core.reading import erase, iter_records, read_on
from chathistory_core.records import (
    NO_REVISION,
    Conversation,
    ConversationSummary,
    Limits,
    Operation,
    Record,
    StoredRecord,
    Written,
    new_revision,
    new_turn_id,
    turn_digest,
)
from chathistory_core.saving.outbox import OnSaveError
from chathistory_core.saving.storing import OnFailure
from chathistory_core.session import AgentSession, ProviderSessionState, StateBag
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.stream import Stream
from chathistory_core.turn import Turn
from chathistory_core.views.pairing import Unit, units
from chathistory_core.views.repair import Repair
from chathistory_core.views.tokens import estimate_tokens, tiktoken_counter
from chathistory_core.views.view import View
from chathistory_core.views.windows import Selection, Window

__all__ = [
    "NO_REVISION",
    "AgentSession",
    "AmbiguousBackendError",
    "BackendBrokenError",
    "BackendError",
    "BackendLoadError",
    "BackendNotFoundError",
    "BackendStateError",
    "BackendUnavailableError",
    "ChatHistoryBackend",
    "ChatHistoryError",
    "ChatHistoryProvider",
    "ChatMessage",
    "Codec",
    "Compacted",
    "ConfigurationError",
    "Conversation",
    "ConversationSummary",
    "CorruptRecordError",
    "DecodeError",
    "EncodeError",
    "EpochChangedError",
    "History",
    "IncompatibleBackendError",
    "InvalidKeyError",
    "InvokedContext",
    "InvokingContext",
    "Limits",
    "MessageCodec",
    "MessageFilter",
    "OnFailure",
    "OnLoadError",
    "OnSaveError",
    "Opened",
    "Operation",
    "Order",
    "ProviderSessionState",
    "Record",
    "RecordError",
    "Repair",
    "RevisionConflictError",
    "Selection",
    "StateBag",
    "StoredChatHistoryProvider",
    "StoredRecord",
    "Stream",
    "TooLargeError",
    "Turn",
    "TurnConflictError",
    "Unit",
    "UnknownFormatError",
    "UnpairedCallsError",
    "View",
    "Window",
    "Written",
    "check_key",
    "check_page",
    "check_prefix",
    "check_read",
    "check_state_keys",
    "check_turn_id",
    "check_write",
    "erase",
    "estimate_tokens",
    "exclude_history",
    "is_incomplete",
    "iter_records",
    "new_revision",
    "new_turn_id",
    "open_backend",
    "open_history",
    "prefix_end",
    "read_on",
    "scope",
    "tiktoken_counter",
    "turn_digest",
    "units",
]
