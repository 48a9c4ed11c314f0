"""The retried request of the guide, over HTTP."""

import asyncio
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from fastapi.testclient import TestClient

from chathistory_core import ChatMessage, open_history


@pytest.fixture
def client(load: Callable[[str], ModuleType]) -> Iterator[TestClient]:
    with TestClient(load("retried_request").app) as client:
        yield client


def ask(client: TestClient, text: str, request_id: str) -> object:
    """The answer; where there is none, the status."""
    reply = client.post("/conversations/ann", params={"text": text}, headers={"Idempotency-Key": request_id})
    return reply.json() if reply.status_code == 200 else reply.status_code


def texts() -> list[str]:
    """What is stored."""

    async def read() -> list[str]:
        async with open_history() as history:
            return [message.text for message in await history.messages(history.session("ann"))]

    return asyncio.run(read())


def test_a_request_that_is_sent_again_gets_the_first_answer_and_is_stored_once(client: TestClient) -> None:
    assert ask(client, "one", "r1") == "I have read 1 messages."
    assert ask(client, "two", "r2") == "I have read 3 messages."
    assert ask(client, "one", "r1") == "I have read 1 messages."
    assert ask(client, "two", "r2") == "I have read 3 messages."
    assert texts() == ["one", "I have read 1 messages.", "two", "I have read 3 messages."]


def test_it_gets_the_first_answer_from_another_process_too(load: Callable[[str], ModuleType]) -> None:
    for _ in range(2):
        with TestClient(load("retried_request").app) as client:
            assert ask(client, "one", "r1") == "I have read 1 messages."
    assert texts() == ["one", "I have read 1 messages."]


def test_the_same_text_under_another_id_is_said_twice(client: TestClient) -> None:
    ask(client, "yes", "r1")
    assert ask(client, "yes", "r2") == "I have read 3 messages."
    assert texts().count("yes") == 2


def test_another_request_under_the_id_is_refused_and_not_stored(client: TestClient) -> None:
    ask(client, "one", "r1")
    assert ask(client, "two", "r1") == 409
    assert texts() == ["one", "I have read 1 messages."]


def test_an_answer_that_was_taken_away_is_gone(client: TestClient) -> None:
    async def replace() -> None:
        async with open_history() as history:
            await history.set_messages(history.session("ann"), [ChatMessage.user("something else")])

    ask(client, "one", "r1")
    asyncio.run(replace())
    assert ask(client, "one", "r1") == 410
    assert texts() == ["something else"]
