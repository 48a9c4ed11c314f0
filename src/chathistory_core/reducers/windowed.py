"""The newest messages, as many as fit."""

from collections.abc import Sequence

from chathistory_core.messages import ChatMessage
from chathistory_core.views.windows import Window


class WindowReducer:
    """What a window shows, as a reducer: for a pipeline, and to rewrite stored history by."""

    def __init__(self, window: Window) -> None:
        if not isinstance(window, Window):
            raise TypeError(f"`window` is a Window, not {type(window).__name__}")
        self._window = window

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        """What the window shows of the messages."""
        return self._window.select(messages).messages

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._window!r}>"


class CountingReducer(WindowReducer):
    """The newest messages and the leading system messages, which do not count."""

    def __init__(self, messages: int) -> None:
        """`messages` is how many. Tool rounds count and stay whole; the newest is there even where it is longer."""
        super().__init__(Window(messages=messages))
