"""What a run is given of a conversation: read, trust, repair, window, reducer, in this order."""

import logging
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from chathistory_core.conversations import Conversations, Loaded
from chathistory_core.conversations.pages import LARGEST_PAGE, Pages
from chathistory_core.errors import (
    BackendError,
    EpochChangedError,
    RecordError,
    UnpairedCallsError,
)
from chathistory_core.loading.parts import Part, Parts
from chathistory_core.messages import ChatMessage
from chathistory_core.reducers import Reducer, Summarize, SummaryReducer, check_reducer
from chathistory_core.reducers.summary import head_of
from chathistory_core.saving.kept import has_attempt
from chathistory_core.summaries import KeptSummaries, read_back
from chathistory_core.views.pairing import settled
from chathistory_core.views.repair import Repair
from chathistory_core.views.selecting import Selected, Selecting
from chathistory_core.views.view import View
from chathistory_core.views.windows import MOST_PINNED, Window

logger = logging.getLogger("chathistory")

OnLoadError: TypeAlias = Literal["raise", "empty"]
"""What becomes of a run whose history cannot be loaded: it fails, or begins without any."""

_TRIES = 5
"""How often reading is begun anew because records were taken away meanwhile."""


class Asked(NamedTuple):
    """A run that asks for history."""

    request: Sequence[ChatMessage] = ()
    turn_id: str | None = None
    unsaved: Sequence[ChatMessage] = ()
    """What comes behind the stored messages, and is still to be stored."""
    answered: Collection[str] = ()
    """The turns that are answered there."""


class Given(NamedTuple):
    """What a run is given, and what was read for it."""

    loaded: Loaded | None
    """The newest records, without a gap; None where nothing could be loaded."""
    messages: Sequence[ChatMessage]
    view: View


class Loading:
    """Loads what runs are given: a view that changes nothing stored and is the same every time."""

    def __init__(
        self,
        conversations: Conversations,
        *,
        window: Window | None = None,
        reducer: Reducer | None = None,
        repair: Repair | None = None,
        trusted_roles: Collection[str] | None = None,
        max_load_bytes: int | None = None,
        on_load_error: OnLoadError = "raise",
    ) -> None:
        if window is not None and not isinstance(window, Window):
            raise TypeError(f"`window` is a Window, not {type(window).__name__}")
        if repair is not None and repair not in get_args(Repair):
            raise ValueError(f"`repair` is one of {_listed(Repair)}, or None, not {repair!r}")
        if max_load_bytes is not None and (type(max_load_bytes) is not int or max_load_bytes < 1):
            raise ValueError(f"`max_load_bytes` is a number from 1, not {max_load_bytes!r}")
        if on_load_error not in get_args(OnLoadError):
            raise ValueError(f"`on_load_error` is one of {_listed(OnLoadError)}, not {on_load_error!r}")
        self._conversations = conversations
        self._window = window
        self._reducer = None if reducer is None else check_reducer(reducer)
        self._summarizing = _summarizing(self._reducer)
        self._selecting = Selecting(window=window, repair=repair, reduced=reducer is not None)
        self._parts = Parts(trusted_roles)
        self.max_bytes = max_load_bytes
        self.on_error = on_load_error

    async def load(self, key: str, asked: Asked) -> Given:
        """What a run is given; where its turn is stored already, what stands before it."""
        try:
            given = await self._load(key, asked)
        except (BackendError, RecordError) as error:
            if self.on_error == "raise":
                raise
            name = type(error).__name__
            logger.warning("load %r failed, and the run begins without history: %s", key, name)
            return Given(None, asked.unsaved, View(messages=len(asked.unsaved), error=name))
        _log(key, asked, given)
        return given

    async def summarize(self, key: str) -> None:
        """Make the summary that is due, where the reducer makes it when a run was stored.

        An error is in the log alone: the run is stored.
        """
        reducer = self._summarizing
        if reducer is None or reducer.trigger != "after_append":
            return
        try:
            found = await self._found(key, Asked(), reducer, make=True)
        except Exception as error:  # noqa: BLE001 - see above; a reducer's error may quote what was said
            logger.warning("the summary of %r that is due was not made: %s", key, type(error).__name__)
        else:
            logger.debug("the summary of %r was looked after: %d messages", key, found.view.messages)

    async def _load(self, key: str, asked: Asked) -> Given:
        reducer = self._summarizing
        for _ in range(_TRIES):
            try:
                if reducer is not None:
                    return await self._found(key, asked, reducer, make=reducer.trigger == "before_retrieval")
                return await self._newest(key, asked)
            except EpochChangedError:
                continue
        raise EpochChangedError(key)

    async def _newest(self, key: str, asked: Asked) -> Given:
        """What the window shows, read as far back as it takes to know that."""
        pages = Pages(self._conversations, key, max_bytes=self.max_bytes)
        await pages.read(self._first_page)
        pinned: Part | None = None
        while pages.unread:
            if self._window is None or pages.unread <= MOST_PINNED:
                await pages.read(LARGEST_PAGE)
                continue
            if pinned is None:
                pinned = await self._pinned(pages, asked)
            if pinned is None:
                await pages.read(LARGEST_PAGE)
                continue
            part = self._part(pages.loaded, asked)
            sure = part.behind(settled(part.messages))
            selected = self._selecting.select(sure.messages, pinned=pinned.messages, following=asked.request)
            if selected.cut:
                return await self._given(key, pages.loaded, sure, selected, unread=pages.unread, pinned=pinned)
            await pages.read(min(len(pages.loaded.groups), LARGEST_PAGE))
        part = self._part(pages.loaded, asked)
        selected = self._selecting.select(part.messages, following=asked.request)
        return await self._given(key, pages.loaded, part, selected)

    async def _pinned(self, pages: Pages, asked: Asked) -> Part | None:
        """What is pinned of the unread records; None where all of them are to be read to know that.

        What a run is not shown may stand amid the first of them, so they are as many as one page has at most.
        """
        count = MOST_PINNED
        while True:
            first = await pages.first(count)
            part = self._part(first, Asked(turn_id=asked.turn_id))
            pinned, is_open = self._selecting.leading(part.messages)
            ends = asked.turn_id is not None and first.turn(asked.turn_id) is not None  # what is shown stops before it
            if not is_open or ends or count == LARGEST_PAGE:
                return part._replace(messages=pinned)
            if pages.unread <= LARGEST_PAGE:
                return None
            count = LARGEST_PAGE

    async def _given(
        self,
        key: str,
        loaded: Loaded,
        part: Part,
        selected: Selected,
        *,
        unread: int = 0,
        pinned: Part | None = None,
    ) -> Given:
        self._check(key, selected)
        messages = (*selected.pinned, *selected.messages) if selected.pinned else selected.messages
        reduced = messages if self._reducer is None else await self._reducer.reduce(messages)
        first = None if selected.first is None else part.places[selected.first]
        before = part.places if pinned is None else pinned.places
        pinned_records = len(set(before[: len(selected.pinned)]))
        view = View(
            messages=len(reduced),
            records=loaded.conversation.record_count,
            left_out=unread + first - pinned_records if selected.cut and first is not None else 0,
            untrusted=part.untrusted_from(first if selected.cut and first is not None else 0),
            unpaired=self._count(selected),
            reduced=len(messages) - len(reduced),
        )
        return Given(loaded, reduced, view)

    async def _found(self, key: str, asked: Asked, reducer: SummaryReducer, *, make: bool) -> Given:
        """What stands behind the summary that counts, behind that summary; the window comes last."""
        name = reducer.summary_name or ""
        found = await read_back(self._conversations, key, name, max_bytes=self.max_bytes)
        loaded = found.loaded
        part = self._part(loaded, asked)
        before = [message for message in found.before if self._parts.trusts(message)]
        mended = Selecting(window=None, repair=self._selecting.repair, reduced=True).select(
            [*before, *part.messages], following=asked.request
        )
        self._check(key, mended)
        # no model is asked again for a turn that is stored, nor for a summary that cannot tell of what is kept of it
        may_make = make and not has_attempt(loaded.conversation.records, asked.turn_id)
        kept = KeptSummaries(self._conversations, name, found) if may_make else _NoSummaries()
        view = await reducer.reduce_with(mended.messages, kept)
        run_stop, head = head_of(view)
        selected = self._selecting.select(view[head:], pinned=view[:head], following=asked.request)
        place_of = {id(message): place for message, place in zip(part.messages, part.places, strict=True)}
        shown_from = _first(place_of, selected.messages, len(loaded.groups))
        behind = _first(place_of, view[head:], len(loaded.groups))
        told = View(
            messages=len(selected.pinned) + len(selected.messages),
            records=loaded.conversation.record_count,
            left_out=shown_from - behind if selected.cut else 0,
            summarized=loaded.conversation.record_count - len(loaded.groups) + behind if head > run_stop else 0,
            untrusted=part.untrusted_from(shown_from if selected.cut else 0),
            unpaired=self._count(mended),
            reduced=len(mended.messages) - len(view),
        )
        return Given(loaded, (*selected.pinned, *selected.messages), told)

    def _check(self, key: str, selected: Selected) -> None:
        calls, results = selected.unpaired
        if self._selecting.repair == "raise" and (calls or results):
            raise UnpairedCallsError(key, len(calls), len(results))

    def _count(self, selected: Selected) -> int:
        calls, results = selected.unpaired
        return len(results) + (0 if self._selecting.repair is None else len(calls))

    def _part(self, loaded: Loaded, asked: Asked) -> Part:
        return self._parts.of_run(loaded, turn_id=asked.turn_id, unsaved=asked.unsaved, answered=asked.answered)

    @property
    def _first_page(self) -> int | None:
        if self._window is not None:
            return min(self._window.first_page, LARGEST_PAGE)
        return None if self.max_bytes is None else LARGEST_PAGE


class _NoSummaries:
    """Makes none: they are made when a run was stored."""

    def may_end(self, messages: Sequence[ChatMessage], stop: int) -> bool:  # noqa: ARG002 - nowhere
        return False

    async def make(self, messages: Sequence[ChatMessage], stop: int, summarize: Summarize) -> str | None:  # noqa: ARG002 - as above
        return None


def _summarizing(reducer: Reducer | None) -> SummaryReducer | None:
    return reducer if isinstance(reducer, SummaryReducer) and reducer.summary_name is not None else None


def _first(place_of: dict[int, int], messages: Sequence[ChatMessage], otherwise: int) -> int:
    return next((place_of[id(message)] for message in messages if id(message) in place_of), otherwise)


def _listed(allowed: object) -> str:
    return ", ".join(map(repr, get_args(allowed)))


def _log(key: str, asked: Asked, given: Given) -> None:
    view = given.view
    read = 0 if given.loaded is None else len(given.loaded.groups)
    turn = "" if asked.turn_id is None else f", turn {asked.turn_id!r}"
    names = ("left_out", "summarized", "untrusted", "unpaired", "reduced")
    told = ", ".join(f"{name}={count}" for name in names if (count := getattr(view, name)))
    logger.info("load %r: %d of %d records%s%s", key, read, view.records, turn, told and f"; {told}")
