"""What an agent of the framework tells of itself, where it is one of the framework's own."""

from agent_framework import (
    AgentSession,
    ChatMiddlewareLayer,
    ChatResponse,
    HistoryProvider,
    RawAgent,
    SessionContext,
    SupportsAgentRun,
)

from chathistory_core.errors import ConfigurationError


def is_kept_elsewhere(agent: SupportsAgentRun, session: AgentSession, context: SessionContext) -> bool:
    """Whether the model's service keeps the conversation."""
    options = [context.options, *([agent.default_options] if isinstance(agent, RawAgent) else [])]
    answer = context.response.raw_representation if context.response is not None else None
    return bool(
        session.service_session_id
        or any(each.get("conversation_id") for each in options)
        or (isinstance(answer, ChatResponse) and answer.conversation_id)
    )


def takes_middleware(agent: SupportsAgentRun) -> bool:
    """Whether the agent's client runs the middleware that a provider adds."""
    return isinstance(agent, RawAgent) and isinstance(agent.client, ChatMiddlewareLayer)


def check_source_id(provider: HistoryProvider, agent: SupportsAgentRun) -> None:
    """Whether the provider has its `source_id` to itself.

    Raises:
        ConfigurationError: another provider of the agent has it too.
    """
    if not isinstance(agent, RawAgent):
        return
    for other in agent.context_providers:
        if other is not provider and other.source_id == provider.source_id:
            raise ConfigurationError(
                f"{type(provider).__name__} and {type(other).__name__} both keep their state under "
                f"{provider.source_id!r}: give one another `source_id`"
            )
