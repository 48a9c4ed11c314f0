"""The page that leads from .NET names every member, parameter, default and remark, and what it names is there."""

import re
from inspect import signature
from pathlib import Path

import pytest

import chathistory_core
from chathistory_core import (
    ChatHistoryBackend,
    ConversationSummary,
    messages,
    opening,
    provider,
    reducers,
    session,
    stored,
)
from chathistory_core.messages import ChatMessage, SourceAttribution
from chathistory_core.provider import ChatHistoryProvider, InvokedContext, InvokingContext
from chathistory_core.reducers import Reducer, SummarizingReducer
from chathistory_core.session import AgentSession, ProviderSessionState, StateBag
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.turn import Turn

PAGE = Path(__file__).resolve().parents[2] / "docs/explanation/from-dotnet.md"

PROVIDER = """
ChatHistoryProvider
ChatHistoryProvider(provideOutputMessageFilter)
ChatHistoryProvider(storeInputRequestMessageFilter)
ChatHistoryProvider(storeInputResponseMessageFilter)
DefaultExcludeChatHistoryFilter
DefaultNoopFilter
ChatHistoryProvider.StateKeys
ChatHistoryProvider.InvokingAsync
ChatHistoryProvider.InvokingCoreAsync
ChatHistoryProvider.ProvideChatHistoryAsync
ChatHistoryProvider.InvokedAsync
ChatHistoryProvider.InvokedCoreAsync
ChatHistoryProvider.StoreChatHistoryAsync
ChatHistoryProvider.GetService(Type, object)
ChatHistoryProvider.GetService<TService>
remark: no session data in fields
remark: only without service-stored history
remark: order of messages
remark: large histories
remark: work during storing
remark: called on failure too
remark: loaded messages are not trusted
remark: personal data
InvokingContext
InvokingContext.Agent
InvokingContext.Session
InvokingContext.RequestMessages
remark: several providers in one run
InvokedContext
InvokedContext(responseMessages)
InvokedContext(invokeException)
InvokedContext.Agent
InvokedContext.Session
InvokedContext.RequestMessages
InvokedContext.ResponseMessages
InvokedContext.InvokeException
"""

MARKS = """
AgentRequestMessageSourceType
AgentRequestMessageSourceType.Value
AgentRequestMessageSourceType.External
AgentRequestMessageSourceType.AIContextProvider
AgentRequestMessageSourceType.ChatHistory
AgentRequestMessageSourceAttribution
AgentRequestMessageSourceAttribution.SourceType
AgentRequestMessageSourceAttribution.SourceId
AgentRequestMessageSourceAttribution.AdditionalPropertiesKey
GetAgentRequestMessageSourceType
GetAgentRequestMessageSourceId
WithAgentRequestMessageSource
remark: marks and storage
"""

SESSION = """
ProviderSessionState<TState>
ProviderSessionState(stateInitializer)
ProviderSessionState(stateKey)
ProviderSessionState(jsonSerializerOptions)
ProviderSessionState.StateKey
ProviderSessionState.GetOrInitializeState
ProviderSessionState.SaveState
AgentSession
AgentSession.StateBag
AgentSession.GetService
ChatClientAgentSession.ConversationId
AIAgent.SerializeSessionAsync
AIAgent.DeserializeSessionAsync
AgentSessionStateBag
AgentSessionStateBag.Count
AgentSessionStateBag.TryGetValue
AgentSessionStateBag.GetValue
AgentSessionStateBag.SetValue
AgentSessionStateBag.TryRemoveValue
AgentSessionStateBag.Serialize
AgentSessionStateBag.Deserialize
remark: blank keys
remark: thread safety
"""

IN_MEMORY = """
InMemoryChatHistoryProvider
InMemoryChatHistoryProvider.GetMessages
InMemoryChatHistoryProvider.SetMessages
InMemoryChatHistoryProvider.StateKeys
InMemoryChatHistoryProvider.ChatReducer
InMemoryChatHistoryProvider.ReducerTriggerEvent
InMemoryChatHistoryProviderOptions.StateInitializer
InMemoryChatHistoryProviderOptions.StateKey
InMemoryChatHistoryProviderOptions.JsonSerializerOptions
InMemoryChatHistoryProviderOptions.StorageInputRequestMessageFilter
InMemoryChatHistoryProviderOptions.StorageInputResponseMessageFilter
InMemoryChatHistoryProviderOptions.ProvideOutputMessageFilter
TryGetInMemoryChatHistory
SetInMemoryChatHistory
"""

REDUCERS = """
IChatReducer
IChatReducer.ReduceAsync
MessageCountingChatReducer
SummarizingChatReducer
SummarizingChatReducer(chatClient)
SummarizingChatReducer(targetCount)
SummarizingChatReducer(threshold)
SummarizingChatReducer.SummarizationPrompt
TruncationCompactionStrategy
SlidingWindowCompactionStrategy
ToolResultCompactionStrategy
SummarizationCompactionStrategy
ChatReducerCompactionStrategy
PipelineCompactionStrategy
ContextWindowCompactionStrategy
CompactionTrigger
CompactionMessageIndex
CompactionProvider
"""

REMOTE = """
RemoteChatHistoryProvider
RemoteChatHistoryProvider(chatHistoryServiceUrl)
RemoteChatHistoryProvider(httpClient)
RemoteChatHistoryProvider(stateInitializer)
RemoteChatHistoryProvider(stateKey)
RemoteChatHistoryProvider.StateKeys
RemoteChatHistoryProvider.ProvideChatHistoryAsync
RemoteChatHistoryProvider.StoreChatHistoryAsync
RemoteChatHistoryProvider.TryGetExternalConversationKey
RemoteChatHistoryProvider.GetStoredMessageCountAsync
RemoteChatHistoryProvider.GetMessagesAsync
RemoteChatHistoryProvider.SetMessagesAsync
RemoteChatHistoryProvider.GetConversationSummariesAsync
RemoteChatHistoryProvider.SessionExistsAsync
RemoteChatHistoryProvider.AttachToSession
RemoteChatHistoryProvider.Dispose
RemoteChatHistoryProvider.State
State.ExternalConversationKey
ChatHistorySummary
ChatHistorySummary.ConversationKey
ChatHistorySummary.MessageCount
AppendChatMessagesRequest
ReplaceChatMessagesRequest
(no member: the service's DELETE)
CreateOrResumeSessionAsync
PrintSessionId
PrintStateBag
PrintExternalStoreAsync
PrintMessages
FormatContent
"""

DRIVING = """
remark: a store error loses the answer
remark: cancelled while storing
remark: a run without a session
remark: a retried request
remark: a stream broken off
remark: store around every model call
"""

NAMED = [
    line
    for part in (PROVIDER, MARKS, SESSION, IN_MEMORY, REDUCERS, REMOTE, DRIVING)
    for line in part.splitlines()
    if line
]

OWNERS: tuple[object, ...] = (
    chathistory_core,
    messages,
    opening,
    provider,
    reducers,
    session,
    stored,
    ChatHistoryBackend,
    StoredChatHistoryProvider,
    Reducer,
    InvokedContext,
    InvokingContext,
    AgentSession,
    ProviderSessionState,
    StateBag,
    ChatMessage,
    SourceAttribution,
    Turn,
)

MADE_BY = (
    ChatHistoryProvider,
    StoredChatHistoryProvider,
    ProviderSessionState,
    InvokingContext,
    AgentSession,
    SummarizingReducer,
)


def rows() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("| ") else []
        if len(cells) >= 2 and cells[0] != ".NET":
            assert cells[0] not in found, f"{cells[0]} has two rows"
            found[cells[0].strip("`")] = cells[1:]
    return found


def test_every_member_parameter_default_and_remark_has_a_row_and_no_row_is_of_another() -> None:
    assert list(rows()) == NAMED


def known_names() -> set[str]:
    names = {"in", "len", "ValueError"}
    for owner in OWNERS:
        names.update(dir(owner))
    for made_by in MADE_BY:
        names.update(signature(made_by).parameters)
    for value in InvokedContext, ConversationSummary, ChatMessage:
        names.update(value.__annotations__)
    return names | set(signature(StoredChatHistoryProvider.messages).parameters)


@pytest.mark.parametrize("name", NAMED)
def test_what_a_row_points_to_is_there(name: str) -> None:
    pointed_to = re.findall(r"`([^`]+)`", rows()[name][0])
    assert {part for code in pointed_to for part in re.findall(r"\w+", code)} <= known_names()
