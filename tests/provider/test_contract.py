import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from chathistory_core import ConfigurationError, InvalidKeyError
from chathistory_core.messages import AI_CONTEXT_PROVIDER, CHAT_HISTORY, EXTERNAL, ChatMessage, SourceAttribution
from chathistory_core.provider import (
    ChatHistoryProvider,
    InvokedContext,
    InvokingContext,
    MessageFilter,
    check_state_keys,
    exclude_history,
)
from chathistory_core.session import AgentSession

HISTORY = [
    ChatMessage.system("be brief"),
    ChatMessage.user("earlier"),
    ChatMessage.assistant("yes"),
    ChatMessage.tool("c1", "result"),
]


class Recorded(ChatHistoryProvider):
    """Provides `HISTORY` and keeps what it is given to store."""

    def __init__(
        self,
        *,
        provide_output_filter: MessageFilter | None = None,
        store_request_filter: MessageFilter | None = exclude_history,
        store_response_filter: MessageFilter | None = None,
    ) -> None:
        super().__init__(
            provide_output_filter=provide_output_filter,
            store_request_filter=store_request_filter,
            store_response_filter=store_response_filter,
        )
        self.stored: list[InvokedContext] = []

    async def provide_chat_history(self, context: InvokingContext) -> Sequence[ChatMessage]:
        return HISTORY

    async def store_chat_history(self, context: InvokedContext) -> None:
        self.stored.append(context)


def test_a_service_is_the_provider_itself_by_its_type_or_a_base() -> None:
    provider = Recorded()
    assert provider.get_service(Recorded) is provider
    assert provider.get_service(ChatHistoryProvider) is provider
    assert provider.get_service(object) is provider
    assert provider.get_service(str) is None
    assert provider.get_service(Recorded, "a key") is None
    with pytest.raises(TypeError, match="type"):
        provider.get_service(cast("type[str]", None))


def test_the_state_key_is_the_types_name() -> None:
    assert Recorded().state_keys == ("Recorded",)


def test_a_context_of_a_run_holds_what_it_was_given() -> None:
    agent, session, request = object(), AgentSession(), [ChatMessage.user("hi")]
    context = InvokingContext(agent, session, request)
    assert context.agent is agent
    assert context.session is session
    assert context.request_messages is request
    other = [ChatMessage.user("other")]
    context.request_messages = other
    assert context.request_messages is other
    assert InvokingContext(None, None, []).session is None


def test_a_context_of_an_ended_run_holds_what_it_was_given() -> None:
    agent, session, request, response = (
        object(),
        AgentSession(),
        [ChatMessage.user("hi")],
        [ChatMessage.assistant("ho")],
    )
    context = InvokedContext.succeeded(agent, session, request, response)
    assert context.agent is agent
    assert context.session is session
    assert context.request_messages is request
    assert context.response_messages is response
    assert context.invoke_exception is None
    failure = RuntimeError("down")
    failed = InvokedContext.failed(agent, None, request, failure)
    assert failed.invoke_exception is failure
    assert failed.response_messages is None
    assert failed.session is None


NOTHING = cast("list[ChatMessage]", None)


def test_messages_and_an_exception_are_needed() -> None:
    context = InvokingContext(None, None, [])
    for make in (
        lambda: InvokingContext(None, None, NOTHING),
        lambda: setattr(context, "request_messages", NOTHING),
        lambda: InvokedContext.succeeded(None, None, NOTHING, []),
        lambda: InvokedContext.succeeded(None, None, [], NOTHING),
        lambda: InvokedContext.failed(None, None, NOTHING, RuntimeError()),
        lambda: InvokedContext.failed(None, None, [], cast("Exception", None)),
        lambda: InvokingContext(None, None, cast("list[ChatMessage]", "text")),
        lambda: InvokingContext(None, None, cast("list[ChatMessage]", ChatMessage.user("canary-42"))),
        lambda: InvokingContext(None, cast("AgentSession", "a key"), []),
        lambda: InvokedContext.succeeded(None, cast("AgentSession", "a key"), [], []),
    ):
        with pytest.raises(TypeError) as caught:
            make()
        assert "canary" not in str(caught.value)
    assert context.request_messages == []


def test_a_context_shows_no_content() -> None:
    canary = [ChatMessage.user("canary-42")]
    for context in (
        InvokingContext(None, None, canary),
        InvokedContext.succeeded(None, None, canary, canary),
        InvokedContext.failed(None, None, canary, ValueError("canary-42")),
    ):
        assert "canary" not in repr(context)


def test_a_run_has_one_turn_id_from_its_beginning_or_from_its_end() -> None:
    assert InvokedContext.succeeded(None, None, [], []).turn_id != InvokedContext.succeeded(None, None, [], []).turn_id
    began = InvokingContext(None, None, [], turn_id="request-7")
    assert InvokedContext.succeeded(None, None, [], [], invoking=began).turn_id == "request-7"
    assert InvokedContext.failed(None, None, [], KeyError(), invoking=began).turn_id == "request-7"
    assert InvokedContext.succeeded(None, None, [], [], invoking=began, turn_id="other").turn_id == "other"
    with pytest.raises(InvalidKeyError, match="turn id"):
        InvokingContext(None, None, [], turn_id="")
    with pytest.raises(InvalidKeyError, match="turn id"):
        InvokedContext.succeeded(None, None, [], [], turn_id="x" * 201)


def test_a_run_takes_nothing_but_its_context() -> None:
    provider = Recorded()
    with pytest.raises(TypeError, match="InvokingContext"):
        asyncio.run(provider.invoking(cast("InvokingContext", None)))
    with pytest.raises(TypeError, match="InvokedContext"):
        asyncio.run(provider.invoked(cast("InvokedContext", None)))


def begin(provider: ChatHistoryProvider, *request: ChatMessage) -> Sequence[ChatMessage]:
    return asyncio.run(provider.invoking(InvokingContext(None, None, request)))


def end(provider: ChatHistoryProvider, request: Sequence[ChatMessage], response: Sequence[ChatMessage]) -> None:
    asyncio.run(provider.invoked(InvokedContext.succeeded(None, None, request, response)))


def test_history_of_every_role_comes_first_in_order_and_is_marked() -> None:
    request = ChatMessage.user("now")
    given = begin(Recorded(), request)
    assert [message.role for message in given] == ["system", "user", "assistant", "tool", "user"]
    mark = SourceAttribution(CHAT_HISTORY, f"{Recorded.__module__}.Recorded")
    assert [message.source for message in given[:-1]] == [mark] * 4
    assert given[-1] is request
    assert [message.source.type for message in HISTORY] == [EXTERNAL] * 4


def test_a_filter_of_what_is_provided_sees_history_alone() -> None:
    given = begin(
        Recorded(provide_output_filter=lambda messages: (m for m in messages if m.role == "assistant")),
        ChatMessage.user("now"),
    )
    assert [message.text for message in given] == ["yes", "now"]


def test_a_bare_provider_passes_the_request_on_and_stores_nothing() -> None:
    provider = ChatHistoryProvider()
    request = ChatMessage.user("now")
    assert begin(provider, request) == [request]
    end(provider, [request], [ChatMessage.assistant("ho")])


def test_what_was_loaded_is_not_stored_again_and_what_came_from_others_is() -> None:
    provider = Recorded()
    given = [
        *begin(provider, ChatMessage.user("now")),
        ChatMessage.user("fact").with_source(SourceAttribution(AI_CONTEXT_PROVIDER, "p")),
    ]
    response = [ChatMessage.assistant("ho")]
    end(provider, given, response)
    (stored,) = provider.stored
    assert [message.text for message in stored.request_messages] == ["now", "fact"]
    assert stored.response_messages is response


def test_responses_are_stored_whatever_their_mark() -> None:
    provider = Recorded()
    end(provider, [], [ChatMessage.assistant("ho").with_source(SourceAttribution(CHAT_HISTORY))])
    assert len(provider.stored[0].response_messages or ()) == 1


def test_filters_of_one_s_own_decide_what_is_stored() -> None:
    provider = Recorded(
        store_request_filter=lambda messages: [m for m in messages if m.role == "system"],
        store_response_filter=lambda messages: [m for m in messages if m.role == "assistant"],
    )
    end(provider, HISTORY, HISTORY)
    assert [m.role for m in provider.stored[0].request_messages] == ["system"]
    assert [m.role for m in provider.stored[0].response_messages or ()] == ["assistant"]


def test_without_a_filter_requests_are_stored_whole() -> None:
    provider = Recorded(store_request_filter=None)
    end(provider, begin(provider), [])
    assert len(provider.stored[0].request_messages) == len(HISTORY)


@pytest.mark.parametrize("name", ["provide_output_filter", "store_request_filter", "store_response_filter"])
def test_a_filter_is_something_to_call(name: str) -> None:
    with pytest.raises(TypeError, match=f"`{name}`.* it is list"):
        ChatHistoryProvider(**{name: cast("MessageFilter", [])})


def test_a_failed_run_stores_nothing() -> None:
    provider = Recorded()
    for failure in RuntimeError("down"), asyncio.CancelledError():
        asyncio.run(provider.invoked(InvokedContext.failed(None, None, HISTORY, failure)))
    assert provider.stored == []


def test_what_is_stored_keeps_the_runs_turn_id_and_beginning() -> None:
    provider = Recorded()
    began = InvokingContext(None, None, [], turn_id="request-7")
    asyncio.run(provider.invoked(InvokedContext.succeeded(None, None, [], HISTORY, invoking=began)))
    assert (provider.stored[0].turn_id, provider.stored[0].invoking) == ("request-7", began)


def test_two_providers_under_one_state_key_are_refused() -> None:
    class Other(ChatHistoryProvider):
        @property
        def state_keys(self) -> tuple[str, ...]:
            return ("mine", "Recorded")

    check_state_keys([Recorded(), ChatHistoryProvider()])
    with pytest.raises(ConfigurationError, match=r"Recorded and Other both keep their state under 'Recorded'"):
        check_state_keys([Recorded(), Other()])
    with pytest.raises(ConfigurationError, match="Recorded"):
        check_state_keys([Recorded(), Recorded()])
