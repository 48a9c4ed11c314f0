"""However a conversation goes, all that was said is in the view or in what the model was told for its summary."""

import asyncio
import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from chathistory_core import MessageCodec, StoredChatHistoryProvider
from chathistory_core.formats import chat_message, note
from chathistory_core.messages import ChatMessage, Origin, TextContent
from chathistory_core.reducers import CountingReducer, Reducer, SummarizingReducer, is_summary
from chathistory_core.views.windows import Window, leading
from chathistory_memory import MemoryBackend

from .histories import HISTORIES
from .talk import Model, notes


class Pair:
    """A format of two messages a record."""

    name = "test-pair"

    def decode(self, payload: bytes) -> Sequence[ChatMessage]:
        return [
            chat_message.decode(json.dumps(message).encode())[0].with_origin(Origin(self.name, payload, index, 2))
            for index, message in enumerate(json.loads(payload))
        ]


PAIR = Pair()


def paired(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages, each two that stand together as two of one record."""
    found: list[ChatMessage] = []
    for index in range(0, len(messages) - 1, 2):
        payload = json.dumps([json.loads(chat_message.encode(one)) for one in messages[index : index + 2]]).encode()
        found += PAIR.decode(payload)
    return [*found, *messages[len(found) :]]


def numbered(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages, of which each one's text is its own."""
    return [
        one.model_copy(update={"contents": [*one.contents, TextContent(text=f"({number})")]})
        for number, one in enumerate(messages)
    ]


TALKS = st.tuples(HISTORIES, st.booleans(), st.lists(st.integers(1, 6), min_size=1, max_size=6))


@settings(max_examples=80, deadline=None)
@given(talk=TALKS, keep=st.integers(1, 4), more=st.integers(0, 4), fails=st.sets(st.integers(1, 6)))
def test_nothing_that_was_said_is_lost_on_the_way_into_summaries(
    talk: tuple[list[ChatMessage], bool, list[int]], keep: int, more: int, fails: set[int]
) -> None:
    history, pairs, sizes = talk
    said = numbered([one for one in history if one.role != "tool"])
    messages = paired(said) if pairs else said
    model = Model()
    reducer = SummarizingReducer(model, keep=Window(messages=keep), above=Window(messages=keep + more))

    async def go() -> None:
        async with MemoryBackend() as backend:
            codec = MessageCodec([chat_message, note, PAIR])
            provider = StoredChatHistoryProvider(backend, codec=codec, reducer=reducer)
            session = provider.session("k")
            start, turn = 0, 0
            while start < len(messages):
                turn += 1
                model.failure = RuntimeError() if turn in fails else None
                size = sizes[turn % len(sizes)] * (2 if pairs else 1)
                async with provider.turn(session, []) as run:
                    check(run.messages, messages[:start])
                    run.add(messages[start : start + size])
                start += size
            model.failure = None
            async with provider.turn(session, []) as run:
                view = check(run.messages, messages)
            asked = len(model.asked)
            async with provider.turn(session, []) as run:
                assert check(run.messages, messages) == view
            assert len(model.asked) == asked
            assert notes(await backend.get("k")) <= asked

    def check(shown: Sequence[ChatMessage], stored: Sequence[ChatMessage]) -> list[str]:
        texts = [one.text for one in shown]
        told = "".join(text for asked in model.asked for text in asked)
        pinned = leading(stored)
        assert texts[: len(pinned)] == [one.text for one in pinned]
        for index, one in enumerate(stored):
            if one.role in {"user", "assistant"}:
                assert f"({index})" in "".join(texts) + told
        places = [
            [one.text for one in stored].index(one.text) for one in shown if "(" in one.text and not is_summary(one)
        ]
        assert places == sorted(set(places))
        return texts

    asyncio.run(go())


def test_a_model_is_given_no_more_at_once_than_it_is_to_be_given_though_records_hold_several_messages() -> None:
    model = Model()
    messages = paired([one for n in range(6) for one in (ChatMessage.user(f"q{n}"), ChatMessage.assistant(f"a{n}"))])

    async def go() -> None:
        async with MemoryBackend() as backend:
            reducer = SummarizingReducer(model, keep=Window(messages=2), at_once=Window(messages=3))
            codec = MessageCodec([chat_message, note, PAIR])
            provider = StoredChatHistoryProvider(backend, codec=codec, reducer=reducer)
            await provider.set_messages(provider.session("k"), messages)
            async with provider.turn(provider.session("k"), []) as run:
                assert [one.text for one in run.messages][1:] == ["q5", "a5"]

    asyncio.run(go())
    assert [len([text for text in asked if "Summary" not in text]) for asked in model.asked] == [2] * 5


def test_a_summary_stands_for_whole_records_and_what_is_kept_begins_with_one() -> None:
    model = Model()
    messages = paired([ChatMessage.assistant(f"m{number}") for number in range(6)])

    async def go() -> None:
        async with MemoryBackend() as backend:
            reducer = SummarizingReducer(model, keep=Window(messages=1), above=Window(messages=1))
            codec = MessageCodec([chat_message, note, PAIR])
            provider = StoredChatHistoryProvider(backend, codec=codec, reducer=reducer)
            await provider.set_messages(provider.session("k"), messages)
            for _ in range(2):
                async with provider.turn(provider.session("k"), []) as run:
                    assert [one.text for one in run.messages][1:] == ["m4", "m5"]

    asyncio.run(go())
    assert model.asked == [["m0", "m1", "m2", "m3"]]


class Picking:
    """Keeps some of the messages."""

    def __init__(self, places: set[int]) -> None:
        self.places = places

    async def reduce(self, messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
        return [message for place, message in enumerate(messages) if place in self.places]


REDUCERS: st.SearchStrategy[Reducer] = st.one_of(
    st.integers(1, 6).map(CountingReducer), st.sets(st.integers(0, 20)).map(Picking)
)


@settings(max_examples=80, deadline=None)
@given(history=HISTORIES, reducer=REDUCERS)
def test_compacting_stores_the_view_and_keeps_the_records_that_are_whole(
    history: list[ChatMessage], reducer: Reducer
) -> None:
    messages = paired(numbered(history))

    async def go() -> None:
        async with MemoryBackend() as backend:
            provider = StoredChatHistoryProvider(backend, codec=MessageCodec([chat_message, note, PAIR]))
            session = provider.session("k")
            await provider.set_messages(session, messages)
            before = await provider.messages(session)
            payloads = [record.payload for record in (await backend.get("k")).records]
            view = list(await reducer.reduce(before))
            await provider.compact(session, reducer)
            assert list(await provider.messages(session)) == view
            kept = {id(message) for message in view}
            whole = [
                payload
                for place, payload in enumerate(payloads)
                if all(id(message) in kept for message in before[2 * place : 2 * place + 2])
            ]
            assert [
                record.payload for record in (await backend.get("k")).records if record.payload in payloads
            ] == whole

    asyncio.run(go())
