"""An agent of the framework with our provider, beside the framework's own: every situation that a run can be in."""

import asyncio
import gc
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Protocol
from weakref import ref

import pytest
from agent_framework import (
    Agent,
    AgentResponseUpdate,
    AgentSession,
    CompactionProvider,
    Content,
    ContextProvider,
    InMemoryHistoryProvider,
    Message,
    SessionContext,
    SlidingWindowStrategy,
    tool,
)

from chathistory_core import (
    BackendUnavailableError,
    ChatHistoryBackend,
    ChatMessage,
    ConfigurationError,
    StoredChatHistoryProvider,
    open_history,
)
from chathistory_core.faces.agent_framework import StoredHistoryProvider
from chathistory_core.messages import FunctionCallContent
from chathistory_memory import MemoryBackend

CALL = Content.from_function_call("call_1", "get_time", arguments="{}")
POLICIES = ("discard", "request", "partial")


class Scripted(Protocol):
    """The model of `conftest.py`."""

    seen: list[list[Message]]
    roles: list[list[str]]
    waits: asyncio.Event


Models = Callable[..., Any]


@tool(approval_mode="never_require")
def get_time() -> str:
    """The time."""
    return "12:00"


@tool(approval_mode="always_require")
def set_clock(to: str) -> str:
    """Set the clock."""
    return f"set to {to}"


def texts(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Who said what, the kinds of contents standing for those without text."""
    return [
        (message.role, " ".join(content.text or content.type for content in message.contents)) for message in messages
    ]


def dicts(messages: Sequence[Message]) -> list[str]:
    return [json.dumps(message.to_dict(), sort_keys=True) for message in messages]


async def stored(history: StoredHistoryProvider, session: AgentSession) -> list[Message]:
    """What the framework gets of the conversation, whichever run reads it."""
    return await history.get_messages(session.session_id, state=session.state.get(history.source_id))


@asynccontextmanager
async def beside(url: str, model: Any, **options: Any) -> AsyncIterator[tuple[Agent, StoredHistoryProvider]]:
    """An agent that loads from ours, and stores in ours and in the framework's own provider at once."""
    async with StoredHistoryProvider(open_history(url)) as history:
        own = InMemoryHistoryProvider("own", load_messages=False)
        yield (
            Agent(model, name="Clock", tools=[get_time, set_clock], context_providers=[history, own], **options),
            history,
        )


def own(session: AgentSession) -> list[Message]:
    """What the framework's own provider stored of the session."""
    messages: list[Message] = session.state["own"]["messages"]
    return messages


def restarted(session: AgentSession) -> AgentSession:
    """The session as another process restores it."""
    return AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))


def test_two_turns_are_stored_and_the_second_sees_the_first(url: str, model: Models) -> None:
    async def run() -> None:
        clock = model(["Hello, Ann"], ["Ann"])
        async with beside(url, clock) as (agent, history):
            session = AgentSession(session_id="S1")
            await agent.run("I am Ann", session=session)
            answer = await agent.run("Who am I?", session=session)
            assert answer.text == "Ann"
            assert clock.roles == [["user"], ["user", "assistant", "user"]]
            assert texts(await stored(history, session)) == [
                ("user", "I am Ann"),
                ("assistant", "Hello, Ann"),
                ("user", "Who am I?"),
                ("assistant", "Ann"),
            ]
            assert dicts(await stored(history, session)) == dicts(own(session))

    asyncio.run(run())


def test_twenty_turns_with_restarts_are_the_frameworks_own_object_for_object(url: str, model: Models) -> None:
    async def run() -> None:
        session = AgentSession(session_id="S1")
        for number in range(20):
            answer = [f"answer {number}"] if number % 3 else [CALL]
            async with beside(url, model(answer, ["and then"])) as (agent, history):
                await agent.run(f"question {number}", session=session)
                assert dicts(await stored(history, session)) == dicts(own(session))
            session = restarted(session)
        assert len(own(session)) == 20 * 2 + 7 * 2
        async with StoredHistoryProvider(url) as history:
            assert dicts(await stored(history, session)) == dicts(own(session))

    asyncio.run(run())


def test_a_tool_round_is_stored_whole(url: str, model: Models) -> None:
    async def run() -> None:
        clock = model([CALL], ["It is 12:00"])
        async with beside(url, clock) as (agent, history):
            session = AgentSession()
            await agent.run("What time is it?", session=session)
            assert [message.role for message in own(session)] == ["user", "assistant", "tool", "assistant"]
            assert dicts(await stored(history, session)) == dicts(own(session))
            assert clock.roles[1] == ["user", "assistant", "tool"]

    asyncio.run(run())


def test_a_call_of_the_model_at_a_time_is_stored_where_the_agent_asks_for_that(url: str, model: Models) -> None:
    async def run() -> None:
        clock = model([CALL], ["It is 12:00"], ["Still"])
        async with beside(url, clock, require_per_service_call_history_persistence=True) as (agent, history):
            session = AgentSession()
            await agent.run("What time is it?", session=session)
            assert clock.roles[1] == ["user", "assistant", "tool"]
            # The framework adds an author and the call's id to objects that it had stored before.
            assert texts(await stored(history, session)) == texts(own(session))
            assert len({record.turn_id for record in await records(history, session)}) == 2
            await agent.run("Sure?", session=restarted(session))
            assert clock.roles[2] == ["user", "assistant", "tool", "assistant", "user"]

    asyncio.run(run())


async def records(history: StoredHistoryProvider, session: AgentSession) -> Sequence[Any]:
    backend = history.history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract] # the protocol stands for any
    assert backend is not None
    return (await backend.get(history.key_of(session))).records


def test_a_later_call_that_fails_leaves_what_earlier_calls_stored_and_repair_mends_it(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", repair="drop")) as history:
            agent = Agent(
                model([CALL], ValueError("the model is down"), ["Hello"]),
                tools=[get_time],
                context_providers=[history],
                require_per_service_call_history_persistence=True,
            )
            session = AgentSession()
            with pytest.raises(ValueError, match="down"):
                await agent.run("What time is it?", session=session)
            kept = await history.history.messages(history.history.session(session.session_id))
            assert [message.role for message in kept] == ["user", "assistant"]
            assert (await agent.run("Hello?", session=session)).text == "Hello"
            assert [message.role for message in await stored(history, session)] == ["user", "user", "assistant"]

    asyncio.run(run())


def test_a_stream_is_stored_once_when_it_has_ended(url: str, model: Models) -> None:
    async def run() -> None:
        async with beside(url, model(["he", "llo"], [CALL], ["It is ", "12:00"])) as (agent, history):
            session = AgentSession()
            said = [update.text async for update in agent.run("Hi", session=session, stream=True)]
            assert said == ["he", "llo"]
            stream = agent.run("What time is it?", session=session, stream=True)
            assert (await stream.get_final_response()).text.endswith("It is 12:00")
            assert texts(await stored(history, session))[:2] == [("user", "Hi"), ("assistant", "hello")]
            assert dicts(await stored(history, session)) == dicts(own(session))

    asyncio.run(run())


Ending = Callable[[Agent, AgentSession, Any], Awaitable[None]]


async def fails(agent: Agent, session: AgentSession, clock: Any) -> None:
    with pytest.raises(ValueError, match="down"):
        await agent.run("What time is it?", session=session)


async def fails_midway(agent: Agent, session: AgentSession, clock: Any) -> None:
    with pytest.raises(ValueError, match="down"):
        async for _ in agent.run("What time is it?", session=session, stream=True):
            pass


async def is_cancelled(agent: Agent, session: AgentSession, clock: Any) -> None:
    await cancelled(agent.run("What time is it?", session=session), clock)


async def is_cancelled_midway(agent: Agent, session: AgentSession, clock: Any) -> None:
    await cancelled(agent.run("What time is it?", session=session, stream=True).get_final_response(), clock)


async def cancelled(running: Awaitable[object], clock: Any) -> None:
    task = asyncio.ensure_future(running)
    await clock.waits.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def is_closed(agent: Agent, session: AgentSession, clock: Any) -> None:
    stream = agent.run("What time is it?", session=session, stream=True)
    async for update in stream:
        if update.text:
            break
    await stream.close()


async def is_left_in_a_block(agent: Agent, session: AgentSession, clock: Any) -> None:
    async with agent.run("What time is it?", session=session, stream=True) as stream:
        async for update in stream:
            if update.text:
                break


async def is_left_by_its_task(agent: Agent, session: AgentSession, clock: Any) -> None:
    async def read() -> AgentResponseUpdate | None:
        async for update in agent.run("What time is it?", session=session, stream=True):
            if update.text:
                return update
        return None

    assert await asyncio.create_task(read()) is not None


HE = [("assistant", "he")]
ROUND = [("assistant", "function_call"), ("tool", "function_result")]
ENDINGS: list[tuple[Ending, Callable[[], list[Any]], list[tuple[str, str]]]] = [
    (fails, lambda: [ValueError("down")], []),
    (fails, lambda: [[CALL], ValueError("down")], ROUND),
    (fails_midway, lambda: [ValueError("down")], []),
    (fails_midway, lambda: [["he", ValueError("down")]], HE),
    (fails_midway, lambda: [[CALL], ["he", ValueError("down")]], [*ROUND, *HE]),
    (is_cancelled, lambda: [asyncio.Event()], []),
    (is_cancelled, lambda: [[CALL], asyncio.Event()], ROUND),
    (is_cancelled_midway, lambda: [["he", asyncio.Event()]], HE),
    (is_closed, lambda: [["he", "llo"]], HE),
    (is_closed, lambda: [[CALL], ["he", "llo"]], [*ROUND, *HE]),
    (is_left_in_a_block, lambda: [["he", "llo"]], HE),
    (is_left_by_its_task, lambda: [["he", "llo"]], HE),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("ends", "part", "partial"), ENDINGS)
def test_a_run_that_fails_is_stored_at_once_as_far_as_the_policy_says(
    model: Models, instrumented: bool, policy: Any, ends: Ending, part: Callable[[], list[Any]], partial: list[Any]
) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure=policy)) as history:
            clock = model(*part(), ["Hello"])
            agent = Agent(clock, name="Clock", tools=[get_time], context_providers=[history])
            session = AgentSession()
            await ends(agent, session, clock)
            for _ in range(20):  # what the end of a task started
                await asyncio.sleep(0)
            kept = await history.history.messages(history.history.session(session.session_id))
            expected = [] if policy == "discard" else [("user", "What time is it?")]
            expected += partial if policy == "partial" else []
            assert texts_of(kept) == expected
            assert [incomplete(message) for message in kept] == [False, *[True] * len(partial)][: len(kept)]
            clock.part = [["Hello"]]
            await agent.run("Hello?", session=session)
            assert [message.role for message in clock.seen[-1]][-1] == "user"
            assert texts(await stored(history, session))[-2:] == [("user", "Hello?"), ("assistant", "Hello")]

    asyncio.run(run())


def texts_of(messages: Sequence[ChatMessage]) -> list[tuple[str, str]]:
    names = {"functionCall": "function_call", "functionResult": "function_result"}
    return [
        (str(message.role), message.text or names[getattr(message.contents[0], "type", "")]) for message in messages
    ]


def incomplete(message: ChatMessage) -> bool:
    return (message.additional_properties or {}).get("_incomplete") is True


def test_a_stream_that_is_neither_read_nor_closed_is_noted_when_the_conversation_goes_on(
    model: Models, instrumented: bool
) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            clock = model(["he", "llo"], ["Hello"])
            agent = Agent(clock, context_providers=[history])
            session = AgentSession()
            left = agent.run("Hi", session=session, stream=True)
            async for _ in left:
                break
            await agent.run("Hello?", session=session)
            assert clock.roles[-1] == ["user", "assistant", "user"]
            assert incomplete((await history.history.messages(history.history.session(session.session_id)))[1])
            assert left is not None  # somebody may still hold it

    asyncio.run(run())


def test_closing_the_provider_notes_the_streams_that_were_left(model: Models, instrumented: bool, sqlite: str) -> None:
    async def run() -> None:
        session = AgentSession()
        async with StoredHistoryProvider(open_history(sqlite, on_failure="partial")) as history:
            stream = Agent(model(["he", "llo"]), context_providers=[history]).run("Hi", session=session, stream=True)
            async for _ in stream:
                break
        async with StoredHistoryProvider(sqlite) as history:
            assert texts(await stored(history, session)) == [("user", "Hi"), ("assistant", "he")]

    asyncio.run(run())


def test_a_stream_that_is_read_on_after_it_seemed_left_is_stored_whole(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            agent = Agent(model(["he", "llo"], ["Hello"]), context_providers=[history])
            session = AgentSession()
            stream = agent.run("Hi", session=session, stream=True)
            async for _ in stream:
                break
            await agent.run("Hello?", session=session)
            assert (await stream.get_final_response()).text == "hello"
            kept = await history.history.messages(history.history.session(session.session_id))
            assert [message.text for message in kept if not incomplete(message)] == ["Hi", "Hello?", "Hello", "hello"]

    asyncio.run(run())


def test_a_run_that_the_agent_tries_again_stores_its_question_once(model: Models) -> None:
    async def run() -> None:
        from agent_framework import ChatContext, chat_middleware

        @chat_middleware
        async def twice(context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
            try:
                await call_next()
            except ValueError:
                await call_next()

        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            agent = Agent(model(ValueError("down"), ["Hello"]), context_providers=[history], middleware=[twice])
            session = AgentSession()
            assert (await agent.run("Hi", session=session)).text == "Hello"
            assert texts(await stored(history, session)) == [("user", "Hi"), ("assistant", "Hello")]

    asyncio.run(run())


def test_cancelling_a_tool_is_a_failure_of_the_run(model: Models) -> None:
    async def run() -> None:
        begun = asyncio.Event()

        @tool(approval_mode="never_require")
        async def wait() -> str:
            """Wait."""
            begun.set()
            await asyncio.Event().wait()
            return ""

        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            call = Content.from_function_call("c", "wait", arguments="{}")
            agent = Agent(model([call]), tools=[wait], context_providers=[history])
            session = AgentSession()
            task = asyncio.ensure_future(agent.run("Wait", session=session))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            kept = await history.history.messages(history.history.session(session.session_id))
            assert [message.role for message in kept] == ["user", "assistant"]
            assert isinstance(kept[1].contents[0], FunctionCallContent)

    asyncio.run(run())


class Failing(MemoryBackend):
    """A store that is down, or hangs, when told."""

    down = False
    hangs: asyncio.Event | None = None

    async def get(self, *args: Any, **kwargs: Any) -> Any:
        if self.down:
            raise BackendUnavailableError("the store is down")
        return await super().get(*args, **kwargs)

    async def append(self, *args: Any, **kwargs: Any) -> Any:
        if self.down:
            raise BackendUnavailableError("the store is down")
        if self.hangs is not None:
            self.hangs.set()
            for _ in range(5):
                await asyncio.sleep(0)
        return await super().append(*args, **kwargs)


def test_a_run_cancelled_while_it_is_saved_is_saved(model: Models) -> None:
    async def run() -> None:
        async with Failing() as backend:
            history = StoredHistoryProvider(StoredChatHistoryProvider(backend))
            session = AgentSession()
            backend.hangs = asyncio.Event()
            task = asyncio.ensure_future(
                Agent(model(["Hello"]), context_providers=[history]).run("Hi", session=session)
            )
            await backend.hangs.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert texts(await stored(history, session)) == [("user", "Hi"), ("assistant", "Hello")]

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_a_store_that_fails_costs_the_answer_only_where_our_policy_says(model: Models, stream: bool) -> None:
    async def run() -> None:
        async with Failing() as backend:
            session = AgentSession()

            async def answer(history: StoredHistoryProvider) -> str:
                agent = Agent(Down(["Hello"], backend=backend), context_providers=[history])
                if stream:
                    return (await agent.run("Hi", session=session, stream=True).get_final_response()).text
                return (await agent.run("Hi", session=session)).text

            class Down(model):  # type: ignore[misc,valid-type] # a fixture's value
                def __init__(self, *part: Any, backend: Failing) -> None:
                    super().__init__(*part)
                    self.backend = backend

                def _inner_get_response(self, **kwargs: Any) -> Any:
                    self.backend.down = True
                    return super()._inner_get_response(**kwargs)

            with pytest.raises(BackendUnavailableError):
                await answer(StoredHistoryProvider(StoredChatHistoryProvider(backend)))
            backend.down = False
            waiting = StoredChatHistoryProvider(backend, on_save_error="outbox")
            assert await answer(StoredHistoryProvider(waiting)) == "Hello"
            assert len(waiting.unsaved) == 1
            backend.down = False
            await waiting.save_unsaved()
            history = StoredHistoryProvider(waiting)
            assert texts(await stored(history, session)) == [("user", "Hi"), ("assistant", "Hello")]

    asyncio.run(run())


def test_a_history_that_cannot_be_loaded_ends_the_run_before_the_model_unless_told_otherwise(model: Models) -> None:
    async def run() -> None:
        async with Failing() as backend:
            backend.down = True
            clock = model(["Hello"])
            agent = Agent(clock, context_providers=[StoredHistoryProvider(StoredChatHistoryProvider(backend))])
            with pytest.raises(BackendUnavailableError):
                await agent.run("Hi", session=AgentSession())
            assert clock.seen == []
            told = StoredChatHistoryProvider(backend, on_load_error="empty", on_save_error="outbox")
            agent = Agent(clock, context_providers=[StoredHistoryProvider(told)])
            assert (await agent.run("Hi", session=AgentSession())).text == "Hello"

    asyncio.run(run())


def test_a_run_without_a_session_is_a_conversation_of_its_own(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            clock = model(["Hello"], ["Hello again"])
            agent = Agent(clock, context_providers=[history])
            await agent.run("Hi")
            await agent.run("Hi")
            assert clock.roles == [["user"], ["user"]]
            assert [one.record_count for one in await history.history.summaries()] == [2, 2]

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_where_the_models_service_keeps_the_conversation_nothing_is_loaded_or_stored(
    model: Models, stream: bool
) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            archive = StoredHistoryProvider(history.history.scoped("archive"), source_id="archive", load_messages=False)
            clock = model(["Hello"], ["Hello"], conversation_id="conv_1")
            agent = Agent(clock, context_providers=[history, archive])
            session = AgentSession()
            for _ in range(2):
                if stream:
                    await agent.run("Hi", session=session, stream=True).get_final_response()
                else:
                    await agent.run("Hi", session=session)
            assert session.service_session_id == "conv_1"
            assert clock.roles == [["user"], ["user"]]
            assert await stored(history, session) == []
            assert len(await stored(archive, session)) == 4  # one that only stores is there to keep a copy
            clock.part = [["Hello"]]
            other = AgentSession()
            await agent.run("Hi", session=other, options={"conversation_id": "conv_2"})
            assert await stored(history, other) == []

    asyncio.run(run())


def test_a_call_at_a_time_stores_nothing_where_the_models_service_keeps_the_conversation(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            agent = Agent(
                model([CALL], ["It is 12:00"], conversation_id="conv_1"),
                tools=[get_time],
                context_providers=[history],
                require_per_service_call_history_persistence=True,
                default_options={"store": True},
            )
            session = AgentSession()
            await agent.run("What time is it?", session=session)
            assert session.service_session_id == "conv_1"
            assert await history.history.summaries() == ()

    asyncio.run(run())


def test_one_that_only_stores_leaves_loading_to_the_framework(url: str, model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url, load_messages=False) as history:
            clock = model(["Hello"], ["Hello again"])
            agent = Agent(clock, context_providers=[history])
            session = AgentSession()
            await agent.run("Hi", session=session)
            await agent.run("Hi", session=session)
            assert clock.roles[1] == ["user", "assistant", "user"]
            assert dicts(await stored(history, session)) == dicts(session.state["in_memory"]["messages"])

    asyncio.run(run())


def test_two_runs_of_one_session_at_once_are_both_stored_whole(url: str, model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url) as history:
            gate = asyncio.Event()
            first, second = model([gate, "one"]), model(["two"])
            session = AgentSession()
            slow = asyncio.ensure_future(Agent(first, context_providers=[history]).run("1?", session=session))
            await first.waits.wait()
            await Agent(second, context_providers=[history]).run("2?", session=session)
            gate.set()
            await slow
            kept = texts(await stored(history, session))
            assert kept == [("user", "2?"), ("assistant", "two"), ("user", "1?"), ("assistant", "one")]

    asyncio.run(run())


def test_two_providers_under_one_source_id_are_refused(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            other = StoredHistoryProvider(history.history.scoped("other"))
            agent = Agent(model(["Hello"]), context_providers=[history, other])
            with pytest.raises(ConfigurationError, match="source_id"):
                await agent.run("Hi", session=AgentSession())

    asyncio.run(run())


def test_three_identical_turns_are_three_turns(url: str, model: Models) -> None:
    async def run() -> None:
        async with beside(url, model(["ok"], ["ok"], ["ok"])) as (agent, history):
            session = AgentSession()
            for _ in range(3):
                await agent.run("yes", session=session)
            assert texts(await stored(history, session)) == [("user", "yes"), ("assistant", "ok")] * 3
            assert len(own(session)) < 6  # the framework takes what is equal for a repetition

    asyncio.run(run())


def test_a_transcript_played_back_is_stored_once_and_shown_once(url: str, model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url) as history:
            clock = model([CALL], ["It is 12:00"], ["Still 12:00"], ["Yes"])
            agent = Agent(clock, tools=[get_time], context_providers=[history])
            session = AgentSession()
            transcript = [Message("user", ["What time is it?"])]
            for question in ("Sure?", "Really?"):
                response = await agent.run(transcript, session=session)
                transcript = [*transcript, *response.messages, Message("user", [question])]
            await agent.run(
                [Message.from_dict(json.loads(json.dumps(one.to_dict()))) for one in transcript], session=session
            )
            kept = await stored(history, session)
            assert texts(kept)[-4:] == [
                ("user", "Sure?"),
                ("assistant", "Still 12:00"),
                ("user", "Really?"),
                ("assistant", "Yes"),
            ]
            assert len(kept) == 8
            assert clock.roles[-1] == [message.role for message in kept[:-1]]

    asyncio.run(run())


def test_what_the_framework_does_to_its_objects_later_does_not_show(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            agent = Agent(model(["Hello"], ["Hello"]), context_providers=[history])
            session = AgentSession()
            asked = Message("user", ["Hi"])
            response = await agent.run(asked, session=session)
            asked.contents.append(Content.from_text("changed"))
            response.messages[0].contents[0].text = "changed"
            (await stored(history, session))[0].contents.clear()
            assert texts(await stored(history, session)) == [("user", "Hi"), ("assistant", "Hello")]

    asyncio.run(run())


async def asks(agent: Agent, session: AgentSession) -> Content:
    response = await agent.run("Set the clock", session=session)
    (request,) = response.user_input_requests
    return request


SET = Content.from_function_call("call_1", "set_clock", arguments='{"to": "13:00"}')


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_that_is_asked_for_and_given_or_refused_goes_on_after_a_restart(
    url: str, model: Models, approved: bool
) -> None:
    async def run() -> None:
        clock = model([SET], ["Done"], ["Hello"])
        async with beside(url, clock) as (agent, history):
            session = AgentSession()
            request = await asks(agent, session)
            assert ("assistant", "function_call function_approval_request") in texts(await stored(history, session))
            session = restarted(session)
        async with beside(url, clock) as (agent, history):
            reply = Message("user", [request.to_function_approval_response(approved)])
            assert (await agent.run(reply, session=session)).text == "Done"
            assert clock.roles[1] == ["user", "assistant", "tool"]
            result = clock.seen[1][-1].contents[0]
            assert result.type == "function_result"
            assert ("13:00" in result.result) is approved
            assert dicts(await stored(history, session)) == dicts(own(session))
            await agent.run("Hello?", session=session)
            kinds = [content.type for message in clock.seen[2] for content in message.contents]
            assert kinds == ["text", "function_call", "function_result", "text", "text"]

    asyncio.run(run())


def test_an_approval_that_is_talked_past_is_stored_as_the_framework_stores_it(url: str, model: Models) -> None:
    async def run() -> None:
        clock = model([SET], ["Never mind"])
        async with beside(url, clock) as (agent, history):
            session = AgentSession()
            await asks(agent, session)
            assert (await agent.run("Forget it", session=session)).text == "Never mind"
            assert dicts(await stored(history, session)) == dicts(own(session))

    asyncio.run(run())


class Knows(ContextProvider):
    """Adds what it knows."""

    async def before_run(self, *, agent: Any, session: AgentSession, context: SessionContext, state: Any) -> None:
        context.extend_messages(self, [Message("user", [f"known by {self.source_id}"])])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, ["Hi", "Hello"]),
        ({"store_context_messages": True}, ["known by a", "known by b", "Hi", "Hello"]),
        ({"store_context_messages": True, "store_context_from": {"b"}}, ["known by b", "Hi", "Hello"]),
        ({"store_inputs": False}, ["Hello"]),
        ({"store_outputs": False}, ["Hi"]),
        ({"store_inputs": False, "store_outputs": False}, []),
    ],
)
def test_the_frameworks_flags_choose_what_is_stored(url: str, model: Models, flags: Any, expected: list[str]) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(url, **flags) as history:
            agent = Agent(model(["Hello"]), context_providers=[Knows("a"), history, Knows("b")])
            session = AgentSession()
            await agent.run("Hi", session=session)
            kept = await stored(history, session)
            assert [message.text for message in kept] == expected
            assert all("_attribution" not in message.additional_properties for message in kept)

    asyncio.run(run())


def test_instructions_are_never_stored_and_a_system_message_of_the_caller_is(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            agent = Agent(model(["Hello"]), "Be kind", context_providers=[history])
            session = AgentSession()
            await agent.run([Message("system", ["Be brief"]), Message("user", ["Hi"])], session=session)
            assert [message.text for message in await stored(history, session)] == ["Be brief", "Hi", "Hello"]

    asyncio.run(run())


def test_windows_and_trust_apply_to_what_is_loaded(model: Models) -> None:
    async def run() -> None:
        from chathistory_core import Window

        async with StoredHistoryProvider(
            open_history("memory://", window=Window(turns=1), trusted_roles=["user", "assistant"])
        ) as history:
            clock = model(["one"], ["two"], ["three"])
            agent = Agent(clock, context_providers=[history])
            session = AgentSession()
            await history.save_messages(session.session_id, [Message("system", ["Obey"])])
            for question in ("1?", "2?", "3?"):
                await agent.run(question, session=session)
            assert [message.text for message in clock.seen[-1]] == ["2?", "two", "3?"]
            kept = await history.history.messages(history.history.session(session.session_id))
            assert len(kept) == 7

    asyncio.run(run())


def test_a_conversation_cleared_while_a_run_was_going_is_not_brought_back(model: Models) -> None:
    async def run() -> None:
        from chathistory_core import EpochChangedError

        async with StoredHistoryProvider("memory://") as history:
            gate = asyncio.Event()
            clock = model(["Hello"], [gate, "late"])
            agent = Agent(clock, context_providers=[history])
            session = AgentSession()
            await agent.run("Hi", session=session)
            late = asyncio.ensure_future(agent.run("Hi?", session=session))
            await clock.waits.wait()
            await history.history.clear(history.history.session(session.session_id))
            gate.set()
            with pytest.raises(EpochChangedError):
                await late
            assert await stored(history, session) == []

    asyncio.run(run())


@pytest.mark.parametrize("stream", [False, True])
def test_a_later_call_that_fails_leaves_no_result_of_a_tool_behind_where_the_policy_keeps_requests(
    model: Models, stream: bool
) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="request")) as history:
            agent = Agent(
                model([CALL], ValueError("down"), ["Hello"]),
                tools=[get_time],
                context_providers=[history],
                require_per_service_call_history_persistence=True,
            )
            session = AgentSession()
            await (fails_midway if stream else fails)(agent, session, None)
            await agent.run("Hello?", session=session)
            roles = [message.role for message in await stored(history, session)]
            assert roles == ["user", "assistant", "tool", "user", "assistant"]

    asyncio.run(run())


class Breaks(ContextProvider):
    """Goes wrong."""

    async def before_run(self, **_: Any) -> None:
        raise KeyError("not ours")


def test_a_run_that_fails_elsewhere_is_noted_when_its_task_ends(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="request")) as history:
            agent = Agent(model(), context_providers=[history, Breaks("b")])
            session = AgentSession()
            with pytest.raises(KeyError, match="not ours"):
                await asyncio.ensure_future(agent.run("Hi", session=session))
            for _ in range(20):  # what the end of the task started
                await asyncio.sleep(0)
            assert texts(await stored(history, session)) == [("user", "Hi")]

    asyncio.run(run())


def test_runs_that_fail_are_stored_alike_in_every_store(url: str, model: Models) -> None:
    async def run() -> None:
        sessions = [AgentSession() for _ in ENDINGS]
        async with StoredHistoryProvider(open_history(url, on_failure="partial")) as history:
            for session, (ends, part, _) in zip(sessions, ENDINGS, strict=True):
                clock = model(*part())
                await ends(Agent(clock, name="Clock", tools=[get_time], context_providers=[history]), session, clock)
        async with open_history(url) as ours:
            for session, (ends, _, partial) in zip(sessions, ENDINGS, strict=True):
                kept = await ours.messages(ours.session(session.session_id))
                assert texts_of(kept) == [("user", "What time is it?"), *partial], ends.__name__

    asyncio.run(run())


def test_two_providers_that_load_show_the_conversation_twice_as_the_framework_has_it(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            clock = model(["Hello"], ["Hello again"])
            agent = Agent(clock, context_providers=[history, InMemoryHistoryProvider("own")])
            session = AgentSession()
            await agent.run("Hi", session=session)
            await agent.run("Hi again", session=session)
            assert clock.roles[1] == ["user", "assistant"] * 2 + ["user"]
            assert dicts(await stored(history, session)) == dicts(own(session))

    asyncio.run(run())


def test_the_frameworks_compaction_works_on_what_was_loaded_and_changes_nothing_stored(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider("memory://") as history:
            clock = model(["1"], ["2"], ["3"])
            compaction = CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=2))
            agent = Agent(clock, context_providers=[history, compaction])
            session = AgentSession()
            for question in ("one", "two", "three"):
                await agent.run(question, session=session)
            assert len(clock.seen[-1]) < 5
            assert [message.text for message in await stored(history, session)] == [
                "one",
                "1",
                "two",
                "2",
                "three",
                "3",
            ]
            assert all(not message.additional_properties for message in await stored(history, session))

    asyncio.run(run())


class Sees(ContextProvider):
    """Notes the contexts of runs, and holds none."""

    contexts: ClassVar[list[ref[SessionContext]]] = []

    async def before_run(self, *, context: SessionContext, **_: Any) -> None:
        self.contexts.append(ref(context))


def test_nothing_of_a_run_is_held_when_it_is_over(model: Models) -> None:
    async def run() -> None:
        async with StoredHistoryProvider(open_history("memory://", on_failure="partial")) as history:
            agent = Agent(model(["Hello"], ["he", "llo"], ValueError("down")), context_providers=[history, Sees("s")])
            session = AgentSession()
            await agent.run("Hi", session=session)
            await is_closed(agent, session, None)
            await fails(agent, session, None)
            gc.collect()
            assert [context() for context in Sees.contexts] == [None] * 3

    asyncio.run(run())
