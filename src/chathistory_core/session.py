"""A session with an agent: what an application keeps of a conversation beside the store, and its JSON."""

import json
from collections.abc import Callable, Mapping
from threading import RLock
from typing import Generic, Self, TypeVar, cast, overload
from uuid import uuid4

from chathistory_core.messages import FrozenDict, Json, freeze

T = TypeVar("T")


class StateBag:
    """JSON values by key, for what reads and writes a session from any thread.

    A value is kept as a frozen copy, so nobody's later change shows in it. A key is text and not blank.
    """

    def __init__(self, values: Mapping[str, Json] | None = None) -> None:
        self._values: dict[str, Json] = {}
        self._lock = RLock()
        for key, value in (values or {}).items():
            self.set(key, value)

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, key: str) -> bool:
        return check_state_key(key) in self._values

    @overload
    def get(self, key: str) -> Json: ...
    @overload
    def get(self, key: str, kind: type[T]) -> T | None: ...

    def get(self, key: str, kind: type[object] = object) -> object:
        """The value; None where there is none, and where it is null (`key in bag` tells them apart).

        Raises:
            TypeError: it is not of this kind, such as `str`, `int`, `float`, `bool`, `list` or `dict`. An integer is a
                `float`, for JSON writes 1.0 as 1 in other languages; a boolean is no number.
        """
        value = self._values.get(check_state_key(key))
        if value is None or kind is object:
            return value
        if kind is float and type(value) is int:
            return float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise TypeError(f"the state under {key!r} is {type(value).__name__}, not {kind.__name__}")
        return value

    def set(self, key: str, value: Json) -> None:
        """Keep the value, in place of the one that is there. None is a value.

        Raises:
            ValueError: it is no JSON value; NaN and lone surrogates are none either.
        """
        check_state_key(key)
        frozen = _freeze(key, value)
        with self._lock:
            self._values[key] = frozen

    def set_default(self, key: str, make: Callable[[], Json]) -> Json:
        """The value; where there is none, or null, the one that `make` gives, which all who ask get from then on."""
        check_state_key(key)
        with self._lock:
            if self._values.get(key) is None:
                self._values[key] = _freeze(key, make())
            return self._values[key]

    def remove(self, key: str) -> bool:
        """Whether there was a value, which is gone."""
        check_state_key(key)
        with self._lock:
            if key not in self._values:
                return False
            del self._values[key]
            return True

    def to_json(self) -> dict[str, Json]:
        """The values by key, as of one moment."""
        with self._lock:
            return dict(self._values)

    def __reduce__(self) -> tuple[type, tuple[dict[str, Json]]]:
        return type(self), (self.to_json(),)

    def __repr__(self) -> str:
        return f"<StateBag, {len(self)} values>"


def check_state_key(key: str) -> str:
    """The key itself, where it is not blank, else `ValueError`."""
    if not isinstance(key, str):
        raise TypeError(f"a state key is text, not {type(key).__name__}")
    if not key.strip():
        raise ValueError("a state key is not blank")
    return key


def _freeze(key: str, value: object) -> Json:
    try:
        frozen = freeze(value)
        json.dumps(frozen, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError):
        raise ValueError(f"the state for {key!r} ({type(value).__name__}) is no JSON value: convert it first") from None
    return frozen


class AgentSession:
    """One conversation as the application holds it: no messages, only what finds them again."""

    def __init__(
        self,
        id: str | None = None,  # noqa: A002 - the field's name
        *,
        conversation_id: str | None = None,
        state: StateBag | None = None,
    ) -> None:
        """`id` is the application's name for the session; where none is given one is made, and not kept in its JSON."""
        self.id = uuid4().hex if id is None else id
        self._given_id = id
        self._conversation_id = _conversation_id(conversation_id)
        self.state = StateBag() if state is None else state

    @property
    def conversation_id(self) -> str | None:
        """The id under which the model's service keeps the history itself; then no provider loads or stores.

        Blank is none; once set it is not taken away.
        """
        return self._conversation_id

    @conversation_id.setter
    def conversation_id(self, value: str | None) -> None:
        value = _conversation_id(value)
        if value is None and self._conversation_id is not None:
            raise ValueError("the service keeps this conversation: its `conversation_id` cannot be taken away")
        self._conversation_id = value

    def to_json(self) -> dict[str, Json]:
        """The JSON object of which `from_json`, here and in .NET, makes the session; with an `id` that was given."""
        found: dict[str, Json] = {} if self._given_id is None else {"id": self._given_id}
        if self._conversation_id is not None:
            found["conversationId"] = self._conversation_id
        found["stateBag"] = self.state.to_json()
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Json]) -> Self:
        """The session of this JSON object; members it does not know are left out.

        Raises:
            ValueError: it is the JSON of no session.
        """
        if not isinstance(value, Mapping):
            raise ValueError(f"a session is a JSON object, not {type(value).__name__}")  # noqa: TRY004 - bad data
        state = value.get("stateBag")
        if state is not None and not isinstance(state, Mapping):
            raise ValueError(f"a session's `stateBag` is a JSON object, not {type(state).__name__}")
        return cls(
            _text(value, "id"), conversation_id=_text(value, "conversationId"), state=StateBag(state or FrozenDict())
        )

    def __repr__(self) -> str:
        return f"<AgentSession {self.id!r}>"


def check_session(session: AgentSession | None) -> AgentSession | None:
    """The session itself, or None, else `TypeError`: a key, for example, is no session yet."""
    if session is not None and not isinstance(session, AgentSession):
        raise TypeError(f"a session is an AgentSession or None, not {type(session).__name__}")
    return session


def _conversation_id(value: str | None) -> str | None:
    return value if value is not None and value.strip() else None


def _text(value: Mapping[str, Json], name: str) -> str | None:
    found = value.get(name)
    if found is not None and not isinstance(found, str):
        raise ValueError(f"a session's `{name}` is text, not {type(found).__name__}")
    return found


class ProviderSessionState(Generic[T]):
    """The state that one provider keeps in each session, under its key."""

    def __init__(self, initial: Callable[[AgentSession | None], T], state_key: str, *, kind: type[T]) -> None:
        """`initial` makes the JSON value of a session that has none; `kind` is its type, such as `dict`."""
        if not callable(initial):
            raise TypeError(f"`initial` is called with a session: it is {type(initial).__name__}")
        self._initial = initial
        self._kind = kind
        self.state_key = check_state_key(state_key)

    def get_or_initialise(self, session: AgentSession | None) -> T:
        """The session's state; where it has none, the initial one, which all who ask at once get too.

        Without a session it is made anew each time and kept nowhere.

        Raises:
            TypeError: what the session holds is of another kind.
        """
        if session is None:
            return self._initial(None)
        session.state.set_default(self.state_key, lambda: cast("Json", self._initial(session)))
        return cast("T", session.state.get(self.state_key, self._kind))

    def get(self, session: AgentSession | None) -> T | None:
        """The session's state, None where it has none; makes none."""
        return None if session is None else session.state.get(self.state_key, self._kind)

    def save(self, session: AgentSession | None, state: T) -> None:
        """Keep the state in the session; without one, nowhere."""
        if session is not None:
            session.state.set(self.state_key, cast("Json", state))
