"""Microsoft Agent Framework for Python: its `HistoryProvider` over any of our backends.

    async with StoredHistoryProvider("sqlite:///chat.db") as history:
        agent = Agent(client, context_providers=[history])

It needs the extra `chathistory-core[agent-framework]`.
"""

try:
    import agent_framework as _framework  # noqa: F401 - is it there?
except ModuleNotFoundError as error:
    if error.name != "agent_framework":
        raise
    raise ModuleNotFoundError(
        'Microsoft Agent Framework is not installed: pip install "chathistory-core[agent-framework]"', name=error.name
    ) from None

from chathistory_core.faces.agent_framework.provider import StoredHistoryProvider

__all__ = ["StoredHistoryProvider"]
