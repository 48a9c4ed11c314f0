"""What of the records that were read a run may be shown, before it is mended and cut."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from chathistory_core.conversations import Loaded
from chathistory_core.messages import ChatMessage, ChatRole
from chathistory_core.saving.kept import shown


class Part(NamedTuple):
    """Messages of roles that are trusted, which records they are in, and those of messages of other roles."""

    messages: Sequence[ChatMessage]
    places: Sequence[int]
    untrusted: Sequence[int]

    def behind(self, start: int) -> "Part":
        """From this message on."""
        return self._replace(messages=self.messages[start:], places=self.places[start:])

    def untrusted_from(self, place: int) -> int:
        """How many messages of other roles there are from this record on."""
        return sum(each >= place for each in self.untrusted)

    def __repr__(self) -> str:
        return f"<Part, {len(self.messages)} messages>"


class Parts:
    """Takes the messages of trusted roles out of records."""

    def __init__(self, trusted_roles: Collection[str] | None) -> None:
        """None trusts all."""
        if isinstance(trusted_roles, str):
            raise TypeError(f"`trusted_roles` are several, as in [{trusted_roles!r}]")
        self._trusted = None if trusted_roles is None else frozenset(map(ChatRole, trusted_roles))

    def trusts(self, message: ChatMessage) -> bool:
        """Whether the message's role is one."""
        return self._trusted is None or message.role in self._trusted

    def _of(self, groups: Sequence[Sequence[ChatMessage]]) -> Part:
        """Those of each record."""
        messages: list[ChatMessage] = []
        places = []
        untrusted: list[int] = []
        for place, group in enumerate(groups):
            for message in group:
                if self.trusts(message):
                    messages.append(message)
                    places.append(place)
                else:
                    untrusted.append(place)
        return Part(messages, places, untrusted)

    def of_run(
        self, loaded: Loaded, *, turn_id: str | None, unsaved: Sequence[ChatMessage], answered: Collection[str] = ()
    ) -> Part:
        """Those that stand before the run's turn where it is stored, and behind them what is still to be stored."""
        turn = None if turn_id is None else loaded.turn(turn_id)
        stop = len(loaded.groups) if turn is None else turn.start
        before = shown(loaded, turn_id, answered)
        if before is loaded.groups and turn is None and not unsaved and self._trusted is None:
            return Part(loaded.messages, loaded.places, ())
        return self._of([*before[:stop], unsaved])
