"""What stores of others got wrong, by public reports: provider, codec and backend together do not.

`COVERED` names for each case that concerns storage the tests that hold it; what a backend alone must do is in the kit.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from pydantic import ValidationError

from chathistory_core import (
    BackendStateError,
    ChatHistoryBackend,
    EncodeError,
    InvalidKeyError,
    erase,
    scope,
)
from chathistory_core.formats import chat_message, openai_chat
from chathistory_core.messages import (
    ChatMessage,
    DataContent,
    FunctionCallContent,
    FunctionResultContent,
    TextReasoningContent,
    ToolApprovalRequestContent,
    ToolApprovalResponseContent,
)
from chathistory_core.provider import InvokedContext
from chathistory_core.stored import StoredChatHistoryProvider
from chathistory_core.testing import BackendTests, ProcessTests

ROOT = Path(__file__).resolve().parents[2]
CASES = ROOT / "../shared/cases/bugcases.jsonl"

MakeBackend = Callable[[], ChatHistoryBackend]
Work = Callable[[StoredChatHistoryProvider], Coroutine[Any, Any, None]]

USER, ASSISTANT, TOOL = ChatMessage.user, ChatMessage.assistant, ChatMessage.tool

COVERED: dict[str, tuple[str, ...]] = {
    "trim-orphan-tool-result": (
        "tests/views/test_cases.py::test_a_cut_amid_a_round_leaves_no_result_without_its_call",
        "tests/views/test_cases.py::test_a_cut_between_the_results_of_parallel_calls_takes_the_round_or_leaves_it",
    ),
    "trim-removes-system": (
        "tests/views/test_cases.py::test_rules_survive_every_limit_and_a_limit_of_one_still_limits",
    ),
    "dangling-call-after-crash": (
        "test_a_call_without_its_result_is_still_there_after_a_restart",
        "tests/views/test_cases.py::test_a_call_that_a_crash_left_without_result_breaks_no_later_run",
    ),
    "history-saved-again-each-run": ("test_what_was_loaded_is_not_stored_again_by_the_next_turn",),
    "same-text-twice-is-two-messages": (
        "test_the_same_words_in_two_turns_are_four_messages",
        "test_equal_content_under_different_turns_is_stored_each_time",
    ),
    "retry-with-same-message-id": (
        "test_a_turn_saved_again_after_a_lost_answer_is_there_once",
        "test_a_repeated_append_returns_the_first_result",
    ),
    "read-must-not-write": ("test_loading_again_and_again_writes_nothing", "test_reading_changes_nothing"),
    "content-null-with-tool-call": ("test_a_clients_own_objects_come_back_as_they_were_after_a_restart",),
    "datetime-in-additional-properties": ("test_values_that_no_json_has_are_refused_when_the_message_is_made",),
    "nan-and-infinity": ("test_what_no_record_can_hold_is_refused_and_the_rest_stays",),
    "invalid-json-arguments": ("test_arguments_that_are_no_json_come_back_as_their_text",),
    "emoji-and-cjk": ("test_text_and_keys_of_all_scripts_come_back_by_code_point",),
    "nul-character": ("test_a_nul_and_its_escape_are_two_texts", "test_payloads_come_back_byte_for_byte"),
    "lone-surrogate": ("test_what_no_record_can_hold_is_refused_and_the_rest_stays",),
    "redis-key-overlap-between-sessions": (
        "test_conversations_whose_keys_look_like_parts_of_a_store_are_apart",
        "test_clearing_an_awkward_key_leaves_the_others",
    ),
    "odd-session-ids-are-distinct": (
        "test_awkward_keys_never_collide",
        "test_awkward_keys_are_listed_as_they_are",
        "test_text_and_keys_of_all_scripts_come_back_by_code_point",
    ),
    "empty-or-missing-session-id": (
        "test_an_empty_key_is_nobodys_conversation",
        "test_invalid_keys_are_refused_by_every_operation",
    ),
    "equal-timestamps": (
        "test_messages_of_one_instant_keep_their_order",
        "test_a_batch_and_what_follows_it_at_once_keep_their_order",
    ),
    "clock-goes-back": ("test_a_clock_that_goes_back_changes_no_order_and_no_listing",),
    "provider-time-earlier-than-user-time": ("test_times_of_messages_are_kept_and_decide_nothing",),
    "two-runs-interleave": ("test_two_turns_at_once_stay_whole", "test_sixteen_writers_begin_one_conversation"),
    "lost-update": (
        "test_sixteen_writers_on_two_handles_lose_double_and_split_nothing",
        "test_writers_in_two_processes_lose_double_and_split_nothing",
        "test_no_update_of_two_processes_is_lost",
    ),
    "stream-aborted": ("test_a_turn_that_is_cancelled_stores_nothing_and_the_next_one_works",),
    "replace-fails-half-way": (
        "test_setting_messages_of_which_one_cannot_be_stored_leaves_the_old_ones",
        "test_a_cancelled_replace_leaves_the_old_or_the_new",
        "test_a_batch_with_one_bad_record_writes_nothing",
    ),
    "limit-gives-newest": (
        "test_a_limit_gives_the_newest_messages_oldest_first",
        "test_without_after_the_newest_come_oldest_first",
        "test_negative_numbers_are_refused",
    ),
    "duplicate-call-ids": (
        "test_calls_that_share_an_id_or_have_none_are_all_stored",
        "tests/views/test_cases.py::test_of_an_id_that_repeats_the_newest_pair_is_kept_whole",
    ),
    "approval-pending-survives": (
        "test_an_open_approval_survives_a_restart_and_a_failed_resume",
        "tests/views/test_cases.py::test_a_pending_approval_survives_a_restart_a_failed_resume_and_every_repair",
        "tests/views/test_cases.py::test_an_approval_that_is_given_after_a_restart_is_one_round",
    ),
    "memory-aliasing": (
        "test_what_a_caller_does_to_its_values_later_changes_nothing_stored",
        "test_what_a_caller_does_to_its_list_later_is_not_stored",
    ),
    "plain-dicts-as-history": ("test_dicts_are_refused_as_messages",),
    "list-sessions-is-cheap": (
        "test_pages_together_are_the_whole_listing",
        "plugins/sqlite/tests/test_cost.py::test_a_page_of_summaries_costs_the_same_among_few_and_among_many",
    ),
    "delete-user-everything": (
        "test_erasing_a_users_conversations_leaves_the_neighbours",
        "test_erasing_a_prefix_clears_and_counts_all_under_it",
    ),
    "image-bloat": (
        "test_large_images_come_back_and_the_newest_is_read_alone",
        "plugins/sqlite/tests/test_cost.py::test_the_newest_records_cost_the_same_at_100_and_at_100_000",
    ),
    "other-event-loop": (
        "test_one_store_serves_a_loop_after_another_and_refuses_a_loop_beside",
        "test_a_closed_backend_opens_again_in_another_loop",
    ),
    "dotnet-type-first": ("test_the_type_stands_first_in_each_stored_content_and_data_is_left_alone",),
}

NOT_STORAGE: dict[str, str] = {
    "reasoning-item-pairing": "needs a format that is not there yet",
    "chatgpt-branches": "needs a format that is not there yet",
}


@pytest.mark.skipif(not CASES.exists(), reason="the cases are not in this checkout")
def test_every_case_is_covered_or_has_a_reason() -> None:
    cases = [json.loads(line) for line in CASES.read_text("utf-8").split("\n") if line]
    assert {case["id"] for case in cases if case["backends"] == "all"} == {*COVERED, *NOT_STORAGE}
    assert not {*COVERED} & {*NOT_STORAGE}


@pytest.mark.parametrize("name", sorted({name for names in COVERED.values() for name in names}))
def test_a_named_test_exists(name: str) -> None:
    path, _, test = name.rpartition("::")
    if path:
        assert f"def {test}(" in (ROOT / path).read_text("utf-8")
    else:
        assert test in globals() or hasattr(BackendTests, test) or hasattr(ProcessTests, test)


def run(make_backend: MakeBackend, *works: Work) -> None:
    """Do one work after another, each with a backend of its own in a loop of its own: with a restart between."""

    async def opened(work: Work) -> None:
        async with make_backend() as backend:
            await work(StoredChatHistoryProvider(backend))

    for work in works:
        asyncio.run(opened(work))


async def put(history: StoredChatHistoryProvider, *messages: ChatMessage, key: str = "k") -> None:
    """Store the messages as a turn."""
    async with history.turn(history.session(key), messages):
        pass


async def ask(history: StoredChatHistoryProvider, text: str, answer: str, *, turn_id: str | None = None) -> list[str]:
    """A turn; the texts that the model was sent."""
    async with history.turn(history.session("k"), [USER(text)], turn_id=turn_id) as turn:
        sent = [message.text for message in turn.messages]
        if not turn.replayed:
            turn.add(ASSISTANT(answer))
    return sent


async def held(history: StoredChatHistoryProvider, key: str = "k", *, limit: int | None = None) -> list[ChatMessage]:
    return list(await history.messages(history.session(key), limit=limit))


async def texts(history: StoredChatHistoryProvider, key: str = "k", *, limit: int | None = None) -> list[str]:
    return [message.text for message in await held(history, key, limit=limit)]


def call(call_id: str, name: str = "look", **arguments: str) -> FunctionCallContent:
    return FunctionCallContent(call_id=call_id, name=name, arguments=arguments)


def backend_of(history: StoredChatHistoryProvider) -> ChatHistoryBackend:
    found = history.get_service(ChatHistoryBackend)  # type: ignore[type-abstract] # the protocol stands for any backend
    assert found is not None
    return found


def stored(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    return [message.without_source() for message in messages]


def test_a_call_without_its_result_is_still_there_after_a_restart(make_backend: MakeBackend) -> None:
    messages = [USER("go on"), ChatMessage(role="assistant", contents=[call("c1", place="Rome")])]

    async def crash(history: StoredChatHistoryProvider) -> None:
        await put(history, *messages)

    async def go_on(history: StoredChatHistoryProvider) -> None:
        assert await held(history) == messages
        assert await ask(history, "are you there?", "I am") == ["go on", "", "are you there?"]
        assert await texts(history) == ["go on", "", "are you there?", "I am"]

    run(make_backend, crash, go_on)


def test_what_was_loaded_is_not_stored_again_by_the_next_turn(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        for number in range(4):
            sent = await ask(history, f"q{number}", f"a{number}")
            assert len(sent) == 2 * number + 1
        assert await texts(history) == [f"{kind}{number}" for number in range(4) for kind in "qa"]

    run(make_backend, work)


def test_the_same_words_in_two_turns_are_four_messages(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        for _ in range(2):
            await ask(history, "go on", "and then")
        assert await texts(history) == ["go on", "and then", "go on", "and then"]

    run(make_backend, work)


def test_a_turn_saved_again_after_a_lost_answer_is_there_once(make_backend: MakeBackend) -> None:
    async def save(history: StoredChatHistoryProvider) -> None:
        ended = InvokedContext.succeeded(
            None, history.session("k"), [USER("q")], [ASSISTANT("a")], turn_id="one request"
        )
        await history.invoked(ended)
        await history.invoked(ended)
        assert await texts(history) == ["q", "a"]

    run(make_backend, save, save)


def test_loading_again_and_again_writes_nothing(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, USER("a"), ASSISTANT("b"))
        before = list(await history.summaries())
        for _ in range(3):
            assert await texts(history) == ["a", "b"]
        assert list(await history.summaries()) == before

    run(make_backend, work)


def test_a_clients_own_objects_come_back_as_they_were_after_a_restart(make_backend: MakeBackend) -> None:
    theirs: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url", "image_url": {"url": "u"}}]},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "reasoning_content": "two calls, then",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"b": 1, "a": 2}'}},
                {"id": "c2", "type": "function", "function": {"name": "look", "arguments": "{}"}, "x": {"z": [1, {}]}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "17.5"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]

    async def store(history: StoredChatHistoryProvider) -> None:
        await put(history, *openai_chat.load(theirs))

    async def read(history: StoredChatHistoryProvider) -> None:
        found = await history.messages(history.session("k"))
        origins = [message.origin for message in found]
        assert [json.loads(origin.payload) for origin in origins if origin] == theirs
        assert [list(json.loads(origin.payload)) for origin in origins if origin] == [list(each) for each in theirs]
        sent = openai_chat.dump(found)
        assert [json.loads(json.dumps(each)).get("content", "missing") for each in sent][1] is None

    run(make_backend, store, read)


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), b"\0\xff", {1, 2}, object()], ids=str)
def test_values_that_no_json_has_are_refused_when_the_message_is_made(value: Any) -> None:
    with pytest.raises(ValidationError, match="convert it first"):
        FunctionResultContent(call_id="c", result={"inside": [value]})


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), "\udc80 half"], ids=["nan", "infinity", "surrogate"])
def test_what_no_record_can_hold_is_refused_and_the_rest_stays(make_backend: MakeBackend, value: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, USER("before"))
        revision = (await history.messages(history.session("k"))).revision
        with pytest.raises(EncodeError, match="message 1/contents/0/result cannot"):
            await put(history, USER("good"), TOOL("c", {"inside": value}))
        assert (await history.messages(history.session("k"))).revision == revision
        await put(history, USER("after"))
        assert await texts(history) == ["before", "after"]

    run(make_backend, work)


def test_arguments_that_are_no_json_come_back_as_their_text(make_backend: MakeBackend) -> None:
    cut, empty = ('{"city": "Ro', "")
    theirs = [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": text}}],
        }
        for text in (cut, empty)
    ]

    async def store(history: StoredChatHistoryProvider) -> None:
        # a changed copy has lost its client's object: the text rides along
        await put(history, *(each.model_copy(update={"message_id": "m"}) for each in openai_chat.load(theirs)))

    async def read(history: StoredChatHistoryProvider) -> None:
        calls = [each.contents[-1] for each in await held(history)]
        assert [each.arguments_text for each in calls if isinstance(each, FunctionCallContent)] == [cut, empty]

    run(make_backend, store, read)


def test_text_and_keys_of_all_scripts_come_back_by_code_point(make_backend: MakeBackend) -> None:
    said = "漢字 かな 한글 👩‍🚀 e\u0301 é مرحبا \u202e\u2066 \u2028\u2029 \ufeff \U0010ffff"
    keys = sorted(["会議", "👩‍🚀", "e\u0301", "é", "A", "a", "a.b", "a/b", "../a", "a b", "x" * 512])

    async def store(history: StoredChatHistoryProvider) -> None:
        for key in keys:
            await put(history, USER(said + key), key=key)

    async def read(history: StoredChatHistoryProvider) -> None:
        assert [summary.key for summary in await history.summaries()] == keys
        for key in keys:
            assert await texts(history, key) == [said + key]

    run(make_backend, store, read)


def test_a_nul_and_its_escape_are_two_texts(make_backend: MakeBackend) -> None:
    said = ["a\0b", "a\\u0000b", "a\\\0b", "\0"]

    async def store(history: StoredChatHistoryProvider) -> None:
        await put(history, *map(USER, said))

    async def read(history: StoredChatHistoryProvider) -> None:
        assert await texts(history) == said

    run(make_backend, store, read)


def test_conversations_whose_keys_look_like_parts_of_a_store_are_apart(make_backend: MakeBackend) -> None:
    keys = ["x", "x:records", "x:heads", "x:turns", "x:messages", "x:sizes", "{x}", "chathistory:x", "0:x", "x:expiry"]

    async def work(history: StoredChatHistoryProvider) -> None:
        for key in keys:
            await put(history, USER(key), key=key)
        await history.clear(history.session("x"))
        assert [await texts(history, key) for key in keys] == [[], *([key] for key in keys[1:])]

    run(make_backend, work)


def test_an_empty_key_is_nobodys_conversation(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        with pytest.raises(InvalidKeyError):
            history.session("")
        with pytest.raises(InvalidKeyError):
            history.attach(history.session(), cast("str", None))
        one, other = history.session(), history.session()
        for session in (one, other):
            async with history.turn(session, [USER("mine")]):
                pass
        assert history.key_of(one) != history.key_of(other)
        assert len(await history.messages(one)) == 1

    run(make_backend, work)


def test_messages_of_one_instant_keep_their_order(make_backend: MakeBackend) -> None:
    """The store's clock stands still too."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    said = [str(number) for number in range(40)]
    messages = [USER(text).model_copy(update={"created_at": at}) for text in said]

    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, *messages[:20])
        for message in messages[20:]:
            await put(history, message)
        assert await texts(history) == said
        for limit in (1, 7, 25):
            assert await texts(history, limit=limit) == said[-limit:]

    run(make_backend, work)


def test_a_clock_that_goes_back_changes_no_order_and_no_listing(make_backend: MakeBackend, clock: Any) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        updated = []
        for number, seconds in enumerate((0, -5, +1, -60, +200)):
            clock.move(seconds)
            await put(history, USER(str(number)))
            (summary,) = await history.summaries()
            updated.append(summary.updated_at)
        assert await texts(history) == ["0", "1", "2", "3", "4"]
        assert updated == sorted(updated)

    run(make_backend, work)


def test_times_of_messages_are_kept_and_decide_nothing(make_backend: MakeBackend) -> None:
    asked = datetime(2026, 1, 19, 8, 0, 26, 774416, tzinfo=UTC)
    messages = [
        USER("hello").model_copy(update={"created_at": asked}),
        ASSISTANT("hi").model_copy(update={"created_at": asked.replace(second=23, microsecond=0)}),
    ]

    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, *messages)
        assert await held(history) == messages

    run(make_backend, work)


def test_two_turns_at_once_stay_whole(make_backend: MakeBackend) -> None:
    async def run_of(history: StoredChatHistoryProvider, name: str) -> None:
        async with history.turn(history.session("k"), [USER(f"{name}?")]) as turn:
            await asyncio.sleep(0)
            turn.add(ChatMessage(role="assistant", contents=[call(f"{name}1")]))
            await asyncio.sleep(0)
            turn.add([TOOL(f"{name}1", "1"), ASSISTANT(f"{name}!")])

    async def work(history: StoredChatHistoryProvider) -> None:
        await asyncio.gather(*(run_of(history, name) for name in "ABCD"))
        found = await texts(history)
        runs = [found[start : start + 4] for start in range(0, 16, 4)]
        assert sorted(runs) == [[f"{name}?", "", "", f"{name}!"] for name in "ABCD"]

    run(make_backend, work)


def test_a_turn_that_is_cancelled_stores_nothing_and_the_next_one_works(make_backend: MakeBackend) -> None:
    async def aborted(history: StoredChatHistoryProvider, begun: asyncio.Event) -> None:
        async with history.turn(history.session("k"), [USER("tell me a long story")]) as turn:
            turn.add(ASSISTANT("once upon"))
            begun.set()
            await asyncio.Event().wait()

    async def work(history: StoredChatHistoryProvider) -> None:
        begun = asyncio.Event()
        task = asyncio.create_task(aborted(history, begun))
        await begun.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert await texts(history) == []
        await ask(history, "a short one", "the end")
        assert await texts(history) == ["a short one", "the end"]

    run(make_backend, work)


def test_setting_messages_of_which_one_cannot_be_stored_leaves_the_old_ones(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, USER("a"), ASSISTANT("b"))
        session = history.session("k")
        before = await history.messages(session)
        with pytest.raises(EncodeError):
            await history.set_messages(session, [ChatMessage.system("in short"), USER("\ud800")])
        after = await history.messages(session)
        assert (list(after), after.revision) == (list(before), before.revision)

    run(make_backend, work)


def test_a_limit_gives_the_newest_messages_oldest_first(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        await put(history, *(USER(text) for text in "ABCD"))
        assert await texts(history, limit=2) == ["C", "D"]
        assert await texts(history, limit=0) == []
        assert await texts(history, limit=9) == ["A", "B", "C", "D"]
        with pytest.raises(ValueError, match="limit"):
            await texts(history, limit=-1)

    run(make_backend, work)


def test_calls_that_share_an_id_or_have_none_are_all_stored(make_backend: MakeBackend) -> None:
    messages = [
        message
        for call_id, text in (("call_0", "one"), ("call_0", "two"), ("", "three"), ("", "four"))
        for message in (
            ChatMessage(role="assistant", contents=[call(call_id, text=text)]),
            TOOL(call_id, text),
        )
    ]

    async def store(history: StoredChatHistoryProvider) -> None:
        await put(history, *messages)

    async def read(history: StoredChatHistoryProvider) -> None:
        assert await held(history) == messages

    run(make_backend, store, read)


def test_an_open_approval_survives_a_restart_and_a_failed_resume(make_backend: MakeBackend) -> None:
    asked = call("c9", "delete", path="a")
    request = ChatMessage(role="assistant", contents=[ToolApprovalRequestContent(request_id="ap1", tool_call=asked)])
    answer = ChatMessage(
        role="user", contents=[ToolApprovalResponseContent(request_id="ap1", tool_call=asked, approved=False)]
    )

    async def store(history: StoredChatHistoryProvider) -> None:
        await put(history, USER("delete a"), request)

    async def resume(history: StoredChatHistoryProvider) -> None:
        with pytest.raises(ZeroDivisionError):
            async with history.turn(history.session("k"), [answer]):
                raise ZeroDivisionError
        assert await held(history) == [USER("delete a"), request]
        await ask(history, "leave it", "left")
        assert await held(history) == [USER("delete a"), request, USER("leave it"), ASSISTANT("left")]

    run(make_backend, store, resume)


def test_what_a_caller_does_to_its_values_later_changes_nothing_stored(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        inner: dict[str, Any] = {"list": [1, {"deep": True}]}
        batch = [TOOL("c", inner)]
        async with history.turn(history.session("k"), batch) as turn:
            answer = [ASSISTANT("a")]
            turn.add(answer)
            inner["list"][1]["deep"] = False
            inner["list"].append(2)
            answer.clear()
            batch.clear()
        found = await held(history)
        assert found == [TOOL("c", {"list": [1, {"deep": True}]}), ASSISTANT("a")]
        found.clear()
        assert len(await held(history)) == 2

    run(make_backend, work)


def test_dicts_are_refused_as_messages(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        theirs = cast("Sequence[ChatMessage]", [{"role": "user", "content": "a client's"}])
        session = history.session("k")
        with pytest.raises(TypeError, match="load"):
            async with history.turn(session, theirs):
                pass
        with pytest.raises(TypeError, match="load"):
            await history.set_messages(session, theirs)
        assert await history.summaries() == ()

    run(make_backend, work)


def test_erasing_a_users_conversations_leaves_the_neighbours(make_backend: MakeBackend) -> None:
    async def work(history: StoredChatHistoryProvider) -> None:
        ann, anna = history.scoped("t", "ann"), history.scoped("t", "anna")
        for one in (ann, anna):
            for key in ("a", "b"):
                await put(one, USER("hers"), key=key)
        backend = backend_of(history)
        assert await erase(backend, scope("t", "ann")) == 2
        assert await ann.summaries() == ()
        assert await texts(anna, "a") == ["hers"]
        await put(ann, USER("back again"), key="a")
        assert await texts(ann, "a") == ["back again"]

    run(make_backend, work)


def test_large_images_come_back_and_the_newest_is_read_alone(make_backend: MakeBackend) -> None:
    images = [
        ChatMessage(
            role="user",
            contents=[DataContent(uri=f"data:image/png;base64,{Random(number).randbytes(300_000).hex()[:400_000]}")],
        )
        for number in range(5)
    ]

    async def store(history: StoredChatHistoryProvider) -> None:
        for image in images:
            await put(history, image)

    async def read(history: StoredChatHistoryProvider) -> None:
        assert await held(history, limit=1) == images[-1:]
        assert await held(history) == images

    run(make_backend, store, read)


def test_one_store_serves_a_loop_after_another_and_refuses_a_loop_beside(make_backend: MakeBackend) -> None:
    backend = make_backend()
    history = StoredChatHistoryProvider(backend)

    async def use(text: str) -> None:
        async with backend:
            await put(history, USER(text))

    async def read() -> None:
        async with backend:
            assert await texts(history) == ["a", "b", "c"]
            with pytest.raises(BackendStateError):
                await asyncio.to_thread(lambda: asyncio.run(texts(history)))

    asyncio.run(use("a"))
    asyncio.run(use("b"))

    async def beside() -> None:
        await asyncio.to_thread(lambda: asyncio.run(use("c")))

    asyncio.run(beside())
    asyncio.run(read())


def test_the_type_stands_first_in_each_stored_content_and_data_is_left_alone(make_backend: MakeBackend) -> None:
    arguments: dict[str, Any] = {"b": 1, "a": {"z": 0, "$type": "data, no tag"}}
    message = ChatMessage(
        role="assistant",
        contents=[
            TextReasoningContent(text="hm", protected_data="sealed"),
            FunctionCallContent(call_id="c", name="f", arguments=arguments),
            DataContent(uri="data:image/png;base64,AQID", name="x.png"),
        ],
    )
    theirs = '{"contents":[{"later":1,"$type":"of a newer kind"}],"role":"user"}'

    async def store(history: StoredChatHistoryProvider) -> None:
        await put(history, message, *chat_message.load(theirs))

    async def read(history: StoredChatHistoryProvider) -> None:
        backend = backend_of(history)
        payloads = [json.loads(record.payload) for record in (await backend.get("k")).records]
        assert [next(iter(content)) for content in payloads[0]["contents"]] == ["$type"] * 3
        found = stored(await held(history))
        assert found[0] == message
        assert json.dumps(payloads[0]["contents"][1]["arguments"]) == json.dumps(arguments)
        assert "of a newer kind" in json.dumps(chat_message.dump(found[1:]))

    run(make_backend, store, read)
