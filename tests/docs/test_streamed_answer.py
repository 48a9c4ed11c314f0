"""The streamed answer of the guide, over HTTP, with clients that leave."""

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

from fastapi.testclient import TestClient

from chathistory_core import is_incomplete, open_history

Load = Callable[[str], ModuleType]


async def stored() -> list[tuple[str, bool]]:
    async with open_history() as history:
        return [(message.text, is_incomplete(message)) for message in await history.messages(history.session("ann"))]


def test_an_answer_is_streamed_and_stored_and_a_request_that_is_sent_again_is_replayed(load: Load) -> None:
    with TestClient(load("streamed_answer").app) as client:
        for _ in range(2):
            reply = client.post("/conversations/ann", params={"text": "q"}, headers={"Idempotency-Key": "r1"})
            assert reply.text == "I have read 1 messages . "
    assert asyncio.run(stored()) == [("q", False), ("I have read 1 messages . ", False)]


def test_a_client_that_leaves_leaves_what_it_was_sent_and_gets_the_answer_when_it_asks_again(load: Load) -> None:
    app = load("streamed_answer").app

    async def ask(request_id: str, *, pieces: int | None) -> str:
        """A request of a client that leaves while it is sent one piece more than these; what it was sent."""
        sent: list[str] = []
        gone = asyncio.Event()
        asked = False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if not asked:
                asked = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            text = message.get("body", b"").decode()
            if pieces is not None and len(sent) == pieces:
                gone.set()
                await asyncio.Event().wait()
            if text:
                sent.append(text)

        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/conversations/ann",
            "raw_path": b"/conversations/ann",
            "query_string": b"text=q",
            "root_path": "",
            "headers": [(b"idempotency-key", request_id.encode())],
            "state": dict(state),
        }
        await app(scope, receive, send)
        return "".join(sent)

    state: dict[str, Any] = {}

    async def run() -> None:
        async with app.router.lifespan_context(app) as made:
            state.update(made)
            assert await ask("r1", pieces=2) == "I have "
            history = made["history"]
            found = await history.messages(history.session("ann"))
            assert [(each.text, is_incomplete(each)) for each in found] == [("q", False), ("I have read ", True)]
            assert await ask("r1", pieces=None) == "I have read 1 messages . "
            assert await ask("r2", pieces=None) == "I have read 3 messages . "

    asyncio.run(run())
    assert [text for text, _ in asyncio.run(stored())] == [
        "q",
        "I have read ",
        "I have read 1 messages . ",
        "q",
        "I have read 3 messages . ",
    ]
