"""The web application of the guide, over HTTP."""

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from fastapi.testclient import TestClient

ANN, BOB = {"X-User": "ann"}, {"X-User": "bob"}


@pytest.fixture
def client(load: Callable[[str], ModuleType]) -> Iterator[TestClient]:
    with TestClient(load("web_app").app) as client:
        yield client


def ask(client: TestClient, key: str, text: str, user: dict[str, str]) -> object:
    return client.post(f"/conversations/{key}", params={"text": text}, headers=user).raise_for_status().json()


def test_a_conversation_goes_on_from_request_to_request(client: TestClient) -> None:
    assert ask(client, "work", "one", ANN) == "I have read 1 messages."
    assert ask(client, "work", "two", ANN) == "I have read 3 messages."
    said = client.get("/conversations/work", headers=ANN).json()
    assert [message["text"] for message in said] == ["one", "I have read 1 messages.", "two", "I have read 3 messages."]


def test_a_conversation_is_still_there_when_the_application_starts_again(load: Callable[[str], ModuleType]) -> None:
    for expected in ("I have read 1 messages.", "I have read 3 messages."):
        with TestClient(load("web_app").app) as client:
            assert ask(client, "work", "hello", ANN) == expected


def test_users_of_one_key_do_not_meet(client: TestClient) -> None:
    ask(client, "work", "one", ANN)
    assert ask(client, "work", "one", BOB) == "I have read 1 messages."
    assert client.get("/conversations", headers=ANN).json() == ["work"]
    assert client.delete("/conversations/work", headers=BOB).json() is True
    assert client.get("/conversations/work", headers=ANN).status_code == 200


def test_no_key_leads_to_another_user(client: TestClient) -> None:
    ask(client, "work", "a secret", ANN)
    for key in ("..%2Fann%2Fwork", "ann%2Fwork", "ann%252Fwork", "%2E%2E%2Fann%2Fwork"):
        assert client.get(f"/conversations/{key}", headers=BOB).status_code == 404
        assert client.delete(f"/conversations/{key}", headers=BOB).json() in (False, {"detail": "Not Found"})


def test_what_is_forgotten_is_not_found(client: TestClient) -> None:
    ask(client, "work", "one", ANN)
    assert client.delete("/conversations/work", headers=ANN).json() is True
    assert client.delete("/conversations/work", headers=ANN).json() is False
    assert client.get("/conversations/work", headers=ANN).status_code == 404
    assert client.get("/conversations", headers=ANN).json() == []
