from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Annotated, TypedDict

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from pydantic import BaseModel

from chathistory_core import ChatMessage, StoredChatHistoryProvider, open_history


class State(TypedDict):
    history: StoredChatHistoryProvider


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[State]:
    async with open_history() as history:  # one for all requests, as the environment or chathistory.toml says
        yield {"history": history}


app = FastAPI(lifespan=lifespan)


def history_of_user(request: Request, x_user: Annotated[str, Header()]) -> StoredChatHistoryProvider:
    """What this user may see; who the user is must come from your authentication, not from a header."""
    history: StoredChatHistoryProvider = request.state.history
    return history.scoped(x_user)


UserHistory = Annotated[StoredChatHistoryProvider, Depends(history_of_user)]


class Said(BaseModel):
    role: str
    text: str


async def ask_model(messages: Sequence[ChatMessage]) -> ChatMessage:
    """Stands for your model."""
    return ChatMessage.assistant(f"I have read {len(messages)} messages.")


@app.post("/conversations/{key}")
async def ask(key: str, text: str, history: UserHistory) -> str:
    async with history.turn(history.session(key), [ChatMessage.user(text)]) as turn:
        answer = await ask_model(turn.messages)
        turn.add(answer)
    return answer.text


@app.get("/conversations")
async def conversations(history: UserHistory) -> list[str]:
    return [summary.key for summary in await history.summaries(order="recent", limit=20)]


@app.get("/conversations/{key}")
async def conversation(key: str, history: UserHistory) -> list[Said]:
    if not await history.exists(key):
        raise HTTPException(404)
    found = await history.messages(history.session(key), limit=50)
    return [Said(role=message.role, text=message.text) for message in found]


@app.delete("/conversations/{key}")
async def forget(key: str, history: UserHistory) -> bool:
    return await history.clear(history.session(key))
