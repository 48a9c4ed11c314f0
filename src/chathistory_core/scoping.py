"""Which keys of a store are a provider's own, how they read inside its scope, and where sessions hold them."""

from collections.abc import Callable, Sequence
from typing import cast

from chathistory_core.keys import SEPARATOR, check_key, escape, scope, unescape
from chathistory_core.messages import Json
from chathistory_core.session import AgentSession, ProviderSessionState, check_session

KEY_MEMBER = "externalConversationKey"
"""The one member of the state that holds a session's key."""


class Scope:
    """The keys under one prefix, such as those of a tenant's user; without parts every key, as it is.

    A key inside a scope is escaped like a part of it, so none leads outside, above or below.
    """

    def __init__(self, parts: Sequence[str]) -> None:
        if isinstance(parts, str):
            raise TypeError(f"`scope` is a sequence of parts: write ({parts!r},)")
        self.parts = tuple(parts)
        self.prefix = scope(*self.parts)

    def full(self, key: str) -> str:
        """The store's key for the key inside; `InvalidKeyError` where one of them is none."""
        check_key(key)
        return check_key(self.prefix + escape(key)) if self.parts else key

    def inside(self, full_key: str) -> str | None:
        """The key inside for the store's key; None for a narrower scope's, and for one that nobody in here wrote."""
        if not self.parts:
            return full_key
        rest = full_key.removeprefix(self.prefix)
        key = unescape(rest)
        return key if rest and SEPARATOR not in rest and escape(key) == rest else None

    def __repr__(self) -> str:
        return f"<Scope {self.prefix!r}>"


class SessionKeys:
    """Where sessions hold the keys of their conversations, and nothing else."""

    def __init__(self, scope: Scope, state_key: str, new_key: Callable[[AgentSession], str]) -> None:
        self.scope = scope
        self._new_key = new_key
        self._state = ProviderSessionState[dict[str, Json]](self._initial, state_key, kind=dict)

    def get(self, session: AgentSession | None) -> str | None:
        """The key inside the scope; None where the session has none yet."""
        state = self._state.get(check_session(session))
        return None if state is None else _key_in(state)

    def set(self, session: AgentSession, key: str) -> None:
        """Hold this key, whatever the session held before."""
        if check_session(session) is None:
            raise TypeError("without a session there is nothing to hold a key")
        self._state.save(session, self._state_of(key))

    def made(self, session: AgentSession) -> str:
        """The store's key of the session's conversation, made where the session has none yet."""
        return self.scope.full(_key_in(self._state.get_or_initialise(check_session(session))))

    def known(self, session: AgentSession | None) -> str | None:
        """The store's key of the session's conversation; None where the session has none yet."""
        key = self.get(session)
        return None if key is None else self.scope.full(key)

    def _initial(self, session: AgentSession | None) -> dict[str, Json]:
        return self._state_of(self._new_key(session or AgentSession()))

    def _state_of(self, key: str) -> dict[str, Json]:
        self.scope.full(key)
        return {KEY_MEMBER: key}


def _key_in(state: dict[str, Json]) -> str:
    return check_key(cast("str", state.get(KEY_MEMBER)))  # which refuses what is no text
