import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from fastapi import FastAPI

from chathistory_core import open_backend
from chathistory_http.service import create_app

backend = open_backend("sqlite:///chat.db")


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with backend:
        yield


app = FastAPI(lifespan=lifespan)
app.mount("/history", create_app(backend))  # give `access`, or let nobody from outside reach it


async def main() -> None:
    """What a client sees, without a server between."""
    transport = httpx.ASGITransport(app)
    async with lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://app/history") as client:
        hello = {"role": "user", "contents": [{"$type": "text", "text": "Hello."}]}
        written = await client.post("/chat-history/ann", json={"messages": [hello]})
        print(written.status_code, written.headers["Location"])
        print((await client.get("/chat-history/ann")).json())


if __name__ == "__main__":
    asyncio.run(main())
