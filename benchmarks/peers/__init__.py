"""The other libraries: each script runs in an environment of its own, which its first lines name."""

from benchmarks.contestants import Contestant

PEERS = (
    Contestant("openai-agents SQLiteSession", "openai_agents_sessions.py", "file"),
    Contestant("openai-agents AsyncSQLiteSession", "openai_agents_sessions.py", "file"),
    Contestant("openai-agents SQLAlchemySession", "openai_agents_sessions.py", "file", ("FULL", "NORMAL")),
    Contestant("langchain SQLChatMessageHistory", "langchain_histories.py", "file", ("FULL", "NORMAL")),
    Contestant("langchain SQLChatMessageHistory, async engine", "langchain_histories.py", "file", ("FULL", "NORMAL")),
    Contestant("llama-index SQLiteChatStore", "llama_index_stores.py", "file", ("FULL", "NORMAL")),
    Contestant("llama-index SQLAlchemyChatStore", "llama_index_stores.py", "file", ("FULL", "NORMAL")),
    Contestant("google-adk DatabaseSessionService", "google_adk_sessions.py", "file", ("FULL", "NORMAL")),
    Contestant("google-adk SqliteSessionService", "google_adk_sessions.py", "file"),
    Contestant("py-key-value DiskStore", "py_key_value_stores.py", "file", ("NORMAL",)),
    Contestant("agent-framework FileHistoryProvider", "agent_framework_providers.py", "file", ("NORMAL",)),
    Contestant("openai-agents RedisSession", "openai_agents_sessions.py", "redis"),
    Contestant("langchain RedisChatMessageHistory", "langchain_histories.py", "redis"),
    Contestant("llama-index RedisChatStore", "llama_index_stores.py", "redis"),
    Contestant("agent-framework RedisHistoryProvider", "agent_framework_providers.py", "redis"),
    Contestant("py-key-value RedisStore", "py_key_value_stores.py", "redis"),
    Contestant("agent-framework InMemoryHistoryProvider", "agent_framework_providers.py", "memory"),
    Contestant("py-key-value MemoryStore", "py_key_value_stores.py", "memory"),
)
