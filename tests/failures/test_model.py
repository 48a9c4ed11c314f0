"""Runs that fail, are tried again and succeed in any order: stored and shown is what a few lines of rules say."""

import asyncio
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from chathistory_core import StoredChatHistoryProvider
from chathistory_core.messages import ChatMessage, FunctionCallContent, FunctionResultContent, TextContent
from chathistory_memory import MemoryBackend

Shape = tuple[str, ...]

PARTS: dict[str, ChatMessage] = {
    "says": ChatMessage.assistant("half"),
    "calls": ChatMessage(role="assistant", contents=[FunctionCallContent(call_id="c", name="f", arguments={})]),
    "says and calls": ChatMessage(
        role="assistant", contents=[TextContent(text="half"), FunctionCallContent(call_id="c", name="f", arguments={})]
    ),
    "result": ChatMessage.tool("c", 1),
    "nothing": ChatMessage.assistant(""),
}
PARTIALS = st.sampled_from(
    [
        (),
        ("nothing",),
        ("says",),
        ("calls",),
        ("says and calls",),
        ("calls", "result"),
        ("calls", "result", "says"),
        ("calls", "result", "says and calls"),
    ]
)
RUNS = st.lists(st.tuples(st.sampled_from(["T1", "T2", None]), st.one_of(st.none(), PARTIALS)), max_size=12)


def said(messages: list[ChatMessage]) -> list[str]:
    """Each message as text: its words, calls and results."""
    signs = {FunctionCallContent: "call", FunctionResultContent: "result"}
    return [
        " ".join(
            content.text if isinstance(content, TextContent) else signs[type(content)] for content in message.contents
        )
        for message in messages
    ]


def without_open_calls(shape: Shape) -> list[str]:
    last = {"calls": [], "says and calls": ["half"]}
    whole = [text for part in shape[:-1] for text in said([PARTS[part]])]
    return whole + (last[shape[-1]] if shape[-1] in last else said([PARTS[shape[-1]]]))


@dataclass
class Rules:
    """What is stored, in order: (turn, what, texts as they are stored, texts as a model sees them)."""

    log: list[tuple[str, str, list[str], list[str]]] = field(default_factory=list)

    def stored(self) -> list[str]:
        return [text for _, _, texts, _ in self.log for text in texts]

    def seen_by(self, turn: str) -> list[str]:
        answered = {each for each, what, _, _ in self.log if what == "answer"}
        return [
            text
            for each, what, _, texts in self.log
            if each != turn and not (what == "partial" and each in answered)
            for text in texts
        ]

    def fail(self, turn: str, shape: Shape) -> None:
        if not any(each == turn for each, _, _, _ in self.log):
            self.log.append((turn, "request", [turn], [turn]))
        shape = tuple(part for part in shape if part != "nothing")
        if shape:
            self.log.append((turn, "partial", said([PARTS[part] for part in shape]), without_open_calls(shape)))

    def succeed(self, turn: str) -> None:
        if not any(each == turn for each, _, _, _ in self.log):
            self.log.append((turn, "request", [turn], [turn]))
        self.log.append((turn, "answer", [f"answer {turn}"], [f"answer {turn}"]))

    def has(self, turn: str) -> bool:
        return any(each == turn and what == "answer" for each, what, _, _ in self.log)


@settings(max_examples=150, deadline=None)
@given(RUNS)
def test_what_is_stored_and_shown_follows_from_the_rules(runs: list[tuple[str | None, Shape | None]]) -> None:
    async def run() -> None:
        async with MemoryBackend() as backend:
            history = StoredChatHistoryProvider(backend, on_failure="partial")
            session, rules = history.session("k"), Rules()
            for number, (name, shape) in enumerate(runs):
                request = name or f"run {number}"
                try:
                    async with history.turn(session, [ChatMessage.user(request)], turn_id=name) as turn:
                        assert turn.replayed is rules.has(request)
                        if turn.replayed:
                            continue
                        assert said(list(turn.messages)) == [*rules.seen_by(request), request]
                        if shape is not None:
                            turn.add(PARTS[part] for part in shape)
                            raise LookupError
                        turn.add(ChatMessage.assistant(f"answer {request}"))
                except LookupError:
                    rules.fail(request, shape or ())
                else:
                    rules.succeed(request)
                assert said(list(await history.messages(session))) == rules.stored()

    asyncio.run(run())
