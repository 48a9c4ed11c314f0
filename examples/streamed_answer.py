from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Annotated, TypedDict

from fastapi import FastAPI, Header, Request
from fastapi.responses import StreamingResponse
from starlette.types import Send

from chathistory_core import ChatMessage, StoredChatHistoryProvider, Turn, open_history


class State(TypedDict):
    history: StoredChatHistoryProvider


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[State]:
    async with open_history(on_failure="partial", on_save_error="outbox") as history:
        yield {"history": history}


app = FastAPI(lifespan=lifespan)


async def ask_model(messages: Sequence[ChatMessage]) -> AsyncIterator[str]:
    """Stands for your model, which streams its answer."""
    for word in f"I have read {len(messages)} messages .".split():
        yield f"{word} "


def joined(pieces: Sequence[str]) -> ChatMessage:
    return ChatMessage.assistant("".join(pieces))


async def answer(turn: Turn) -> AsyncGenerator[str, None]:
    async with turn:
        if turn.replayed:
            yield "".join(message.text for message in turn.answer or ())
            return
        async for piece in turn.stream(ask_model(turn.messages), joined):
            yield piece


class ClosingResponse(StreamingResponse):
    """Ends its generator in its own task when the client has gone, and does not leave that to the garbage collector."""

    def __init__(self, pieces: AsyncGenerator[str, None]) -> None:
        super().__init__(pieces, media_type="text/plain")
        self.pieces = pieces

    async def stream_response(self, send: Send) -> None:
        async with aclosing(self.pieces):
            await super().stream_response(send)


@app.post("/conversations/{key}")
async def ask(key: str, text: str, request: Request, idempotency_key: Annotated[str, Header()]) -> StreamingResponse:
    history: StoredChatHistoryProvider = request.state.history
    turn = history.turn(history.session(key), [ChatMessage.user(text)], turn_id=idempotency_key)
    return ClosingResponse(answer(turn))
