# /// script
# requires-python = ">=3.11"
# dependencies = [
#     "google-adk==2.13.0",
#     "aiosqlite==0.22.1",
#     "sqlalchemy[asyncio]==2.1.9",
# ]
# ///
"""google-adk: a session service, and of each conversation the session object that was loaded last: an append needs it.

https://google.github.io/adk-docs/sessions/session/

As in the framework's own runner, a turn loads the session, made where there is none, and appends its events to it,
one a call, each with the time at which it happens, by which they are read again. A load gives validated event
objects. An event's id is given, so that one that comes again is refused. SqliteSessionService opens the file anew for
each call, with SQLite's defaults: a rollback journal and FULL.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from google.adk.events import Event
from google.adk.sessions import BaseSessionService, DatabaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai.types import Content, FunctionCall, FunctionResponse, Part

from benchmarks.peers.engines import set_durability
from benchmarks.turns import Turn
from benchmarks.worker import Adapter, Place, serve

APP, USER = "benchmark", "user"


async def open_database(place: Place) -> tuple[str, BaseSessionService]:
    service = DatabaseSessionService(f"sqlite+aiosqlite:///{place.folder}/conversations.db")
    set_durability(service.db_engine.sync_engine, place.durability)
    await service.prepare_tables()
    return place.durability, service


async def open_sqlite(place: Place) -> tuple[str, BaseSessionService]:
    return "FULL", SqliteSessionService(f"{place.folder}/conversations.db")


class Service(Adapter):
    distributions = ("google-adk",)

    def __init__(self, opening: Callable[[Place], Awaitable[tuple[str, BaseSessionService]]]) -> None:
        self._opening = opening
        self._sessions: dict[str, Session] = {}
        self._making = asyncio.Lock()

    async def open(self, place: Place) -> str:
        durability, self._service = await self._opening(place)
        return durability

    async def close(self) -> None:
        await self._service.close()

    def native(self, turn: Turn) -> Sequence[Event]:
        call = FunctionCall(id=turn.call_id, name=turn.tool, args=turn.arguments)
        response = FunctionResponse(id=turn.call_id, name=turn.tool, response=turn.result)
        contents = [
            Content(role="user", parts=[Part(text=turn.question)]),
            Content(role="model", parts=[Part(function_call=call)]),
            Content(role="user", parts=[Part(function_response=response)]),
            Content(role="model", parts=[Part(text=turn.answer)]),
        ]
        authors = ["user", "agent", "agent", "agent"]
        return [Event(author=author, content=content) for author, content in zip(authors, contents, strict=True)]

    async def append(self, conversation: str, messages: Sequence[Event], turn_id: str) -> None:
        session = await self._session(conversation)
        for number, event in enumerate(messages):
            event.id, event.invocation_id, event.timestamp = f"{turn_id}-{number}", turn_id, time.time()
            await self._service.append_event(session, event)

    async def load(self, conversation: str) -> Sequence[Event]:
        session = await self._service.get_session(app_name=APP, user_id=USER, session_id=conversation)
        if session is None:
            return []
        self._sessions[conversation] = session
        return session.events

    async def last(self, conversation: str, count: int) -> Sequence[Event]:
        newest = GetSessionConfig(num_recent_events=count)
        session = await self._service.get_session(app_name=APP, user_id=USER, session_id=conversation, config=newest)
        return session.events if session else []

    async def conversations(self) -> Sequence[Session]:
        return (await self._service.list_sessions(app_name=APP, user_id=USER)).sessions

    def text(self, message: Event) -> str:
        return message.model_dump_json()

    async def _session(self, conversation: str) -> Session:
        async with self._making:
            if conversation not in self._sessions:
                head = GetSessionConfig(num_recent_events=0)
                where = {"app_name": APP, "user_id": USER, "session_id": conversation}
                found = await self._service.get_session(**where, config=head)
                self._sessions[conversation] = found or await self._service.create_session(**where)
        return self._sessions[conversation]


if __name__ == "__main__":
    serve(
        {
            "google-adk DatabaseSessionService": lambda: Service(open_database),
            "google-adk SqliteSessionService": lambda: Service(open_sqlite),
        }
    )
