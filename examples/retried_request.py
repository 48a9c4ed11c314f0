from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from fastapi import FastAPI, Header, HTTPException, Request

from chathistory_core import ChatMessage, StoredChatHistoryProvider, TurnConflictError, open_history


class State(TypedDict):
    history: StoredChatHistoryProvider


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[State]:
    async with open_history() as history:
        yield {"history": history}


app = FastAPI(lifespan=lifespan)


async def ask_model(messages: Sequence[ChatMessage]) -> ChatMessage:
    """Stands for your model, which costs time and money."""
    return ChatMessage.assistant(f"I have read {len(messages)} messages.")


@app.post("/conversations/{key}")
async def ask(key: str, text: str, request: Request, idempotency_key: Annotated[str, Header()]) -> str:
    history: StoredChatHistoryProvider = request.state.history
    try:
        async with history.turn(history.session(key), [ChatMessage.user(text)], turn_id=idempotency_key) as turn:
            if not turn.replayed:
                turn.add(await ask_model(turn.messages))
    except TurnConflictError:
        raise HTTPException(409, "this Idempotency-Key belongs to another request") from None
    if turn.answer is None:
        raise HTTPException(410, "this was answered, and the answer has been taken away since")
    return turn.answer[-1].text
