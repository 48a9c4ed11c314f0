"""What the real agent of .NET did with a history provider, done again with ours: same calls, messages, marks, store.

`golden/runs.jsonl` holds a situation a line: what the provider was called with and returned, what the model was given,
what was raised, what was stored. An agent of our own repeats how the provider was driven.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from chathistory_core import ChatHistoryBackend
from chathistory_core.messages import (
    AI_CONTEXT_PROVIDER,
    AIContent,
    ChatMessage,
    FunctionCallContent,
    FunctionResultContent,
    SourceAttribution,
    TextContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
from chathistory_core.provider import InvokedContext, InvokingContext
from chathistory_core.session import AgentSession
from chathistory_core.stored import StoredChatHistoryProvider

RECORDED: dict[str, dict[str, Any]] = {
    situation["case"]: situation
    for situation in map(
        json.loads, (Path(__file__).resolve().parents[1] / "golden/runs.jsonl").read_text(encoding="utf-8").splitlines()
    )
}

WITHOUT_MEANING_HERE = {
    "in-memory provider: the session's JSON": "our sessions never hold messages, only the conversation's key",
    "a provider for one run": "which provider a run uses is the agent's choice; a provider sees nothing of it",
}

DRIVEN_OTHERWISE = {
    "no session, two runs": "the agent makes a session itself, and the recorder kept one list for all: here both runs "
    "have one session",
    "two runs at once, one session": "recorded one after the other: here too",
    "cancelled before": "a cancelled asyncio task does not begin: here the task is cancelled before the model answers",
}


class ModelDownError(Exception):
    pass


class StoreDownError(Exception):
    pass


NAMES = {
    ModelDownError: "HttpRequestException",
    StoreDownError: "IOException",
    IndexError: "ArgumentOutOfRangeException",
    asyncio.CancelledError: "OperationCanceledException",
}


def shown(message: ChatMessage) -> dict[str, object]:
    return {
        "role": message.role,
        "source": message.source.type,
        "source_id": message.source.id and message.source.id.rpartition(".")[2],
        "author": message.author_name,
        "contents": [shown_content(content) for content in message.contents],
    }


def shown_content(content: object) -> str:
    match content:
        case TextContent():
            return f"text:{content.text}"
        case FunctionCallContent():
            return f"call:{content.name}:{content.call_id}" + (":informational" if content.informational_only else "")
        case FunctionResultContent():
            return f"result:{content.call_id}:{content.result}"
        case ToolApprovalRequestContent(tool_call=FunctionCallContent() as call):
            return f"approval request:{call.call_id}"
        case ToolApprovalResponseContent(tool_call=FunctionCallContent() as call):
            return f"approval response:{call.call_id}:{content.approved}"
    return type(content).__name__


def all_shown(messages: Iterable[ChatMessage] | None) -> list[dict[str, object]] | None:
    return None if messages is None else [shown(message) for message in messages]


class Recorder(StoredChatHistoryProvider):
    """Writes down how it is called, and breaks where the situation wants it."""

    events: list[dict[str, object]]
    load_breaks = store_breaks = False

    async def invoking_core(self, context: InvokingContext) -> Sequence[ChatMessage]:
        returned = await super().invoking_core(context)
        self.events.append(
            {
                "call": "invoking",
                "session": context.session is not None,
                "request": all_shown(context.request_messages),
                "returned": all_shown(returned),
            }
        )
        return returned

    async def provide_chat_history(self, context: InvokingContext) -> Sequence[ChatMessage]:
        if self.load_breaks:
            raise StoreDownError
        return await super().provide_chat_history(context)

    async def invoked_core(self, context: InvokedContext) -> None:
        failure = context.invoke_exception
        self.events.append(
            {
                "call": "invoked",
                "cancelled_token": isinstance(failure, asyncio.CancelledError),
                "request": all_shown(context.request_messages),
                "response": all_shown(context.response_messages),
                "exception": None if failure is None else NAMES[type(failure)],
            }
        )
        await super().invoked_core(context)

    async def store_chat_history(self, context: InvokedContext) -> None:
        self.events.append(
            {
                "call": "store",
                "request": all_shown(context.request_messages),
                "response": all_shown(context.response_messages),
            }
        )
        if self.store_breaks:
            raise StoreDownError
        await super().store_chat_history(context)


CALLS = {
    "time": ["time"],
    "two": ["time", "time"],
    "broken": ["broken"],
    "unknown": ["nope"],
    "delete": ["delete"],
    "time then fail": ["time"],
}
RESULTS = {"time": "12:00", "delete": "deleted", "broken": "Error: Function failed."}
REFUSED = "Tool call invocation was rejected by the approver and must not be retried."


def result_of(call: FunctionCallContent) -> FunctionResultContent:
    result = RESULTS.get(call.name, f'Error: Requested function "{call.name}" not found.')
    return FunctionResultContent(call_id=call.call_id, result=result)


def calls_in(message: ChatMessage) -> list[FunctionCallContent]:
    return [content for content in message.contents if isinstance(content, FunctionCallContent)]


def changed(message: ChatMessage, **changes: object) -> ChatMessage:
    return message.model_copy(update=changes)


def executed(message: ChatMessage) -> ChatMessage:
    contents = [
        content.model_copy(update={"informational_only": True}) if isinstance(content, FunctionCallContent) else content
        for content in message.contents
    ]
    return changed(message, contents=contents)


def signed(message: ChatMessage) -> ChatMessage:
    return changed(message, author_name="Agent")


class Agent:
    """Calls a scripted model in a loop with its tools, as the agent of the recording does."""

    def __init__(self, provider: Recorder, *, adds_context: bool = False, is_cancelled: bool = False) -> None:
        self.provider = provider
        self.saw: list[object] = []
        self._adds_context = adds_context
        self._is_cancelled = is_cancelled

    async def model(self, messages: Sequence[ChatMessage]) -> ChatMessage:
        self.saw.append(all_shown(messages))
        if self._is_cancelled:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            await asyncio.sleep(0)
        last = messages[-1]
        question = next(message.text for message in reversed(messages) if message.role == "user" and message.text)
        if question == "fail" or (question == "time then fail" and last.role == "tool"):
            raise ModelDownError
        if last.role == "tool":
            return ChatMessage.assistant("done")
        if question not in CALLS:
            return ChatMessage.assistant(f"ok {question}")
        calls = [
            FunctionCallContent(call_id=f"call_{number}", name=name, arguments={})
            for number, name in enumerate(CALLS[question])
        ]
        if question == "delete":
            asked = [ToolApprovalRequestContent(request_id=f"r_{call.call_id}", tool_call=call) for call in calls]
            return ChatMessage(role="assistant", contents=asked)
        return ChatMessage(role="assistant", contents=calls)

    async def run(
        self, session: AgentSession, *request: ChatMessage, streamed: bool = False, broken_off: bool = False
    ) -> ChatMessage | None:
        began = InvokingContext(self, session, request)
        given = list(await self.provider.invoking(began))
        if self._adds_context:
            given.append(ChatMessage.user("context").with_source(SourceAttribution(AI_CONTEXT_PROVIDER, "Adds")))
        try:
            response = await self._answer(given, streamed=streamed, broken_off=broken_off)
        except BaseException as failure:
            await self.provider.invoked(InvokedContext.failed(self, session, given, failure, invoking=began))
            raise
        if broken_off:
            return None
        named = [signed(message) for message in response]
        await self.provider.invoked(InvokedContext.succeeded(self, session, given, named, invoking=began))
        return response[-1]

    async def _answer(self, given: list[ChatMessage], *, streamed: bool, broken_off: bool) -> list[ChatMessage]:
        seen, response = settle_approvals(given)
        while True:
            message = executed(await self.model(seen))
            response.append(message)
            seen.append(signed(message) if streamed else message)
            if broken_off or not calls_in(message):
                return response
            tool = ChatMessage(role="tool", contents=[result_of(call) for call in calls_in(message)])
            response.append(tool)
            seen.append(tool)

    async def run_stored_call_by_call(
        self, session: AgentSession, *request: ChatMessage, broken_off: bool = False
    ) -> None:
        while True:
            began = InvokingContext(self, session, request)
            given = await self.provider.invoking(began)
            try:
                message = await self.model(given)
            except ModelDownError as failure:
                await self.provider.invoked(InvokedContext.failed(self, session, request, failure, invoking=began))
                raise
            response = [] if broken_off else [message]
            await self.provider.invoked(InvokedContext.succeeded(self, session, request, response, invoking=began))
            if broken_off or not calls_in(message):
                return
            request = (ChatMessage(role="tool", contents=[result_of(call) for call in calls_in(message)]),)


def settle_approvals(given: list[ChatMessage]) -> tuple[list[ChatMessage], list[ChatMessage]]:
    """What the model is given once what waits for approval is settled, and the messages that come of it."""
    asked = [
        (place, content)
        for place, message in enumerate(given)
        for content in message.contents
        if isinstance(content, ToolApprovalRequestContent)
    ]
    if not asked:
        return list(given), []
    place, request = asked[0]
    call = request.tool_call
    assert isinstance(call, FunctionCallContent)
    rest = [message for message in given if message is not given[place]]
    response: list[ChatMessage] = []
    answer = answer_in(rest)
    if answer is None:
        reason = "No approval response was provided for this approval required tool call."
        answer = ToolApprovalResponseContent(request_id="r", tool_call=call, approved=False, reason=reason)
        response.append(ChatMessage(role="user", contents=[answer]))
    rest = [message for message in rest if answer_in([message]) is None]
    text = f"{REFUSED} {answer.reason}" if answer.reason else REFUSED
    result = result_of(call) if answer.approved else FunctionResultContent(call_id=call.call_id, result=text)
    made = executed(changed(given[place], contents=[call]))  # it keeps the mark of the message it is made of
    settled = [made, ChatMessage(role="tool", contents=[result])]
    return [*rest[:place], *settled, *rest[place:]], [*response, *settled]


def answer_in(messages: Sequence[ChatMessage]) -> ToolApprovalResponseContent | None:
    for message in messages:
        for content in message.contents:
            if isinstance(content, ToolApprovalResponseContent):
                return content
    return None


def user(*contents: AIContent | str) -> ChatMessage:
    made = [TextContent(text=content) if isinstance(content, str) else content for content in contents]
    return ChatMessage(role="user", contents=made)


Driver = Callable[[Agent, AgentSession], Coroutine[Any, Any, object]]


def runs(*questions: str, streamed: bool = False, broken_off: bool = False) -> Driver:
    async def drive(agent: Agent, session: AgentSession) -> None:
        for question in questions:
            await agent.run(session, user(question), streamed=streamed, broken_off=broken_off)

    return drive


def call_by_call(question: str, *, broken_off: bool = False) -> Driver:
    return lambda agent, session: agent.run_stored_call_by_call(session, user(question), broken_off=broken_off)


def approval(*, approved: bool) -> Driver:
    async def drive(agent: Agent, session: AgentSession) -> None:
        asked = await agent.run(session, user("delete"))
        assert asked is not None
        (request,) = asked.contents
        assert isinstance(request, ToolApprovalRequestContent)
        answer = ToolApprovalResponseContent(
            request_id=request.request_id,
            tool_call=request.tool_call,
            approved=approved,
            reason=None if approved else "no",
        )
        await agent.run(session, user(answer))

    return drive


DRIVERS: dict[str, Driver] = {
    "plain, two turns": runs("one", "two turns"),
    "tool round": runs("time"),
    "two calls at once": runs("two"),
    "tool throws": runs("broken"),
    "tool unknown": runs("unknown"),
    "approval asked, then given": approval(approved=True),
    "approval asked, then refused": approval(approved=False),
    "approval asked, then another question": runs("delete", "never mind"),
    "streamed": runs("time", streamed=True),
    "streamed, broken off after the first update": runs("hello", streamed=True, broken_off=True),
    "streamed, broken off inside a tool round": runs("time", streamed=True, broken_off=True),
    "model fails": runs("fail"),
    "model fails after a tool round": runs("time then fail"),
    "streamed, model fails": runs("fail", streamed=True),
    "cancelled before": runs("x"),
    "cancelled in the model call": runs("x"),
    "load fails": runs("x"),
    "store fails": runs("x"),
    "store fails, streamed": runs("x", streamed=True),
    "no session, two runs": runs("one", "again"),
    "no input": lambda agent, session: agent.run(session),
    "system and user in the input": lambda agent, session: agent.run(
        session, ChatMessage.system("rules"), user("hello")
    ),
    "context provider adds a message": runs("hello", "again"),
    "per service call": call_by_call("time"),
    "per service call, second call fails": call_by_call("time then fail"),
    "per service call, streamed and broken off": call_by_call("hello", broken_off=True),
    "two runs at once, one session": runs("one", "another"),
    "store filters: nothing of the request, no tool messages of the response": runs("time"),
    "output filter: user messages alone": runs("one", "again"),
}


def recorder(backend: ChatHistoryBackend, case: str) -> Recorder:
    if case.startswith("store filters"):
        provider = Recorder(
            backend,
            store_request_filter=lambda messages: [],
            store_response_filter=lambda messages: [message for message in messages if message.role != "tool"],
        )
    elif case.startswith("output filter"):
        provider = Recorder(
            backend, provide_output_filter=lambda messages: [message for message in messages if message.role == "user"]
        )
    else:
        provider = Recorder(backend)
    provider.events = []
    provider.load_breaks = case == "load fails"
    provider.store_breaks = case.startswith("store fails")
    return provider


def test_every_recorded_situation_is_driven_or_said_to_have_no_meaning_here() -> None:
    assert {*DRIVERS, *WITHOUT_MEANING_HERE} == set(RECORDED)
    assert set(DRIVEN_OTHERWISE) <= set(DRIVERS)


@pytest.mark.parametrize("case", DRIVERS)
def test_a_recorded_situation_goes_as_it_went(backend: ChatHistoryBackend, case: str) -> None:
    wanted = RECORDED[case]

    async def run() -> None:
        async with backend:
            provider = recorder(backend, case)
            agent = Agent(
                provider,
                adds_context=case.startswith("context provider"),
                is_cancelled=case.startswith("cancelled"),
            )
            session = provider.session()
            (raised,) = await asyncio.gather(
                asyncio.ensure_future(DRIVERS[case](agent, session)), return_exceptions=True
            )
            assert provider.events == wanted["events"]
            assert agent.saw == wanted["model_saw"]
            assert (NAMES[type(raised)] if isinstance(raised, BaseException) else None) == (
                wanted["raised"] and wanted["raised"].partition(":")[0]
            )
            assert all_shown(await provider.messages(session)) == wanted["stored"]

    asyncio.run(run())
